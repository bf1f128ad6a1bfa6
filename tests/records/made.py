"""Batches for tests: good ones, and good ones with one field changed and the CRC made right again."""

from hypothesis import strategies as st

from klamm.records.batch import HEADER, read_header, set_crc
from klamm.records.builder import BatchBuilder
from klamm.records.compression import Codec
from klamm.records.record import Record

NOON = 1_700_000_000_000
FIELDS = tuple(read_header(bytes(HEADER.size)).__dataclass_fields__)


def batch(codec: int = Codec.NONE, records: int = 3, **changes: int) -> bytearray:
    """What an idempotent producer sends; `changes` are written over its header, as are they who lie."""
    builder = BatchBuilder(codec, producer_id=7, producer_epoch=0, base_sequence=40)
    for index in range(records):
        builder.append(b"key-%d" % index, b"value-%d" % index, NOON + index, [("trace", b"abc")])
    return changed(builder.build(), **changes)


def changed(built: bytearray, **changes: int) -> bytearray:
    fields = dict(zip(FIELDS, HEADER.unpack_from(built), strict=True)) | changes
    HEADER.pack_into(built, 0, *fields.values())
    if "crc" not in changes:
        set_crc(memoryview(built))
    return built


def with_body(body: bytes, codec: int = Codec.NONE, **changes: int) -> bytearray:
    """A batch of one record, or as many as `count` says, whose records are these bytes."""
    built = BatchBuilder().build() + body
    sizes = {
        "length": len(built) - 12,
        "count": 1,
        "last_offset_delta": changes.get("count", 1) - 1,
        "attributes": codec,
    }
    return changed(built, **{**sizes, "base_timestamp": NOON, "max_timestamp": NOON, **changes})


contents = st.none() | st.binary(max_size=200)
headers = st.lists(st.tuples(st.text(max_size=20), contents), max_size=3).map(tuple)
timestamps = st.just(-1) | st.integers(0, 2**62)


@st.composite
def record_lists(draw: st.DrawFn, min_size: int = 1) -> list[Record]:
    """Records with offsets that ascend with gaps, as compaction leaves them."""
    records, offset = [], draw(st.integers(0, 2**40))
    for _ in range(draw(st.integers(min_size, 8))):
        records.append(Record(offset, draw(timestamps), draw(contents), draw(contents), draw(headers)))
        offset += draw(st.integers(1, 300))
    return records
