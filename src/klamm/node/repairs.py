"""What can be done about a damaged data directory, and doing it: the other half of `inspection.py`.

Nothing is removed. A log that only this node has is mended in its place, and loses what is damaged and no more. What
others have too is set aside, to be fetched again: the metadata of a quorum of several, the logs of replicated
partitions. Whoever gives up what it promised to the quorum comes back as somebody else: under another directory id, as
after a new disk, so that no vote is given twice and nothing is counted that is not there.
"""

from collections.abc import Sequence
from itertools import count
from random import Random

from klamm.broker.directories import LONGEST_NAME, STRAY, is_set_aside
from klamm.ids import ZERO_UUID, BrokerId, Offset, TopicPartition, Uuid, drawn_uuid, uuid_text
from klamm.log import checkpoint
from klamm.log.files import Files
from klamm.log.inspection import Hole, mend_segment, split_at
from klamm.log.names import LOG, PARTITION_METADATA, file_name
from klamm.node.identity import has_data
from klamm.node.inspection import (
    METADATA,
    Finding,
    Inspection,
    Repair,
    SeenDirectory,
    id_text,
    see,
    seen_directories,
    vote_problem,
)
from klamm.quorum.election import FILE_NAME as QUORUM_STATE
from klamm.quorum.election import Election, write_election
from klamm.quorum.raft import DIRECTORY


class Wish:
    """What the person says that the directory cannot."""

    def __init__(
        self, node_id: BrokerId | None = None, cluster_id: str | None = None, is_alone: bool | None = None
    ) -> None:
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.is_alone = is_alone


def inspect(files: Files, random: Random, wish: Wish) -> Inspection:
    """Everything that is wrong, worst first, with what can be done about it."""
    seen = see(files)
    judge = _Judge(files, random, wish, seen)
    judge.identity()
    judge.metadata()
    for directory in seen_directories(files, seen):
        judge.directory(directory)
    for name in seen.kept:
        what = "kept since an earlier start or repair; nothing uses it, nothing removes it"
        seen.findings.append(Finding(name, what, False, advice="remove it when nobody needs it any more"))
    seen.findings.sort(key=lambda finding: not finding.is_harmful)
    return seen


