"""Snapshots of the metadata: each is what the committed log adds up to below its offset, voters included.

I8, I9, I10. The checker follows the committed log itself, batch by batch, out of whichever log holds the next one,
and keeps the cluster as it was after each. What a node writes as a snapshot, fetches as one, or takes for the cluster,
has to be the same. A leader of the quorum has everything that is committed: it never loads one.
"""

from klamm.facts import Fact
from klamm.ids import Offset
from klamm.metadata import records as metadata_records
from klamm.metadata.delta import Delta
from klamm.metadata.image import EMPTY, Image
from klamm.quorum.facts import SnapshotFetched, SnapshotTaken
from klamm.quorum.messages import SnapshotId
from klamm.quorum.raft import DIRECTORY
from klamm.quorum.snapshot import SnapshotContents, file_name
from klamm.quorum.voters import Voters
from klamm.records.batch import batches
from klamm.records.control import Voters as VotersRecord
from klamm.records.control import quorum_record_of
from klamm.records.record import records_of
from klamm.sim.machine import Machine
from klamm.sim.promise import broken

AT_ONCE_BYTES = 1 << 20


class SnapshotChecker:
    def __init__(self) -> None:
        self._image = EMPTY
        self._voters: Voters | None = None
        self._known: dict[Offset, tuple[Image, Voters | None]] = {}
        """The cluster, and who votes, after the batch that ends with this offset."""
        self._new: list[tuple[Machine, SnapshotId]] = []
        self._seen: dict[tuple[int, int], Image] = {}
        self.compared = 0

    def fact(self, machine: Machine, fact: Fact) -> None:
        if isinstance(fact, SnapshotFetched) and machine.broker.quorum.is_leader:
            broken("I9", f"{machine.name} leads the quorum and {fact}")
        if isinstance(fact, SnapshotFetched | SnapshotTaken):
            # Looked at after the step: by then the checker has followed the log as far.
            self._new.append((machine, SnapshotId(fact.end_offset, fact.epoch)))

    def after_step(self, machine: Machine) -> None:
        """The disk must not fail now: it is only looked at."""
        raft = machine.broker.quorum
        if self._end < raft.high_watermark:
            self._follow(machine)
        new, self._new = self._new, []
        for other, snapshot in new:
            if other is machine:
                self._compare(machine, snapshot)
        self._look_at_image(machine)

    @property
    def _end(self) -> Offset:
        return self._image.offset + 1

    def _follow(self, machine: Machine) -> None:
        raft = machine.broker.quorum
        while raft.log.start_offset <= self._end < min(raft.high_watermark, raft.log.end_offset):
            found = raft.log.read(self._end, AT_ONCE_BYTES, raft.high_watermark, at_least_one=True)
            data = memoryview(b"".join(bytes(region) for region in found.regions))
            if not data:
                return
            for position, batch in batches(data):
                view = data[position : position + batch.size_bytes]
                delta = Delta(self._image)
                for record in records_of(view):
                    if not batch.is_control:
                        delta.replay(metadata_records.decode(record.value or b""))
                    elif isinstance(voters := quorum_record_of(record), VotersRecord):
                        self._voters_are(Voters.recorded(voters))
                self._image, _ = delta.finished(batch.last_offset, batch.leader_epoch)
                self._known[batch.last_offset] = self._image, self._voters

    def _voters_are(self, voters: Voters) -> None:
        """One at a time, so that majorities before and after share a voter."""
        if self._voters is not None and len({*voters} ^ {*self._voters}) > 1:
            broken("I5", f"{self._voters} are followed by {voters}")
        self._voters = voters

    def _compare(self, machine: Machine, snapshot: SnapshotId) -> None:
        known = self._known.get(snapshot.end_offset - 1)
        if known is None:
            if snapshot.end_offset <= self._end:
                broken("I8", f"{machine.name}'s {snapshot} ends where no committed batch does")
            # Nobody has shown the checker what was committed there.
            return
        contents = SnapshotContents(machine.disk.file(f"{DIRECTORY}/{file_name(snapshot)}"))
        delta = Delta(EMPTY)
        for record in contents.records():
            delta.replay(record)
        image, _ = delta.finished(snapshot.end_offset - 1, snapshot.epoch)
        if image != known[0]:
            broken("I8", f"{machine.name}'s {snapshot} is not what the log adds up to: {_difference(image, known[0])}")
        if contents.voters != known[1]:
            broken("I8", f"{machine.name}'s {snapshot} has {contents.voters}, the log has {known[1]}")
        self.compared += 1

    def _look_at_image(self, machine: Machine) -> None:
        image, life = machine.broker.image, (machine.node_id, machine.lives)
        if self._seen.get(life) is image:
            return
        self._seen[life] = image
        known = self._known.get(image.offset)
        if known is not None and known[0] != image:
            difference = _difference(image, known[0])
            broken("I10", f"{machine.name} knows another cluster at {image.offset} than the log tells: {difference}")


def _difference(image: Image, known: Image) -> str:
    for part in Image.__dataclass_fields__:
        found, wanted = getattr(image, part), getattr(known, part)
        if found != wanted:
            return f"{part}: {_short(found)} instead of {_short(wanted)}"
    return "nothing that can be named"


def _short(value: object) -> str:
    text = str(dict(value)) if hasattr(value, "items") else str(value)  # type: ignore[call-overload]
    return text if len(text) < 400 else f"{text[:400]} ..."
