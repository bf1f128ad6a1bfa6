"""What is wrong with a data directory that no node has open, and what can be done about it.

`inspect` reads everything: who the directory belongs to, the metadata with its snapshots, and every batch of every
partition. Each `Finding` says what it concerns and how much; where something can be done, its `Repair` says what, and
does it when it is asked to (`repairs.py`). What a start mends by itself (checkpoints, indexes) is told as harmless.

Without an image of the metadata nobody can tell whose a directory is. So the image is what all whole batches add up to,
also those behind damage, but for batches that make no sense without what is missing.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from klamm.broker.directories import STRAY, alike, is_of_a_partition, is_set_aside
from klamm.codec.primitives import Malformed
from klamm.controller.names import CLUSTER_METADATA
from klamm.ids import BrokerId, Offset, TopicPartition, Uuid, uuid_text
from klamm.log import checkpoint
from klamm.log.files import DiskFailed, Files
from klamm.log.inspection import Hole, SeenLog, seen_log, walk
from klamm.log.names import PARTITION_METADATA, is_of_a_log
from klamm.metadata import records as metadata_records
from klamm.metadata.delta import Delta
from klamm.metadata.image import EMPTY, Image, PartitionState
from klamm.node.identity import read_identity
from klamm.quorum.election import UnreadableElection, read_election, remembers
from klamm.quorum.raft import DIRECTORY
from klamm.quorum.snapshot import SnapshotFiles, UnreadableSnapshot
from klamm.quorum.voters import Voters
from klamm.records.batch import Batch, InvalidBatch
from klamm.records.control import LeaderChange, quorum_record_of
from klamm.records.control import Voters as VotersRecord
from klamm.records.record import records_of

METADATA = TopicPartition(CLUSTER_METADATA, 0)
CHECKPOINTS = (
    checkpoint.RECOVERY_POINTS,
    checkpoint.LOG_START_OFFSETS,
    checkpoint.HIGH_WATERMARKS,
    checkpoint.CLEANER_OFFSETS,
)


@dataclass(slots=True)
class Repair:
    what: str
    """What it will do, before it does it."""
    do: Callable[[], None]


@dataclass(slots=True)
class Finding:
    path: str
    what: str
    is_harmful: bool = True
    offsets: tuple[Offset, Offset] | None = None
    """The first one concerned, and the one after the last."""
    repair: Repair | None = None
    advice: str = ""
    """Where there is no repair: what a person can do."""


@dataclass(slots=True)
class Inspection:
    """What was seen."""

    findings: list[Finding] = field(default_factory=list)
    identity: dict[str, str] = field(default_factory=dict)
    """What meta.properties says; nothing if it is missing or damaged."""
    image: Image = EMPTY
    voters: Voters | None = None
    """As the metadata records them; None if it does not."""
    voter_count: int = 0
    """As the latest leader wrote it."""
    metadata: SeenLog = field(default_factory=SeenLog)
    snapshot_ends: list[Offset] = field(default_factory=list)
    """Where the snapshots of the metadata end, whether they can be read or not. The log has a batch begin there."""
    senseless: list[Hole] = field(default_factory=list)
    """Batches of the metadata that are whole and make no sense without what is missing."""
    recovery_points: dict[TopicPartition, Offset] = field(default_factory=dict)
    batches: int = 0
    kept: list[str] = field(default_factory=list)
    """Directories and files that were set aside."""

    @property
    def node_id(self) -> BrokerId | None:
        return int(self.identity["node.id"]) if self.identity else None

    @property
    def is_alone(self) -> bool | None:
        """Whether nobody else has the metadata; None if nobody can tell."""
        count = len(self.voters) if self.voters is not None else self.voter_count
        return count == 1 if count else None


def see(files: Files) -> Inspection:
    """The facts; `repairs.py` judges them."""
    seen = Inspection()
    seen.identity = read_identity(files) or {}
    _see_checkpoints(files, seen)
    _see_metadata(files, seen)
    for entry in files.listing(""):
        if is_set_aside(entry) and entry.endswith(STRAY):
            seen.kept.append(entry)
    return seen


def _see_checkpoints(files: Files, seen: Inspection) -> None:
    for name in CHECKPOINTS:
        try:
            offsets = checkpoint.read_offsets(files.read_whole(name)) if files.exists(name) else {}
        except DiskFailed as error:
            seen.findings.append(Finding(name, str(error), advice="make it readable, or remove it"))
            continue
        if offsets is None:
            what = "damaged: the next start does without it, and checks more of the logs"
            seen.findings.append(Finding(name, what, is_harmful=False))
        elif name == checkpoint.RECOVERY_POINTS:
            seen.recovery_points = offsets


def _see_metadata(files: Files, seen: Inspection) -> None:
    """The image, from the latest snapshot that can be read and all batches that follow it."""
    snapshots = SnapshotFiles(files, DIRECTORY) if files.exists(DIRECTORY) else None
    seen.snapshot_ends = [snapshot.end_offset for snapshot in snapshots.all] if snapshots is not None else []
    begin = 0
    for snapshot in reversed(snapshots.all if snapshots is not None else []):
        assert snapshots is not None
        try:
            contents = snapshots.contents(snapshot)
            delta = Delta(EMPTY)
            for record in contents.records():
                delta.replay(record)
        except (UnreadableSnapshot, Malformed, InvalidBatch, AssertionError) as error:
            seen.findings.append(Finding(DIRECTORY, f"a snapshot of the metadata cannot be read: {error}", False))
            continue
        seen.image, _ = delta.finished(snapshot.end_offset - 1, snapshot.epoch)
        seen.voters, begin = contents.voters, snapshot.end_offset
        break
    for base, position, batch, view in walk(files, DIRECTORY, seen.metadata):
        if batch.base_offset >= begin and not _replayed(seen, batch, view):
            why = f"{batch} makes no sense without what is missing"
            epoch = batch.leader_epoch
            end = position + batch.size_bytes
            seen.senseless.append(Hole(base, position, end, batch.base_offset, batch.next_offset, epoch, why))
    seen.batches += seen.metadata.batches
    if seen.metadata.start_offset > begin:
        what = f"begins at offset {seen.metadata.start_offset}, and no snapshot that can be read reaches that far"
        seen.findings.append(Finding(DIRECTORY, what, offsets=(begin, seen.metadata.start_offset)))


def _replayed(seen: Inspection, batch: Batch, view: memoryview) -> bool:
    try:
        if batch.is_control:
            for record in records_of(view):
                found = quorum_record_of(record)
                if isinstance(found, VotersRecord):
                    seen.voters = Voters.recorded(found)
                elif isinstance(found, LeaderChange):
                    seen.voter_count = len(found.voters)
            return True
        delta = Delta(seen.image)
        for record in records_of(view):
            delta.replay(metadata_records.decode(record.value or b""))
        seen.image, _ = delta.finished(batch.last_offset, batch.leader_epoch)
    except (Malformed, InvalidBatch, AssertionError, KeyError, IndexError):
        return False
    return True


@dataclass(slots=True)
class SeenDirectory:
    """One that is called like a partition's."""

    name: str
    place: TopicPartition
    found_id: Uuid | None
    topic_id: Uuid | None
    """Of the topic that has this name."""
    state: PartitionState | None
    log: SeenLog

    @property
    def is_name_damaged(self) -> bool:
        if self.found_id is None:
            return True
        return self.topic_id is not None and self.found_id != self.topic_id and alike(self.found_id, self.topic_id)


