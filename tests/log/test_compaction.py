"""Compaction: of every key the last record, at its own offset, for readers at every offset."""

from copy import deepcopy
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klamm.ids import Now
from klamm.log.compaction import Compaction
from klamm.log.files import DiskFull
from klamm.log.log import Log
from klamm.log.settings import DAY_MS, LogSettings
from klamm.log.walking import Damaged
from klamm.records.batch import TRANSACTIONAL_BIT
from klamm.records.compression import Codec
from klamm.records.control import end_transaction_marker
from klamm.sim.disk import Crashed, Disk
from tests.log.making import DIRECTORY, NOW, batch_of, everything, later, opened, values_of

COMPACT = LogSettings(segment_bytes=600, index_interval_bytes=100, compact=True, delete=False, file_delete_delay_ms=0)


def put(
    log: Log, *pairs: tuple[bytes, bytes | None], now: Now = NOW, producer: tuple[int, int, int] | None = None
) -> None:
    keys, values = zip(*pairs, strict=True)
    log.append_as_leader(batch_of(*values, keys=keys, timestamp=now.wall_ms, producer=producer), 0, now)


def compact(disk: Disk, log: Log, first_dirty: int = 0, now: Now = NOW, max_keys: int = 1000) -> int:
    """To the end; returns how far the log is clean then."""
    compaction = log.compaction(now, first_dirty, log.end_offset, max_keys=max_keys)
    return run(disk, compaction) if compaction is not None else first_dirty


def run(disk: Disk, compaction: Compaction, budget: int = 200) -> int:
    while not compaction.step(budget):
        if compaction.to_flush:
            disk.flush(compaction.to_flush)
            compaction.flushed()
    return compaction.clean_to


def table(log: Log, from_offset: int = 0) -> dict[bytes, bytes]:
    """What somebody knows who reads everything from an offset on."""
    known: dict[bytes, bytes] = {}
    for stored in everything(log):
        for record in stored.records:
            if record.offset >= from_offset:
                assert record.key is not None
                known.pop(record.key, None)
                if record.value is not None:
                    known[record.key] = record.value
    return known


def test_only_the_last_record_of_a_key_stays_and_keeps_its_offset() -> None:
    disk = Disk()
    log = opened(disk, COMPACT)
    for number in range(30):
        put(log, (b"k%d" % (number % 3), b"%d" % number))
    log.roll(NOW)
    assert compact(disk, log) == 30
    assert values_of(log) == [(27, b"27"), (28, b"28"), (29, b"29")]
    assert (log.start_offset, log.end_offset) == (0, 30)
    put(log, (b"new", b"30"))
    assert values_of(log)[-1] == (30, b"30")


def test_the_active_segment_and_what_is_not_committed_stay() -> None:
    disk = Disk()
    log = opened(disk, COMPACT)
    for number in range(30):
        put(log, (b"k", b"%d" % number))
    bases = [segment.base_offset for segment in log.segments.all]
    compaction = log.compaction(NOW, 0, bases[2] + 1)
    assert compaction is not None
    assert run(disk, compaction) == bases[2]
    assert [offset for offset, _ in values_of(log)] == list(range(bases[2] - 1, 30))


def test_small_segments_become_one() -> None:
    """Copies of full segments are small; the next round puts neighbours together."""
    disk = Disk()
    log = opened(disk, replace(COMPACT, min_cleanable_dirty_ratio=0))
    for number in range(60):
        put(log, (b"k%d" % (number % 2), b"%d" % number))
    before = len(log.segments.all)
    clean = compact(disk, log)
    log.roll(NOW)
    put(log, (b"k0", b"60"))
    compact(disk, log, clean)
    assert len(log.segments.all) < before / 2
    bases = [f"{segment.base_offset:020d}" for segment in log.segments.all]
    files = {name[:20] for name in disk.listing(DIRECTORY) if name[0].isdigit() and not name.endswith("deleted")}
    assert files == {*bases}


def test_it_waits_until_there_is_enough_to_do() -> None:
    log = opened(Disk(), replace(COMPACT, min_cleanable_dirty_ratio=0.5))
    for number in range(20):
        put(log, (b"k%d" % number, b"x"))
    log.roll(NOW)
    bases = [segment.base_offset for segment in log.segments.all]
    assert len(bases) == 4
    assert log.compaction(NOW, bases[2], 20) is None, "a third is dirty"
    assert log.compaction(NOW, bases[1], 20) is not None
    log = opened(Disk(), replace(COMPACT, max_compaction_lag_ms=1000))
    put(log, (b"k", b"x"))
    put(log, (b"k", b"y"))
    log.roll(NOW)
    put(log, (b"k", b"z"))
    assert log.compaction(later(1000), 2, 3) is None
    assert log.compaction(later(1001), 0, 3) is not None


