"""Producer state on disk: `.snapshot` files, named after the offset before which they saw the log.

The format is Kafka's: a version, a CRC-32C of all that follows, and 46 bytes for each producer with its last batch.
Kafka stores no more, and ignores what stands behind the entries but for the CRC. There we put the up to four earlier
batches of each producer, so that a retry is recognised after a restart too.

A snapshot saves reading the log, it is not the only copy. One that is damaged is worth nothing: None.
"""

from struct import Struct
from struct import error as StructError  # noqa: N812

from klamm.ids import ProducerId
from klamm.log.producers import REMEMBERED_BATCHES, ProducerState, ProducerStates, Remembered
from klamm.records.crc import crc32c

VERSION = 1

_HEAD = Struct(">hIi")
_CHECKED_FROM = 6
# Producer id and epoch; last sequence, last offset, offset delta and timestamp; coordinator epoch, open transaction.
_ENTRY = Struct(">qhiqiqiq")
_EARLIER_COUNT = Struct(">b")
_EARLIER = Struct(">iqiq")


def snapshot_bytes(states: ProducerStates) -> bytes:
    entries, earlier = bytearray(), bytearray()
    producers = states.items()
    for producer_id, state in producers:
        last = state.batches[-1] if state.batches else Remembered(-1, -1, 0, -1)
        entries += _ENTRY.pack(
            producer_id,
            state.epoch,
            last.last_sequence,
            last.last_offset,
            last.offset_delta,
            state.last_timestamp,
            state.coordinator_epoch,
            state.open_since,
        )
        earlier += _EARLIER_COUNT.pack(max(len(state.batches) - 1, 0))
        for batch in state.batches[:-1]:
            earlier += _EARLIER.pack(batch.last_sequence, batch.last_offset, batch.offset_delta, batch.timestamp)
    snapshot = bytearray(_HEAD.pack(VERSION, 0, len(producers)) + entries + earlier)
    _HEAD.pack_into(snapshot, 0, VERSION, crc32c(memoryview(snapshot)[_CHECKED_FROM:]), len(producers))
    return bytes(snapshot)


def read_snapshot(data: bytes, now_ms: int) -> ProducerStates | None:
    try:
        version, crc, count = _HEAD.unpack_from(data)
        if version != VERSION or crc != crc32c(memoryview(data)[_CHECKED_FROM:]):
            return None
        states = ProducerStates()
        position = _HEAD.size
        read: list[ProducerState] = []
        for _ in range(count):
            producer_id, state = _state(data, position, now_ms)
            states.put(producer_id, state)
            read.append(state)
            position += _ENTRY.size
        if position < len(data):
            _read_earlier(data, position, read)
    except StructError:
        return None
    return states


def _state(data: bytes, position: int, now_ms: int) -> tuple[ProducerId, ProducerState]:
    producer_id, epoch, last_sequence, last_offset, offset_delta, timestamp, coordinator_epoch, open_since = (
        _ENTRY.unpack_from(data, position)
    )
    state = ProducerState(epoch)
    state.last_timestamp = timestamp
    state.coordinator_epoch = coordinator_epoch
    state.open_since = open_since
    state.seen_ms = now_ms
    if last_offset >= 0:
        state.batches.append(Remembered(last_sequence, last_offset, offset_delta, timestamp))
    return producer_id, state


def _read_earlier(data: bytes, position: int, states: list[ProducerState]) -> None:
    for state in states:
        (count,) = _EARLIER_COUNT.unpack_from(data, position)
        position += _EARLIER_COUNT.size
        earlier = []
        for _ in range(count):
            earlier.append(Remembered(*_EARLIER.unpack_from(data, position)))
            position += _EARLIER.size
        state.batches = [*earlier, *state.batches][-REMEMBERED_BATCHES:]
