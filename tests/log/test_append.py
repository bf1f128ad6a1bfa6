"""The leader's way in: offsets, epochs, a topic's rules, and when a new segment begins."""

import dataclasses

import pytest

from klamm.errors import ErrorCode, KafkaError
from klamm.log.log import RefusedRecords
from klamm.log.settings import LogSettings
from klamm.records.batch import InvalidBatch, read_header, set_max_timestamp
from klamm.records.compression import Codec
from klamm.records.control import end_transaction_marker
from klamm.records.record import records_of
from klamm.sim.disk import Disk
from tests.log.making import DIRECTORY, NOW, SMALL, batch_of, batch_of_size, everything, later, opened, values_of

HOUR_MS = 60 * 60 * 1000


def test_batches_get_offsets_one_after_another() -> None:
    log = opened(Disk())
    first = log.append_as_leader(batch_of(b"a", b"b"), 0, NOW)
    second = log.append_as_leader(batch_of(b"c"), 0, NOW)
    assert (first.base_offset, first.last_offset, first.append_time_ms, first.duplicate) == (0, 1, -1, False)
    assert (second.base_offset, second.last_offset) == (2, 2)
    assert values_of(log) == [(0, b"a"), (1, b"b"), (2, b"c")]


def test_a_batch_is_stamped_with_offset_and_epoch_and_otherwise_untouched() -> None:
    log = opened(Disk())
    log.append_as_leader(batch_of(b"a"), 3, NOW)
    batch = batch_of(b"b", codec=Codec.ZSTD)
    before = bytes(batch)
    log.append_as_leader(batch, 4, NOW)
    stored = everything(log)[1]
    assert (stored.header.base_offset, stored.header.leader_epoch) == (1, 4)
    assert stored.data[16:] == before[16:]
    assert log.epochs.entries() == [(3, 0), (4, 1)]
    assert log.latest_epoch == 4


def test_a_log_without_records_is_a_directory_and_nothing_else() -> None:
    disk = Disk()
    log = opened(disk)
    assert disk.listing(DIRECTORY) == []
    assert log.files_to_flush() == ([], 0)
    log.flushed(0)
    log.roll(NOW)
    log.close_cleanly()
    assert disk.listing(DIRECTORY) == []
    assert disk.exists(DIRECTORY)


def test_a_refused_batch_changes_nothing() -> None:
    log = opened(Disk())
    log.append_as_leader(batch_of(b"a"), 0, NOW)
    damaged = batch_of(b"b")
    damaged[-1] ^= 1
    with pytest.raises(InvalidBatch) as refused:
        log.append_as_leader(damaged, 0, NOW)
    assert refused.value.code == ErrorCode.CORRUPT_MESSAGE
    assert values_of(log) == [(0, b"a")]
    assert log.failed is None


def test_a_batch_larger_than_max_message_bytes_is_too_large() -> None:
    """TRAPS 21: the compressed batch counts; the client then splits it."""
    log = opened(Disk(), LogSettings(max_message_bytes=200))
    log.append_as_leader(batch_of_size(200), 0, NOW)
    log.append_as_leader(batch_of(bytes(10_000), codec=Codec.GZIP), 0, NOW)
    with pytest.raises(KafkaError) as refused:
        log.append_as_leader(batch_of_size(201), 0, NOW)
    assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE


def test_a_batch_larger_than_a_segment_is_too_large_too() -> None:
    log = opened(Disk(), LogSettings(segment_bytes=200))
    with pytest.raises(KafkaError) as refused:
        log.append_as_leader(batch_of_size(201), 0, NOW)
    assert refused.value.code == ErrorCode.RECORD_LIST_TOO_LARGE
    assert log.append_as_leader(batch_of_size(200), 0, NOW).base_offset == 0


def test_append_time_is_the_brokers_clock() -> None:
    """TRAPS 20: attribute, largest timestamp and CRC are new, and the producer is told."""
    log = opened(Disk(), LogSettings(append_time=True))
    appended = log.append_as_leader(batch_of(b"a", b"b", timestamp=5), 0, NOW)
    assert appended.append_time_ms == NOW.wall_ms
    stored = everything(log)[0]
    assert stored.header.log_append_time
    assert [record.timestamp for record in stored.records] == [NOW.wall_ms, NOW.wall_ms]
    assert log.offset_for_time(6) == (0, NOW.wall_ms, 0)