def test_only_compacted_topics_are_compacted() -> None:
    log = opened(Disk(), replace(COMPACT, compact=False))
    for number in range(20):
        put(log, (b"k", b"%d" % number))
    assert log.compaction(NOW, 0, 20) is None


def test_young_records_wait_for_min_compaction_lag() -> None:
    disk = Disk()
    log = opened(disk, replace(COMPACT, min_compaction_lag_ms=1000, segment_ms=500))
    put(log, (b"k", b"old"))
    put(log, (b"k", b"young"), now=later(600))
    put(log, (b"k", b"younger"), now=later(1200))
    assert len(log.segments.all) == 3
    assert log.compaction(later(999), 0, 3) is None
    assert compact(disk, log, now=later(1000)) == 1
    assert [offset for offset, _ in values_of(log)] == [0, 1, 2]
    assert compact(disk, log, 1, now=later(1600)) == 2
    assert [offset for offset, _ in values_of(log)] == [1, 2]


def test_a_tombstone_stays_for_delete_retention_after_it_was_first_met() -> None:
    """Readers that are at most so far behind learn that the key is gone. The batch carries the deadline."""
    disk = Disk()
    log = opened(disk, replace(COMPACT, delete_retention_ms=DAY_MS, min_cleanable_dirty_ratio=0))
    put(log, (b"gone", b"1"), (b"kept", b"1"))
    put(log, (b"gone", None))
    log.roll(NOW)
    compact(disk, log)
    assert values_of(log) == [(1, b"1"), (2, None)]
    stored = everything(log)[-1]
    assert stored.header.delete_horizon_ms == NOW.wall_ms + DAY_MS
    assert stored.records[0].timestamp == NOW.wall_ms, "records keep their times"
    put(log, (b"other", b"1"))
    log.roll(NOW)
    compact(disk, log, 3, now=later(DAY_MS - 1))
    assert (2, None) in values_of(log)
    put(log, (b"other", b"2"))
    log.roll(NOW)
    compact(disk, log, 4, now=later(DAY_MS))
    assert (2, None) not in values_of(log)
    assert table(log) == {b"kept": b"1", b"other": b"2"}


def test_the_last_batch_of_a_producer_stays_if_only_as_a_header() -> None:
    """Its next batch has to follow on it, also after the log was replayed."""
    disk = Disk()
    log = opened(disk, COMPACT)
    put(log, (b"k", b"1"), producer=(7, 3, 0))
    put(log, (b"k", b"2"), (b"k", b"3"), producer=(7, 3, 1))
    put(log, (b"k", b"4"))
    log.roll(NOW)
    compact(disk, log)
    kept = everything(log)
    assert [(stored.header.base_offset, stored.header.count) for stored in kept] == [(1, 0), (3, 1)]
    assert (kept[0].header.last_offset, kept[0].header.base_sequence) == (2, 1)
    for name in [name for name in disk.listing(DIRECTORY) if name.endswith(".snapshot")]:
        disk.remove(f"{DIRECTORY}/{name}")
    log = opened(disk, COMPACT)
    put(log, (b"k", b"5"), producer=(7, 3, 3))
    assert log.end_offset == 5


def test_the_last_offset_stays_even_if_its_record_goes() -> None:
    disk = Disk()
    log = opened(disk, replace(COMPACT, delete_retention_ms=0))
    put(log, (b"k", b"1"))
    put(log, (b"k", None))
    log.roll(NOW)
    clean = compact(disk, log)
    put(log, (b"k", b"2"))
    put(log, (b"k", None))
    log.roll(NOW)
    clean = compact(disk, log, clean, now=later(1))
    assert [offset for offset, _ in values_of(log)] == [3]
    log = opened(disk, COMPACT)
    assert log.end_offset == 4