def seen_directories(files: Files, seen: Inspection) -> list[SeenDirectory]:
    found = []
    for name in files.listing(""):
        if not is_of_a_partition(name) or is_set_aside(name):
            continue
        try:
            if not any(map(is_of_a_log, files.listing(name))):
                continue
            topic_name, _, number = name.rpartition("-")
            place = TopicPartition(topic_name, int(number))
            topic = seen.image.topics.get(topic_name)
            path = f"{name}/{PARTITION_METADATA}"
            found_id = checkpoint.read_partition_metadata(files.read_whole(path)) if files.exists(path) else None
            is_compacted = "compact" in seen.image.topic_config(topic_name).get("cleanup.policy", "")
            log = seen_log(files, name, whole_from=None if is_compacted else seen.recovery_points.get(place, 0))
        except DiskFailed as error:
            seen.findings.append(
                Finding(name, str(error), advice="make it readable; its partition is offline until then")
            )
            continue
        seen.batches += log.batches
        seen.kept += [f"{name}/{kept}" for kept in log.kept]
        topic_id = topic.topic_id if topic is not None else None
        state = seen.image.partition(*place)
        found.append(SeenDirectory(name, place, found_id, topic_id, state, log))
    return found


def vote_problem(files: Files, seen: Inspection) -> str | None:
    """Why nobody can tell whom this node voted for; None if all is well."""
    try:
        read_election(files, DIRECTORY)
    except (UnreadableElection, DiskFailed) as error:
        return str(error)
    if seen.metadata.end_offset and not remembers(files, DIRECTORY):
        return f"{DIRECTORY} holds a log and no quorum-state: whom this node voted for is forgotten"
    return None


def id_text(topic_id: Uuid | None) -> str:
    return uuid_text(topic_id) if topic_id is not None else "unknown"
