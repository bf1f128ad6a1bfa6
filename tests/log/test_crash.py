"""Power loss at any call (acceptance 3): what was flushed is there, nothing is torn, nothing is made up.

A drawn history of appends, rolls, flushes, truncations, deletions and clean restarts runs on the forgetful disk, which
crashes at drawn calls. After each crash the log is opened and compared with a naive twin, a list of all batches. The
owner of the log keeps a recovery point and a start offset in checkpoints, as a broker does.
"""

from collections.abc import Iterator
from random import Random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from klamm.ids import TopicPartition
from klamm.log.checkpoint import offsets_text, read_offsets
from klamm.log.log import Log
from klamm.log.names import DELETED
from klamm.log.producers import ProducerStates, Remembered
from klamm.log.settings import LogSettings
from klamm.records.batch import read_header, stamp
from klamm.sim.disk import Crashed, Disk
from tests.log.making import DIRECTORY, NOW, batch_of, everything, opened

SETTINGS = LogSettings(segment_bytes=700, index_interval_bytes=150, retention_ms=-1, file_delete_delay_ms=0)
PARTITION = TopicPartition("orders", 0)


class Owner:
    """Of one log: does what is drawn, and remembers what the log promised."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.log: Log = opened(disk, SETTINGS)
        self.history: list[bytes] = []
        """Every batch in the log, also those whose segments are deleted."""
        self.maybe: list[bytes] | None = None
        """The history if the operation under way takes effect."""
        self.safe = 0
        """Everything below was flushed."""
        self.epoch = 0
        self.sequences: dict[int, int] = {}
        self.removal: Iterator[None] | None = None
        """The one under way."""

    # What it does.

    def append(self, producer_id: int, size: int) -> None:
        sequence = self.sequences.get(producer_id, 0)
        producer = (producer_id, 0, sequence) if producer_id < 3 else None
        batch = batch_of(*[b"%d" % len(self.history) * (1 + size)] * (1 + size % 3), producer=producer)
        expected = memoryview(bytearray(batch))
        stamp(expected, self.end_offset, self.epoch)
        self.maybe = [*self.history, bytes(expected)]
        self.log.append_as_leader(batch, self.epoch, NOW)
        self.sequences[producer_id] = sequence + 1 + size % 3
        self.done()

    def new_epoch(self) -> None:
        self.epoch += 1
        self.log.epochs.assign(self.epoch, self.log.end_offset)

    def flush(self) -> None:
        files, up_to = self.log.files_to_flush()
        self.disk.flush(files)
        self.log.flushed(up_to)
        self.safe = self.log.recovery_point
        self.checkpoint()

    def truncate(self, back: int) -> None:
        readable = first_at(self.history, self.log.start_offset) + 1
        kept = self.history[: max(len(self.history) - back, readable)]
        offset = read_header(self.history[len(kept)]).base_offset if len(kept) < len(self.history) else self.end_offset
        self.maybe = kept
        self.safe = min(self.safe, offset)
        self.new_epoch()
        while self.log.truncate_to(offset) and self.log.end_offset > offset:
            # No more than a piece at once. A crash between two of them leaves a part of the old end.
            self.checkpoint()
        self.done()
        self.checkpoint()
        self.sequences = {
            producer_id: state.batches[-1].last_sequence + 1 for producer_id, state in naive_producers(kept).items()
        }

    def delete_records(self, forward: int) -> None:
        self.flush()
        self.log.advance_start_offset(min(self.log.start_offset + forward, self.log.end_offset))
        self.checkpoint()
        self.log.delete_expired_segments(NOW, self.log.end_offset)

    def remove(self, steps: int) -> None:
        """What was discarded goes while other things happen."""
        for _ in range(steps):
            if self.removal is None and self.disk.discarded:
                self.removal = self.disk.removal(self.disk.discarded.pop(0))
            if self.removal is not None and next(self.removal, "done") == "done":
                self.removal = None

    def restart(self) -> None:
        self.log.close_cleanly()
        self.safe = self.log.end_offset
        self.checkpoint()
        expected = everything(self.log)
        self.log = opened(self.disk, SETTINGS, clean=True, recovery_point=self.safe, start_offset=self.log.start_offset)
        assert everything(self.log) == expected
        self.check_state()

    def recover(self) -> None:
        """After a crash."""
        self.removal = None
        self.log = opened(
            self.disk,
            SETTINGS,
            recovery_point=self.checkpointed("recovery-point-offset-checkpoint"),
            start_offset=self.checkpointed("log-start-offset-checkpoint"),
        )
        end = self.log.end_offset
        assert end >= self.safe, f"{self.log} has lost flushed records: {self.safe}"
        timelines = [line for line in (self.history, self.maybe) if line is not None]
        batches = [stored.data for stored in everything(self.log)]
        surviving = [
            line[:count]
            for line in timelines
            for count in range(len(line) + 1)
            if end_of(line[:count]) == end and line[first_at(line, self.log.start_offset) : count] == batches
        ]
        assert surviving, f"{self.log} holds what nobody wrote"
        self.history = surviving[0]
        self.maybe = None
        self.sequences = {
            producer_id: state.batches[-1].last_sequence + 1
            for producer_id, state in naive_producers(self.history).items()
        }
        self.check_state()
        self.checkpoint()

    # What must hold.

    def check_state(self) -> None:
        """Epochs and producers are those of the batches; indexes lead to each of them."""
        start = self.log.start_offset
        assert self.log.end_offset == self.end_offset
        naive = naive_epochs(self.history, start)
        assert [entry for entry in self.log.epochs.entries() if entry[1] < self.end_offset] == naive
        kept = naive_producers(self.history[first_at(self.history, start) :])
        known = dict(self.log.producers.items())
        for producer_id, batches in naive_producers(self.history).items():
            if producer_id in known:
                assert known[producer_id].batches[-1] == batches.batches[-1]
                if start == 0:
                    assert known[producer_id].batches == batches.batches
            else:
                assert producer_id not in kept, "a producer is forgotten though its batch is there"
        for number in range(first_at(self.history, start), len(self.history)):
            header = read_header(self.history[number])
            part = self.log.read(max(header.last_offset, start), 1, self.end_offset)
            assert bytes(part) == self.history[number]

    @property
    def end_offset(self) -> int:
        return end_of(self.history)

    def done(self) -> None:
        if self.maybe is not None:
            self.history, self.maybe = self.maybe, None

    # Checkpoints.

    def checkpoint(self) -> None:
        offsets = {
            "recovery-point-offset-checkpoint": self.log.recovery_point,
            "log-start-offset-checkpoint": self.log.start_offset,
        }
        for name, offset in offsets.items():
            self.disk.write_whole(name, offsets_text({PARTITION: offset}))

    def checkpointed(self, name: str) -> int:
        offsets = read_offsets(self.disk.read_whole(name)) if self.disk.exists(name) else {}
        assert offsets is not None
        return offsets.get(PARTITION, 0)


def end_of(history: list[bytes]) -> int:
    return read_header(history[-1]).next_offset if history else 0


def first_at(history: list[bytes], offset: int) -> int:
    return next((number for number, data in enumerate(history) if read_header(data).next_offset > offset), len(history))


def naive_epochs(history: list[bytes], start: int) -> list[tuple[int, int]]:
    firsts: dict[int, int] = {}
    for data in history:
        header = read_header(data)
        if header.next_offset > start:
            firsts.setdefault(header.leader_epoch, max(header.base_offset, start))
    return sorted(firsts.items())


class NaiveProducer:
    def __init__(self) -> None:
        self.batches: list[Remembered] = []


def naive_producers(history: list[bytes]) -> dict[int, NaiveProducer]:
    producers: dict[int, NaiveProducer] = {}
    for data in history:
        header = read_header(data)
        if header.producer_id >= 0:
            producer = producers.setdefault(header.producer_id, NaiveProducer())
            remembered = Remembered(
                header.last_sequence, header.last_offset, header.last_offset_delta, header.max_timestamp
            )
            producer.batches = [*producer.batches, remembered][-5:]
    return producers


OPERATIONS = st.one_of(
    st.tuples(st.just("append"), st.integers(0, 3), st.integers(0, 60)),
    st.tuples(st.just("append"), st.integers(0, 3), st.integers(0, 60)),
    st.tuples(st.just("append"), st.integers(0, 3), st.integers(0, 60)),
    st.tuples(st.just("flush"), st.just(0), st.just(0)),
    st.tuples(st.just("roll"), st.just(0), st.just(0)),
    st.tuples(st.just("epoch"), st.just(0), st.just(0)),
    st.tuples(st.just("truncate"), st.integers(0, 8), st.just(0)),
    st.tuples(st.just("delete"), st.integers(0, 12), st.just(0)),
    st.tuples(st.just("remove"), st.integers(1, 6), st.just(0)),
    st.tuples(st.just("restart"), st.just(0), st.just(0)),
)


def do(owner: Owner, what: str, number: int, size: int) -> None:
    match what:
        case "append":
            owner.append(number, size)
        case "flush":
            owner.flush()
        case "roll":
            owner.log.roll(NOW)
        case "epoch":
            owner.new_epoch()
        case "truncate":
            owner.truncate(number)
        case "delete":
            owner.delete_records(number)
        case "remove":
            owner.remove(number)
        case "restart":
            owner.restart()


@given(
    st.lists(OPERATIONS, min_size=5, max_size=60),
    st.lists(st.integers(0, 120), min_size=1, max_size=4),
    st.integers(0, 2**32),
)
@settings(deadline=None, max_examples=150)
@example([("append", 0, 10)] * 30, [50, 3, 0], 7)
@example([*[("append", 0, 60)] * 10, ("flush", 0, 0), ("delete", 5, 0), ("remove", 3, 0)], [500], 4)
def test_power_may_be_lost_at_any_call(history: list[tuple[str, int, int]], crashes: list[int], seed: int) -> None:
    random = Random(seed)
    disk = Disk(piece_bytes=200)
    owner = Owner(disk)
    pending = list(crashes)
    disk.crash_at = pending.pop(0)
    for what, number, size in [*history, ("crash", 0, 0)]:
        try:
            if what == "crash":
                raise Crashed("at the end")
            do(owner, what, number, size)
        except Crashed:
            while True:
                disk.crash(random)
                if pending:
                    disk.crash_at = pending.pop(0)
                try:
                    owner.recover()
                    break
                except Crashed:
                    # Also recovery can be interrupted, and must be able to begin again.
                    continue
    disk.crash_at = None
    owner.remove(1_000)
    left = [name for name in disk.listing(DIRECTORY) if name.endswith(DELETED)]
    assert not left, "what is deleted gives its room back in the end"


def test_producer_states_compare_by_content() -> None:
    states = ProducerStates()
    batch = read_header(batch_of(b"a", producer=(1, 0, 0)))
    states.note(batch, 0, batch.max_timestamp, 0)
    producer = states.get(1)
    assert producer is not None
    assert producer.batches == naive_producers([bytes(batch_of(b"a", producer=(1, 0, 0)))])[1].batches