def test_transactions_supersede_nothing_and_markers_stay() -> None:
    disk = Disk()
    log = opened(disk, COMPACT)
    put(log, (b"k", b"committed"))
    aborted = batch_of(b"perhaps aborted", keys=[b"k"], producer=(1, 0, 0), attributes=TRANSACTIONAL_BIT)
    log.append_as_leader(aborted, 0, NOW)
    log.append_own(end_transaction_marker(1, 0, commit=False, coordinator_epoch=0, timestamp=NOW.wall_ms), 0, NOW)
    log.roll(NOW)
    compact(disk, log)
    assert [stored.header.base_offset for stored in everything(log)] == [0, 1, 2]
    assert everything(log)[2].header.is_control


def test_with_little_memory_it_takes_several_rounds() -> None:
    disk = Disk()
    log = opened(disk, replace(COMPACT, min_cleanable_dirty_ratio=0))
    for number in range(60):
        put(log, (b"k%d" % (number % 20), b"%d" % number))
    log.roll(NOW)
    clean, rounds = 0, 0
    while clean < 60:
        before, clean = clean, compact(disk, log, clean, max_keys=3)
        assert clean > before
        rounds += 1
    assert rounds > 3
    assert [offset for offset, _ in values_of(log)] == list(range(40, 60))


def test_slices_are_no_larger_than_asked_for() -> None:
    disk = Disk()
    log = opened(disk, COMPACT)
    for number in range(100):
        put(log, (b"k%d" % (number % 7), bytes(20)))
    compaction = log.compaction(NOW, 0, 100)
    assert compaction is not None
    steps = 1
    while not compaction.step(100):
        steps += 1
        disk.flush(compaction.to_flush)
        compaction.flushed()
        put(log, (b"meanwhile", b"%d" % steps))
    assert steps > 50
    assert table(log)[b"meanwhile"] == b"%d" % steps


@pytest.mark.parametrize("when", [0, 1, 5, 20, 45])
def test_truncation_retention_and_closing_end_a_compaction_that_is_under_way(when: int) -> None:
    for end_it in (
        lambda log: log.truncate_to(15),
        lambda log: log.truncate_fully_and_start_at(99),
        lambda log: (log.advance_start_offset(20), log.delete_expired_segments(NOW, log.end_offset)),
        lambda log: log.close_cleanly(),
    ):
        disk = Disk()
        log = opened(disk, COMPACT)
        for number in range(30):
            put(log, (b"k%d" % number, bytes(20)))
        compaction = log.compaction(NOW, 0, 30)
        assert compaction is not None
        for _ in range(when):
            if not compaction.is_done:
                compaction.step(1)
                compaction.flushed()
        end_it(log)
        assert compaction.is_done
        assert not [name for name in disk.listing(DIRECTORY) if name.endswith((".cleaned", ".swap"))]
        assert compaction.step(1000)
        before = values_of(log)
        assert values_of(opened(disk, COMPACT, start_offset=log.start_offset)) == before


def test_a_copy_that_does_not_fit_on_the_disk_leaves_the_log_as_it_was() -> None:
    disk = Disk()
    log = opened(disk, COMPACT)
    for number in range(30):
        put(log, (b"k%d" % (number % 3), b"%d" % number))
    before = values_of(log)
    compaction = log.compaction(NOW, 0, 30)
    assert compaction is not None
    disk.fail_once("append", 1)
    with pytest.raises(DiskFull):
        run(disk, compaction)
    disk.failure = lambda call, path: None
    assert log.failed is None and compaction.is_done and compaction.clean_to == 0
    assert values_of(log) == before
    assert not [name for name in disk.listing(DIRECTORY) if name.endswith(".cleaned")]
    put(log, (b"k", b"goes on"))
    assert compact(disk, log) > 0


def test_a_damaged_log_is_not_compacted() -> None:
    disk = Disk()
    log = opened(disk, COMPACT)
    for number in range(30):
        put(log, (b"k%d" % (number % 3), b"%d" % number))
    disk.names[log.segments.all[0].log.path].content[70] ^= 1
    compaction = log.compaction(NOW, 0, 30)
    assert compaction is not None
    with pytest.raises(Damaged):
        run(disk, compaction)
    assert log.failed is None


PAIRS = st.tuples(st.integers(0, 6), st.one_of(st.none(), st.integers(0, 99)))