def test_a_timestamp_outside_the_window_is_refused_record_by_record() -> None:
    log = opened(Disk(), LogSettings(timestamp_before_max_ms=1000))
    too_young = batch_of(b"right", b"wrong", step_ms=HOUR_MS + 1)
    too_old = batch_of(b"wrong", b"right", timestamp=NOW.wall_ms - 1001, step_ms=1001)
    for batch, wrong in ((too_young, 1), (too_old, 0)):
        with pytest.raises(RefusedRecords) as refused:
            log.append_as_leader(batch, 0, NOW)
        assert refused.value.code == ErrorCode.INVALID_TIMESTAMP
        assert [index for index, _ in refused.value.errors] == [wrong]
    assert log.end_offset == 0


def test_no_timestamp_is_a_timestamp_that_is_always_right() -> None:
    log = opened(Disk(), LogSettings(timestamp_before_max_ms=0, timestamp_after_max_ms=0))
    assert log.append_as_leader(batch_of(b"a", timestamp=-1), 0, NOW).base_offset == 0


def test_a_header_that_only_seems_too_young_is_corrected() -> None:
    log = opened(Disk())
    batch = batch_of(b"a")
    set_max_timestamp(batch, NOW.wall_ms + 2 * HOUR_MS)
    log.append_as_leader(batch, 0, NOW)
    assert everything(log)[0].header.max_timestamp == NOW.wall_ms


def test_a_compacted_topic_takes_no_record_without_a_key() -> None:
    """TRAPS 22: the whole batch is refused, and the producer learns which records are wrong."""
    log = opened(Disk(), LogSettings(compact=True))
    with pytest.raises(RefusedRecords) as refused:
        log.append_as_leader(batch_of(b"a", b"b", b"c", keys=[b"k", None, None]), 0, NOW)
    assert refused.value.code == ErrorCode.INVALID_RECORD
    assert [index for index, _ in refused.value.errors] == [1, 2]
    assert log.append_as_leader(batch_of(b"a", None, keys=[b"k", b"k"]), 0, NOW).last_offset == 1


@pytest.mark.parametrize("wanted", list(Codec))
@pytest.mark.parametrize("sent", list(Codec))
def test_stored_batches_carry_the_codec_the_topic_asks_for(sent: Codec, wanted: Codec) -> None:
    log = opened(Disk(), LogSettings(compression=wanted))
    values = [b"value %d" % number for number in range(20)]
    log.append_as_leader(batch_of(b"first"), 0, NOW)
    log.append_as_leader(batch_of(*values, codec=sent, producer=(7, 0, 0)), 0, NOW)
    stored = everything(log)[1]
    assert stored.header.codec == wanted
    assert (stored.header.producer_id, stored.header.base_sequence, stored.header.count) == (7, 0, 20)
    assert [(record.offset, record.value) for record in stored.records] == list(enumerate(values, 1))


def test_a_batch_that_grows_by_recompression_may_become_too_large() -> None:
    log = opened(Disk(), LogSettings(compression=Codec.NONE, max_message_bytes=1000))
    with pytest.raises(KafkaError) as refused:
        log.append_as_leader(batch_of(bytes(5000), codec=Codec.ZSTD), 0, NOW)
    assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE
    assert log.end_offset == 0


def test_settings_may_change_while_the_log_is_open() -> None:
    log = opened(Disk())
    log.append_as_leader(batch_of(b"a"), 0, NOW)
    log.settings = dataclasses.replace(SMALL, append_time=True, segment_ms=10)
    assert log.append_as_leader(batch_of(b"b"), 0, later(5)).append_time_ms == NOW.wall_ms + 5
    assert len(log.segments.all) == 1
    log.append_as_leader(batch_of(b"c"), 0, later(20))
    assert [segment.base_offset for segment in log.segments.all] == [0, 2]


