"""Producer state from stored batches: the live path and this one note the same things.

A snapshot tells what was known before its offset; the batches from there on tell the rest.
"""

from bisect import bisect_right

from klamm.log.files import File
from klamm.log.producers import ProducerStates
from klamm.log.segment import Segment
from klamm.log.shelf import Shelf
from klamm.log.walking import batch_at, headers
from klamm.records.batch import Batch
from klamm.records.control import coordinator_epoch_of
from klamm.records.record import records_of


def note_stored(producers: ProducerStates, batch: Batch, view: memoryview | bytes, now_ms: int) -> None:
    """A batch of a producer is in the log, with its final offsets."""
    if not batch.is_control:
        producers.note(batch, batch.base_offset, batch.max_timestamp, now_ms)
    elif batch.count:
        producers.note_marker(batch, coordinator_epoch_of(next(records_of(view))), now_ms)


def replayed(shelf: Shelf, segments: list[Segment], now_ms: int) -> ProducerStates:
    """The state at the end of the last of these segments."""
    producers, known_to = shelf.latest_snapshot(now_ms)
    first = max(bisect_right(segments, known_to, key=lambda segment: segment.base_offset) - 1, 0)
    for segment in segments[first:]:
        place = segment.place_of(known_to)
        if place is not None:
            _replay(producers, segment.log, place.position, now_ms)
    return producers


def _replay(producers: ProducerStates, file: File, position: int, now_ms: int) -> None:
    for at, batch in headers(file, position, 0):
        if batch.has_producer:
            note_stored(producers, batch, batch_at(file, at)[1] if batch.is_control else b"", now_ms)