@given(
    history=st.lists(
        st.one_of(
            st.tuples(st.just("put"), st.lists(PAIRS, min_size=1, max_size=4)),
            st.tuples(st.just("put"), st.lists(PAIRS, min_size=1, max_size=4)),
            st.tuples(st.just("compact"), st.integers(1, 30)),
            st.tuples(st.just("wait"), st.integers(0, 2000)),
            st.tuples(st.just("restart"), st.booleans()),
        ),
        min_size=5,
        max_size=60,
    ),
    codec=st.sampled_from(list(Codec)),
    idempotent=st.booleans(),
)
@settings(deadline=None, max_examples=100)
def test_readers_at_every_offset_learn_what_they_would_have_learnt_without_compaction(
    history: list[tuple[str, object]], codec: Codec, idempotent: bool
) -> None:
    """The naive twin is a list of all records. A reader from offset N on ends up with the same table as one who read
    the whole list from N on, except for keys whose last word was a tombstone older than `delete.retention.ms`: those it
    may not hear of. Records that stay are those of the list, and of the cleaned part each key is there once."""
    how = replace(COMPACT, delete_retention_ms=1000, min_cleanable_dirty_ratio=0, segment_bytes=400)
    disk = Disk()
    log = opened(disk, how)
    naive: list[tuple[bytes, bytes | None]] = []
    clean, now, sequence = 0, NOW, 0
    for what, argument in history:
        if what == "put":
            assert isinstance(argument, list)
            pairs = [(b"k%d" % key, None if value is None else b"%d" % value) for key, value in argument]
            batch = batch_of(
                *(value for _, value in pairs),
                keys=(key for key, _ in pairs),
                timestamp=now.wall_ms,
                codec=codec,
                producer=(1, 0, sequence) if idempotent else None,
            )
            log.append_as_leader(batch, 0, now)
            sequence += len(pairs)
            naive += pairs
        elif what == "compact":
            assert isinstance(argument, int)
            log.roll(now)
            clean = compact(disk, log, clean, now=now, max_keys=argument)
            _check_each_key_once(log, clean)
        elif what == "wait":
            assert isinstance(argument, int)
            now = Now(now.monotonic_ms + argument, now.wall_ms + argument)
        else:
            if argument:
                log.close_cleanly()
            log = opened(disk, how, clean=bool(argument), recovery_point=log.recovery_point, now=now)
        assert log.end_offset == len(naive)
        _check_readers(log, naive)


def _check_readers(log: Log, naive: list[tuple[bytes, bytes | None]]) -> None:
    for offset, value in values_of(log):
        assert naive[offset][1] == value
    for offset in range(0, len(naive) + 1, 3):
        learnt = table(log, offset)
        expected: dict[bytes, bytes | None] = dict(naive[offset:])
        assert learnt == {key: value for key, value in expected.items() if value is not None}


def _check_each_key_once(log: Log, clean: int) -> None:
    keys = [record.key for stored in everything(log) for record in stored.records if record.offset < clean]
    assert len(keys) == len(set(keys))


@given(
    keys=st.lists(st.integers(0, 9), min_size=20, max_size=60),
    crash_at=st.integers(0, 80),
    seed=st.integers(0, 2**32),
)
@settings(deadline=None, max_examples=150)
def test_power_may_be_lost_in_the_middle_of_a_replacement(keys: list[int], crash_at: int, seed: int) -> None:
    """F14: the multi-file swap either did not happen or is completed; no record is lost, none comes twice."""
    disk = Disk()
    log = opened(disk, COMPACT)
    naive: list[tuple[bytes, bytes | None]] = []
    for number, key in enumerate(keys):
        naive.append((b"k%d" % key, b"%d" % number))
        put(log, naive[-1])
    log.roll(NOW)
    files, up_to = log.files_to_flush()
    disk.flush(files)
    log.flushed(up_to)
    disk.calls, disk.crash_at = 0, crash_at
    random = Random(seed)
    try:
        compact(disk, log)
        raise Crashed("after it was done")
    except Crashed:
        disk.crash(random)
    log = opened(disk, COMPACT, recovery_point=up_to)
    assert log.end_offset == len(keys)
    _check_readers(log, naive)
    offsets = [offset for offset, _ in values_of(log)]
    assert offsets == sorted(set(offsets))
    compact(disk, log)
    _check_readers(log, naive)
    _check_each_key_once(log, len(keys))