def test_the_brokers_own_batches_may_be_control_batches() -> None:
    log = opened(Disk())
    log.append_own(batch_of(b"metadata"), 0, NOW)
    marker = end_transaction_marker(9, 2, commit=True, coordinator_epoch=5, timestamp=NOW.wall_ms)
    appended = log.append_own(marker, 1, NOW)
    assert appended.base_offset == 1
    assert everything(log)[1].header.is_control
    state = log.producers.get(9)
    assert state is not None
    assert (state.epoch, state.coordinator_epoch) == (2, 5)


def test_a_segment_is_rolled_when_the_next_batch_would_not_fit() -> None:
    disk = Disk()
    log = opened(disk, LogSettings(segment_bytes=1000))
    for _ in range(11):
        log.append_as_leader(batch_of_size(100), 0, NOW)
    assert [(segment.base_offset, segment.size) for segment in log.segments.all] == [(0, 1000), (10, 100)]
    assert "00000000000000000010.snapshot" in disk.listing(DIRECTORY)


def test_a_segment_is_rolled_when_its_first_batch_is_segment_ms_older() -> None:
    log = opened(Disk(), LogSettings(segment_ms=1000))
    log.append_as_leader(batch_of(b"a", timestamp=NOW.wall_ms), 0, NOW)
    log.append_as_leader(batch_of(b"b", timestamp=NOW.wall_ms + 1000), 0, NOW)
    log.append_as_leader(batch_of(b"c", timestamp=NOW.wall_ms + 1001), 0, NOW)
    log.append_as_leader(batch_of(b"d", timestamp=NOW.wall_ms), 0, later(5000))
    assert [segment.base_offset for segment in log.segments.all] == [0, 2]


def test_without_timestamps_segment_ms_goes_by_the_clock() -> None:
    log = opened(Disk(), LogSettings(segment_ms=1000))
    log.append_as_leader(batch_of(b"a", timestamp=-1), 0, NOW)
    log.append_as_leader(batch_of(b"b", timestamp=-1), 0, later(1000))
    log.append_as_leader(batch_of(b"c", timestamp=-1), 0, later(1001))
    assert [segment.base_offset for segment in log.segments.all] == [0, 2]


def test_jitter_only_ever_rolls_earlier() -> None:
    log = opened(Disk(), LogSettings(segment_ms=1000, segment_jitter_ms=500))
    log.append_as_leader(batch_of(b"a"), 0, NOW)
    log.append_as_leader(batch_of(b"b", timestamp=NOW.wall_ms + 400), 0, NOW)
    assert len(log.segments.all) == 1
    log.append_as_leader(batch_of(b"c", timestamp=NOW.wall_ms + 1001), 0, NOW)
    assert len(log.segments.all) == 2


def test_a_segment_is_rolled_when_its_index_is_full() -> None:
    log = opened(Disk(), LogSettings(index_interval_bytes=0, segment_index_bytes=36))
    for number in range(10):
        log.append_as_leader(batch_of(b"a", timestamp=NOW.wall_ms + number), 0, NOW)
    assert len(log.segments.all) > 1
    assert all(segment.time_index.size_bytes <= 36 for segment in log.segments.all)


def test_the_time_of_rolling_survives_a_restart() -> None:
    disk = Disk()
    settings = LogSettings(segment_ms=1000)
    log = opened(disk, settings)
    log.append_as_leader(batch_of(b"a"), 0, NOW)
    log.close_cleanly()
    log = opened(disk, settings, clean=True, now=later(500))
    log.append_as_leader(batch_of(b"b", timestamp=NOW.wall_ms + 900), 0, later(900))
    log.append_as_leader(batch_of(b"c", timestamp=NOW.wall_ms + 1100), 0, later(1100))
    assert [segment.base_offset for segment in log.segments.all] == [0, 2]


def test_a_memoryview_is_not_kept() -> None:
    """It is valid during a step only: its buffer may be reused after."""
    log = opened(Disk())
    buffer = bytearray(batch_of(b"kept", producer=(1, 0, 0)))
    view = memoryview(buffer)
    log.append_as_leader(view, 0, NOW)
    view.release()
    buffer[:] = bytes(len(buffer))
    buffer.clear()
    assert values_of(log) == [(0, b"kept")]
    assert read_header(everything(log)[0].data).producer_id == 1
    assert next(records_of(everything(log)[0].data)).value == b"kept"
