"""Idempotence (TRAPS 23): every batch once, in order, and a retry gets the answer of the first time."""

import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klamm.errors import ErrorCode, KafkaError
from klamm.log.log import Appended, Log
from klamm.log.producers import ProducerStates
from klamm.log.settings import LogSettings
from klamm.log.snapshots import read_snapshot, snapshot_bytes
from klamm.records.batch import MAX_SEQUENCE, TRANSACTIONAL_BIT, Batch, read_header
from klamm.records.control import end_transaction_marker
from klamm.sim.disk import Disk
from tests.log.making import NOW, SMALL, batch_of, later, opened, values_of


def send(log: Log, sequence: int, *values: bytes, epoch: int = 0, producer_id: int = 1) -> Appended:
    return log.append_as_leader(batch_of(*values, producer=(producer_id, epoch, sequence)), 0, NOW)


def refusal(log: Log, sequence: int, *values: bytes, epoch: int = 0) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        send(log, sequence, *values, epoch=epoch)
    return refused.value.code


def test_a_retry_gets_the_answer_of_the_first_time() -> None:
    log = opened(Disk())
    for number in range(6):
        send(log, 2 * number, b"a", b"b")
    for number in range(1, 6):
        again = send(log, 2 * number, b"a", b"b")
        assert (again.duplicate, again.base_offset, again.last_offset) == (True, 2 * number, 2 * number + 1)
        assert again.append_time_ms == NOW.wall_ms + 1, "the batch's own time, as Kafka does it"
    assert refusal(log, 0, b"a", b"b") == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "five are remembered"
    assert log.end_offset == 12


def test_a_gap_is_out_of_order_and_so_is_half_a_repetition() -> None:
    log = opened(Disk())
    send(log, 0, b"a", b"b")
    assert refusal(log, 3, b"c") == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refusal(log, 0, b"a") == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refusal(log, 1, b"b") == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 2, b"c").base_offset == 2


def test_an_unknown_producer_may_begin_anywhere() -> None:
    assert send(opened(Disk()), 100, b"a").base_offset == 0


def test_a_new_epoch_begins_at_zero_and_fences_the_old_one() -> None:
    log = opened(Disk())
    send(log, 0, b"a")
    assert refusal(log, 1, b"b", epoch=1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    send(log, 0, b"b", epoch=1)
    assert refusal(log, 1, b"zombie", epoch=0) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert values_of(log) == [(0, b"a"), (1, b"b")]


def test_sequences_wrap() -> None:
    log = opened(Disk())
    send(log, MAX_SEQUENCE - 1, b"a", b"b", b"c")
    assert refusal(log, 2, b"x") == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 1, b"d").base_offset == 3
    assert send(log, MAX_SEQUENCE - 1, b"a", b"b", b"c").duplicate


def test_a_plain_batch_inside_a_transaction_is_refused_until_its_marker() -> None:
    log = opened(Disk())
    log.append_as_leader(batch_of(b"a", producer=(1, 0, 0), attributes=TRANSACTIONAL_BIT), 0, NOW)
    assert log.producers.first_open_offset() == 0
    assert refusal(log, 1, b"b") == ErrorCode.INVALID_TXN_STATE
    log.append_own(end_transaction_marker(1, 0, commit=False, coordinator_epoch=3, timestamp=NOW.wall_ms), 0, NOW)
    assert log.producers.first_open_offset() is None
    assert send(log, 1, b"b").base_offset == 2


def test_silent_producers_are_forgotten_by_our_clock_not_by_theirs() -> None:
    log = opened(Disk())
    log.append_as_leader(batch_of(b"old", timestamp=5, producer=(1, 0, 0)), 0, NOW)
    log.append_as_leader(batch_of(b"new", producer=(2, 0, 0)), 0, later(50))
    assert log.producers.expire(NOW.wall_ms + 99, 100) == 0
    assert log.producers.expire(NOW.wall_ms + 100, 100) == 1
    assert [producer_id for producer_id, _ in log.producers.items()] == [2]
    assert send(log, 77, b"again").duplicate is False


def test_all_five_batches_survive_a_restart() -> None:
    """Kafka keeps one. Here the snapshot holds the other four behind Kafka's entries."""
    for clean in (True, False):
        disk = Disk()
        log = opened(disk)
        for number in range(40):
            send(log, number, b"x" * 100)
        assert len(log.segments.all) > 1
        if clean:
            log.close_cleanly()
        log = opened(disk, clean=clean, recovery_point=log.recovery_point)
        for number in range(35, 40):
            assert send(log, number, b"x" * 100).base_offset == number
        assert refusal(log, 34, b"x" * 100) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert send(log, 40, b"next").base_offset == 40