def test_a_damaged_swap_is_dropped_while_its_originals_are_there() -> None:
    disk = Disk()
    log = opened(disk, COMPACT)
    for number in range(30):
        put(log, (b"k%d" % number, b"%d" % number))
    before = values_of(log)
    disk.write_whole(f"{DIRECTORY}/00000000000000000000.log.swap", b"nonsense" * 20)
    disk.write_whole(f"{DIRECTORY}/00000000000000000000.index.swap", b"nonsense")
    assert values_of(opened(disk, COMPACT)) == before
    assert not [name for name in disk.listing(DIRECTORY) if name.endswith(".swap")]


def test_a_key_without_value_may_come_back() -> None:
    disk = Disk()
    log = opened(disk, COMPACT)
    put(log, (b"k", b"1"), (b"k", None), (b"k", b"2"))
    log.roll(NOW)
    compact(disk, log)
    assert values_of(log) == [(2, b"2")]


def test_beginning_a_compaction_ends_the_one_before() -> None:
    disk = Disk()
    log = opened(disk, COMPACT)
    for number in range(30):
        put(log, (b"k%d" % number, b"x"))
    first = log.compaction(NOW, 0, 30)
    assert first is not None
    while not first.to_flush:
        first.step(100)
    assert compact(disk, log) > 0
    assert first.is_done and first.clean_to == 0
    assert len(values_of(log)) == 30


def put_in(log: Log, epoch: int, key: bytes, value: bytes) -> None:
    log.append_as_leader(batch_of(value, keys=[key]), epoch, NOW)


def log_with_an_epoch_that_begins_in_a_gap(disk: Disk) -> Log:
    """Epoch 4 ended at 2, and of epoch 7 what stood at 2 and 3 has been compacted."""
    log = opened(disk, replace(COMPACT, min_cleanable_dirty_ratio=0))
    for epoch, key in ((4, b"a"), (4, b"b"), (7, b"c"), (7, b"c"), (7, b"c"), (7, b"d")):
        put_in(log, epoch, key, b"x" * 150)
    log.roll(NOW)
    put_in(log, 7, b"e", b"last")
    compact(disk, log)
    assert [offset for offset, _ in values_of(log)] == [0, 1, 4, 5, 6]
    return log


@pytest.mark.parametrize("has_checkpoint", [True, False])
def test_where_an_epoch_ended_is_known_after_compaction_and_a_crash(has_checkpoint: bool) -> None:
    """Somebody who has records of epoch 4 at 2 and 3 must not keep them: the simulator found replicas that differed."""
    disk = Disk()
    log_with_an_epoch_that_begins_in_a_gap(disk)
    if not has_checkpoint:
        disk.remove(f"{DIRECTORY}/leader-epoch-checkpoint")
    again = opened(disk, COMPACT)
    assert again.end_offset_for_epoch(4) == (4, 2)


def test_the_checkpoint_of_epochs_survives_the_power_once_something_is_compacted() -> None:
    disk = Disk()
    log_with_an_epoch_that_begins_in_a_gap(disk)
    for seed in range(20):
        copied = deepcopy(disk)
        copied.crash(Random(seed))
        assert opened(copied, COMPACT).end_offset_for_epoch(4) in ((4, 2), (-1, -1))


def test_a_follower_of_a_compacted_log_keeps_nothing_of_older_epochs_in_its_gaps() -> None:
    leader = log_with_an_epoch_that_begins_in_a_gap(Disk())
    follower = opened(Disk(), COMPACT)
    follower.append_as_follower(memoryview(bytearray(bytes(leader.read(0, 10**6, leader.end_offset)))), NOW)
    while follower.end_offset < leader.end_offset:
        data = bytes(leader.read(follower.end_offset, 10**6, leader.end_offset))
        follower.append_as_follower(memoryview(bytearray(data)), NOW)
    assert follower.end_offset_for_epoch(4) == (4, 2)


def test_no_room_for_the_checkpoint_of_epochs_puts_compaction_off() -> None:
    disk = Disk()
    log = opened(disk, replace(COMPACT, min_cleanable_dirty_ratio=0))
    for number in range(30):
        put(log, (b"k%d" % (number % 3), b"%d" % number))
    disk.failure = lambda call, path: DiskFull("no space left") if "leader-epoch" in path else None
    with pytest.raises(DiskFull):
        compact(disk, log)
    disk.failure = None
    assert log.failed is None
    put(log, (b"k0", b"30"))
    compact(disk, log)
    assert table(log) == {b"k0": b"30", b"k1": b"28", b"k2": b"29"}
