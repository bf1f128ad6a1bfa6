"""The metadata log's agreement: propose records, hear when they are committed.

Raft by fetch (KRaft), for now with one voter. It is elected without asking anybody, but by the same rules: a new epoch
at every start, its vote on disk before anything else, a LeaderChange as the first batch of the epoch. A batch is
committed when a majority of the voters has flushed it and the leader's own epoch has begun at or below it, so the flush
of that LeaderChange is also what commits everything an earlier life left in the log.

A state machine without waiting: `propose` appends to the page cache, `ready` says what to flush and what to apply,
`flushed` is told when the disk is done. One flush is under way at a time; what was proposed meanwhile shares the next.
"""

from collections import deque
from collections.abc import Sequence

from klamm.codec.primitives import Malformed
from klamm.config import BrokerConfig
from klamm.facts import Tell, unheard
from klamm.ids import NO_BROKER, BrokerId, Epoch, Now, Offset, Uuid
from klamm.log.files import Files
from klamm.log.log import Log
from klamm.log.settings import LogSettings
from klamm.metadata import records as metadata_records
from klamm.metadata.records import MetadataRecord
from klamm.quorum.election import Election, read_election, write_election
from klamm.quorum.facts import LeaderElected
from klamm.quorum.majority import committed_offset
from klamm.quorum.ready import CommittedBatch, Flush, Ready
from klamm.records.batch import InvalidBatch, batches, intact
from klamm.records.builder import BatchBuilder
from klamm.records.control import EpochVoter, LeaderChange, quorum_batch
from klamm.records.record import records_of

TOPIC = "__cluster_metadata"
DIRECTORY = f"{TOPIC}-0"

# How much of the log one `ready` reads and decodes: some thousand records, a few milliseconds.
REPLAY_BYTES = 128 * 1024


class UnreadableMetadata(Exception):  # noqa: N818
    """A committed batch of the metadata log cannot be understood. Guessing would lose topics: the node stops."""