class _Judge:
    def __init__(self, files: Files, random: Random, wish: Wish, seen: Inspection) -> None:
        self._files = files
        self._random = random
        self._wish = wish
        self._seen = seen
        self._is_alone = seen.is_alone if wish.is_alone is None else wish.is_alone

    def identity(self) -> None:
        seen, wish = self._seen, self._wish
        if seen.identity or not has_data(self._files):
            return
        is_there = self._files.exists(checkpoint.META_PROPERTIES)
        what = f"{'damaged' if is_there else 'missing'}: nobody can tell which node of which cluster this is"
        finding = Finding(checkpoint.META_PROPERTIES, what)
        if wish.node_id is not None and wish.cluster_id is not None:
            finding.repair = self._write_identity(wish.node_id, wish.cluster_id)
        else:
            finding.advice = (
                "put it back, or give `--id N` and `--cluster-id ID`, so that it can be written again (meta.properties "
                "of another node of the cluster names the cluster's id)"
            )
        seen.findings.append(finding)

    def metadata(self) -> None:
        seen, metadata = self._seen, self._seen.metadata
        holes = [*metadata.holes, *seen.senseless]
        flushed = max(seen.recovery_points.get(METADATA, 0), *seen.snapshot_ends, 0)
        missing = metadata.end_offset < flushed
        begins_late = any(each.path == DIRECTORY and each.is_harmful for each in seen.findings)
        if holes or missing or begins_late:
            repair = self._metadata_repair(holes, flushed)
            advice = "" if repair else self._metadata_advice()
            for hole in metadata.holes:
                offsets = (hole.offset, max(hole.next_offset, hole.offset + 1))
                seen.findings.append(Finding(DIRECTORY, hole.why, offsets=offsets, repair=repair, advice=advice))
            for hole in seen.senseless:
                offsets = (hole.offset, hole.next_offset)
                seen.findings.append(Finding(DIRECTORY, hole.why, offsets=offsets, repair=repair, advice=advice))
            if missing:
                what = f"ends at offset {metadata.end_offset}, and records up to {flushed} had been flushed"
                offsets = (metadata.end_offset, flushed)
                seen.findings.append(Finding(DIRECTORY, what, offsets=offsets, repair=repair, advice=advice))
        elif (problem := vote_problem(self._files, seen)) is not None:
            seen.findings.append(
                Finding(
                    f"{DIRECTORY}/{QUORUM_STATE}", problem, repair=self._vote_repair(), advice=self._metadata_advice()
                )
            )

    def directory(self, each: SeenDirectory) -> None:
        findings = self._seen.findings
        own_id = self._seen.node_id if self._seen.node_id is not None else self._wish.node_id
        state = each.state
        if each.found_id is not None and not each.is_name_damaged and each.found_id != each.topic_id:
            if self._seen.metadata.holes:
                what = f"topic {id_text(each.found_id)} is not in what is left of the metadata"
                repair = Repair(f"keep {each.name} under another name", lambda: self._set_aside(each.name))
                findings.append(Finding(each.name, what, offsets=_offsets(each), repair=repair))
            return
        if each.is_name_damaged:
            path = f"{each.name}/{PARTITION_METADATA}"
            finding = Finding(
                path, "damaged or missing: it does not say whose records these are", offsets=_offsets(each)
            )
            topic_id = each.topic_id
            if topic_id is not None and state is not None:
                what = f"write into {path} that they are those of topic {each.place.topic}, id {id_text(topic_id)}"
                finding.repair = Repair(what, lambda: self._write_name(each.name, topic_id))
            else:
                finding.advice = "the metadata knows no such partition: the next start keeps it under another name"
            findings.append(finding)
        if each.log.holes:
            others = {*state.isr, *state.elr} - {own_id} if state is not None else set()
            repair = self._log_repair(each, sorted(others))
            for hole in each.log.holes:
                offsets = (hole.offset, max(hole.next_offset, hole.offset + 1))
                findings.append(Finding(each.name, hole.why, offsets=offsets, repair=repair))

    # Repairs.

    def _write_identity(self, node_id: BrokerId, cluster_id: str) -> Repair:
        voter = self._seen.voters.get(node_id) if self._seen.voters is not None else None
        registered = self._seen.image.brokers.get(node_id)
        known = [*([voter.directory_id] if voter else []), *(registered.directories if registered else ())]
        directory_id = next((each for each in known if each != ZERO_UUID), None) or drawn_uuid(self._random)
        text = checkpoint.meta_properties_text(cluster_id, node_id, directory_id)
        return Repair(
            f"write that it is node {node_id} of cluster {cluster_id}, directory {uuid_text(directory_id)}",
            lambda: self._files.write_whole(checkpoint.META_PROPERTIES, text),
        )

    def _metadata_advice(self) -> str:
        if self._is_alone is None:
            return (
                "the damage hides whether other nodes have the metadata too: say `--metadata fetch` if they do and "
                "run, `--metadata mend` if this node is alone"
            )
        return "no snapshot can be read: put the files back from a copy"

    def _metadata_repair(self, holes: Sequence[Hole], flushed: Offset) -> Repair | None:
        if self._is_alone is None:
            return None
        if not self._is_alone:
            return Repair(
                f"set {DIRECTORY} aside and come back to the quorum as after a new disk (another directory.id): this "
                "node then fetches the metadata again from the others. Its topics' records stay",
                self._fetch_metadata_again,
            )
        if any(each.path == DIRECTORY and each.is_harmful for each in self._seen.findings):
            return None
        lost = sum(hole.next_offset - hole.offset for hole in holes) + sum(hole.is_at_end for hole in holes)
        lost += max(flushed - self._seen.metadata.end_offset, 0)
        return Repair(
            f"leave out of {DIRECTORY} what is damaged or missing, some {lost} records of metadata that nobody else "
            f"has ({len(self._seen.image.topics)} topics remain); the log as it was is kept beside it, directories of "
            "topics that are not known any more under another name",
            lambda: self._mend_metadata(holes),
        )

    def _vote_repair(self) -> Repair | None:
        if self._is_alone is None:
            return None
        if self._is_alone:
            return Repair(
                f"write {QUORUM_STATE} again: alone, there is no vote to be given twice",
                lambda: write_election(self._files, DIRECTORY, Election(max(self._seen.metadata.latest_epoch, 0))),
            )
        return Repair(
            f"set {DIRECTORY} aside and come back to the quorum as after a new disk (another directory.id), so that no "
            "vote is given twice: this node then fetches the metadata again from the others. Its topics' records stay",
            self._fetch_metadata_again,
        )

    def _log_repair(self, each: SeenDirectory, others: list[BrokerId]) -> Repair:
        if others:
            return Repair(
                f"set {each.name} aside; this node then fetches it again from {', '.join(map(str, others))}",
                lambda: self._set_aside(each.name),
            )
        lost = sum(max(hole.next_offset - hole.offset, hole.is_at_end) for hole in each.log.holes)
        return Repair(
            f"leave out of {each.name} what is damaged or missing, some {lost} records that no other broker is known "
            "to have; all other records keep their offsets, and the segments as they were are kept beside it",
            lambda: self._mend_log(each.name, each.log.holes),
        )

    # Doing it.

    def _fetch_metadata_again(self) -> None:
        self._set_aside(DIRECTORY)
        self._note_flushed({METADATA: 0})
        identity = self._seen.identity
        if identity:
            number, cluster_id = int(identity["node.id"]), identity["cluster.id"]
            text = checkpoint.meta_properties_text(cluster_id, number, drawn_uuid(self._random))
            self._files.write_whole(checkpoint.META_PROPERTIES, text)

    def _mend_metadata(self, holes: Sequence[Hole]) -> None:
        ends = self._seen.snapshot_ends
        self._mend_log(DIRECTORY, split_at(ends, [*holes, *self._hole_before_snapshot(max(ends, default=0))]))
        self._note_flushed({METADATA: 0})
        if vote_problem(self._files, self._seen) is not None:
            write_election(self._files, DIRECTORY, Election(max(self._seen.metadata.latest_epoch, 0)))
        for name in self._files.listing(""):
            self._keep_unknown(name)

    def _hole_before_snapshot(self, end: Offset) -> list[Hole]:
        """A log that ends before its snapshot does is told to go on where that ends."""
        metadata = self._seen.metadata
        if metadata.end_offset >= end:
            return []
        if not metadata.bases:
            self._files.write_whole(f"{DIRECTORY}/{file_name(end, LOG)}", b"")
            return []
        last = metadata.bases[-1]
        size = self._files.file(f"{DIRECTORY}/{file_name(last, LOG)}").size
        return [Hole(last, size, size, metadata.end_offset, end, metadata.latest_epoch, "the snapshot holds these")]

    def _keep_unknown(self, name: str) -> None:
        """What the metadata does not know any more must not look deleted to the next start."""
        path = f"{name}/{PARTITION_METADATA}"
        if not is_set_aside(name) and self._files.exists(path):
            found = checkpoint.read_partition_metadata(self._files.read_whole(path))
            if found is not None and self._seen.image.topic_with_id(found) is None:
                self._set_aside(name)

    def _mend_log(self, directory: str, holes: Sequence[Hole]) -> None:
        for base in sorted({hole.segment for hole in holes}):
            own = sorted((hole for hole in holes if hole.segment == base), key=lambda hole: (hole.start, hole.offset))
            mend_segment(self._files, directory, base, own)

    def _write_name(self, name: str, topic_id: Uuid) -> None:
        self._files.write_whole(f"{name}/{PARTITION_METADATA}", checkpoint.partition_metadata_text(topic_id))

    def _note_flushed(self, offsets: dict[TopicPartition, Offset]) -> None:
        text = checkpoint.offsets_text({**self._seen.recovery_points, **offsets})
        self._files.write_whole(checkpoint.RECOVERY_POINTS, text)

    def _set_aside(self, name: str) -> None:
        if not self._files.exists(name):
            return
        path = f"{name}/{PARTITION_METADATA}"
        found = checkpoint.read_partition_metadata(self._files.read_whole(path)) if self._files.exists(path) else None
        number = int.from_bytes(found or ZERO_UUID, "big")
        renamed = next(
            each for n in count(number) if not self._files.exists(each := f"{name[:LONGEST_NAME]}.{n:032x}{STRAY}")
        )
        self._files.rename(name, renamed)


def _offsets(each: SeenDirectory) -> tuple[Offset, Offset]:
    return each.log.start_offset, each.log.end_offset