def test_a_damaged_snapshot_is_worth_nothing() -> None:
    log = opened(Disk())
    for number in range(3):
        send(log, number // 2, b"a", producer_id=number % 2)
    data = snapshot_bytes(log.producers)
    assert read_snapshot(data, 0) is not None
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0x10
        assert read_snapshot(bytes(damaged), 0) is None
        assert read_snapshot(data[:position], 0) is None


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.integers(0, 2),
            st.sampled_from([0, 1, 2, 3, 4, 5, 6, MAX_SEQUENCE, MAX_SEQUENCE - 1]),
            st.integers(1, 3),
            st.booleans(),
        ),
        max_size=60,
    )
)
@settings(deadline=None)
def test_the_judgement_equals_that_of_one_who_remembers_everything(
    history: list[tuple[int, int, int, int, bool]],
) -> None:
    """The naive judge looks at all that a producer ever wrote, the last five batches of it for retries."""
    log = opened(Disk(), replace(SMALL, segment_bytes=100_000))
    written: dict[int, list[tuple[int, int, int, int]]] = {}
    for producer_id, epoch, sequence, count, follow_on in history:
        past = written.setdefault(producer_id, [])
        if follow_on and past:
            epoch, sequence = past[-1][0], (past[-1][1] + past[-1][2]) % 2**31
        this_epoch = [batch for batch in past if batch[0] == epoch]
        repeated = [batch for batch in this_epoch[-5:] if batch[1:3] == (sequence, count)]
        if not past:
            expected: ErrorCode | int | None = None
        elif epoch < past[-1][0]:
            expected = ErrorCode.INVALID_PRODUCER_EPOCH
        elif repeated and sequence != (past[-1][1] + past[-1][2]) % 2**31:
            expected = repeated[0][3]
        elif epoch > past[-1][0]:
            expected = None if sequence == 0 else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        else:
            follows = sequence == (past[-1][1] + past[-1][2]) % 2**31
            expected = None if follows else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        end = log.end_offset
        try:
            appended = send(log, sequence, *[b"v"] * count, epoch=epoch, producer_id=producer_id)
        except KafkaError as error:
            assert error.code == expected
            assert log.end_offset == end
        else:
            assert appended.duplicate == (expected is not None)
            assert appended.base_offset == (end if expected is None else expected)
            if expected is None:
                past.append((epoch, sequence, count, end))


def test_a_log_of_many_producers_opens_with_all_of_them() -> None:
    disk = Disk()
    log = opened(disk, LogSettings())
    for producer_id in range(300):
        send(log, 5, b"a", producer_id=producer_id)
    log.close_cleanly()
    assert len(opened(disk, LogSettings(), clean=True).producers) == 300


def test_no_more_producers_are_remembered_than_may_be() -> None:
    """A hundred thousand that come, write once and go cost what a few cost; who wrote lately is remembered."""
    few, many = _bytes_of_producers(2_000), _bytes_of_producers(20_000)
    assert many < 1.3 * few


def _bytes_of_producers(count: int) -> int:
    log = opened(Disk(), replace(SMALL, max_producers=1_000, segment_bytes=1 << 30))
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(count):
            log.producers.note(_noted(number), number, 0, NOW.wall_ms + number)
            if number % 100 == 0:
                log.append_as_leader(batch_of(b"x", producer=(10**6, 0, number // 100)), 0, later(number))
                assert len(log.producers) <= 1_100
        assert len(log.producers) <= 1_100 and log.producers.forgotten >= count - 1_100
        assert log.producers.get(count - 1) is not None and log.producers.get(10**6) is not None
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def _noted(producer_id: int) -> Batch:
    return read_header(memoryview(batch_of(b"a", producer=(producer_id, 0, 0))))


def test_the_longest_silent_are_forgotten_and_never_one_with_an_open_transaction() -> None:
    states = ProducerStates()
    for number in range(64):
        states.note(_noted(number), number, 0, 1_000 - number)
    open_one = states.get(63)
    assert open_one is not None
    open_one.open_since = 63
    states.forget_oldest(32)
    assert len(states) == 30 and states.get(63) is open_one
    assert [number for number in range(64) if states.get(number) is not None] == [*range(29), 63]
    states.forget_oldest(32)
    assert len(states) == 30, "there is room"


def test_a_producer_that_was_forgotten_goes_on_where_it_is() -> None:
    log = opened(Disk(), replace(SMALL, max_producers=2))
    for number in range(4):
        send(log, 0, b"a", producer_id=number)
    assert len(log.producers) == 2
    assert send(log, 1, b"b", producer_id=0).base_offset == 4