class Raft:
    def __init__(self, node_id: BrokerId, directory_id: Uuid, log: Log, files: Files, tell: Tell = unheard) -> None:
        self.node_id = node_id
        self.directory_id = directory_id
        self.log = log
        self.epoch: Epoch = 0
        self.leader_id: BrokerId = NO_BROKER
        self.committed: Offset = 0
        """Everything below it is committed. It never goes back."""
        self._files = files
        self._tell = tell
        self._epoch_start: Offset = 0
        self._flushed_ends: dict[BrokerId, Offset] = {node_id: 0}
        self._flushing = False
        self._applied: Offset = log.start_offset
        self._proposed: deque[CommittedBatch] = deque()

    @classmethod
    def open(
        cls,
        config: BrokerConfig,
        directory_id: Uuid,
        files: Files,
        now: Now,
        *,
        clean: bool,
        recovery_point: Offset = 0,
        tell: Tell = unheard,
    ) -> "Raft":
        """On what the disk holds. Nothing is promised to anybody before `start`."""
        settings = LogSettings(
            segment_bytes=config.integer("metadata.log.segment.bytes"),
            segment_ms=config.integer("metadata.log.segment.ms"),
            # Without snapshots the log is all there is.
            retention_ms=-1,
            retention_bytes=-1,
        )
        log = Log.open(DIRECTORY, files, settings, now, clean=clean, recovery_point=recovery_point, tell=tell)
        return cls(config.node_id, directory_id, log, files, tell)

    def start(self, now: Now) -> None:
        """Become leader of a new epoch. What the log holds is committed, and told, once `ready`'s flush is done."""
        assert self.leader_id == NO_BROKER, "started twice"
        before = read_election(self._files, DIRECTORY)
        self.epoch = max(before.epoch, self.log.latest_epoch) + 1
        election = Election(self.epoch, self.node_id, self.node_id, self.directory_id)
        write_election(self._files, DIRECTORY, election)
        self.leader_id = self.node_id
        self._epoch_start = self.log.end_offset
        voters = [EpochVoter(voter_id=self.node_id)]
        # Version 1 would hold the voters' directories, but Kafka writes 0 and its tools read nothing else.
        change = LeaderChange(version=0, leader_id=self.node_id, voters=voters, granting_voters=voters)
        self._append(quorum_batch([change], timestamp=now.wall_ms, leader_epoch=self.epoch), (), now)
        self._tell(LeaderElected(self.node_id, self.epoch, self._epoch_start))

    def propose(self, records: Sequence[MetadataRecord], now: Now) -> Offset:
        """Append the records as one batch, all or nothing; the offset of the last. Committed is another matter.

        What does not fit into a segment of the log is refused (KafkaError), and nothing has happened.
        """
        assert self.leader_id == self.node_id and records
        builder = BatchBuilder(leader_epoch=self.epoch)
        for record in records:
            builder.append(None, metadata_records.encode(record), now.wall_ms)
        return self._append(builder.build(), records, now)

    def ready(self) -> Ready:
        """What is to be done now. Ask again until there is nothing: a long log is told in pieces."""
        return Ready(self._next_flush(), self._next_committed())

    def flushed(self, up_to: Offset) -> None:
        """The flush that `ready` asked for is done."""
        assert self._flushing and up_to >= self._flushed_ends[self.node_id]
        self._flushing = False
        self.log.flushed(up_to)
        self._flushed_ends[self.node_id] = up_to
        majority = committed_offset(self._flushed_ends.values())
        # A majority for what an earlier epoch wrote proves nothing by itself (Raft, figure 8).
        if majority > self._epoch_start:
            assert majority >= self.committed
            self.committed = majority

    def flush_failed(self, reason: str) -> None:
        """A failed flush is never tried again. Nothing more is committed until the log has been opened anew."""
        self.log.fail(reason)

    def close_cleanly(self) -> None:
        self.log.close_cleanly()

    def __repr__(self) -> str:
        return (
            f"<quorum node={self.node_id} leader={self.leader_id} epoch={self.epoch} "
            f"log={self.log.start_offset}..{self.log.end_offset} committed={self.committed} applied={self._applied}>"
        )

    def _append(self, batch: bytearray, records: Sequence[MetadataRecord], now: Now) -> Offset:
        base = self.log.end_offset
        self.log.append_own(memoryview(batch), self.epoch, now)
        last = self.log.end_offset - 1
        self._proposed.append(CommittedBatch(base, last, self.epoch, records))
        return last

    def _next_flush(self) -> Flush | None:
        if self._flushing or self.log.failed is not None or self.log.end_offset <= self._flushed_ends[self.node_id]:
            return None
        self._flushing = True
        return Flush(*self.log.files_to_flush())

    def _next_committed(self) -> list[CommittedBatch]:
        """Ours from memory, as they were proposed; what an earlier life wrote from the log."""
        found: list[CommittedBatch] = []
        if self._applied < min(self.committed, self._epoch_start):
            found = self._read(self._applied, self._epoch_start)
        elif self._applied < self.committed:
            while self._proposed and self._proposed[0].last_offset < self.committed:
                found.append(self._proposed.popleft())
        if found:
            assert found[0].base_offset == self._applied and found[-1].last_offset < self.committed
            self._applied = found[-1].last_offset + 1
        return found

    def _read(self, start: Offset, end: Offset) -> list[CommittedBatch]:
        found = []
        piece = b"".join(map(bytes, self.log.read(start, REPLAY_BYTES, end).regions))
        for position, batch in batches(piece):
            try:
                records = _decoded(memoryview(piece)[position : position + batch.size_bytes])
            except (Malformed, InvalidBatch) as error:
                raise UnreadableMetadata(f"{DIRECTORY} at offset {batch.base_offset}: {error}") from error
            found.append(CommittedBatch(batch.base_offset, batch.last_offset, batch.leader_epoch, records))
        return found


def _decoded(view: memoryview) -> list[MetadataRecord]:
    if intact(view).is_control:
        return []
    return [metadata_records.decode(record.value or b"") for record in records_of(view)]
