"""Batches that we make ourselves: records in, the bytes of one whole batch out.

`BatchBuilder` is for whoever writes: clients, the metadata log, the coordinators, tests. `rebuilt` is for compaction,
which puts a batch together again with fewer records; `recompressed` for topics with a codec of their own. What is left
keeps its offsets, and the batch keeps its place, its producer and its sequence numbers.
"""

from collections.abc import Iterable

from klamm.codec.primitives import Buffer
from klamm.records.batch import (
    CODEC_BITS,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    OVERHEAD_BYTES,
    read_header,
    set_crc,
)
from klamm.records.compression import Codec, compressed, decompressed
from klamm.records.record import Header, Record, encode_record


class BatchBuilder:
    """Collects records and builds one batch of them.

    Offsets count up from `base_offset` unless a record brings its own. Timestamps are stored as differences from
    `base_timestamp`, which is the first record's if none is given. For LogAppendTime (a bit of `attributes`) the
    largest timestamp is every record's.
    """

    __slots__ = (
        "_body",
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "codec",
        "count",
        "last_offset",
        "leader_epoch",
        "level",
        "max_timestamp",
        "producer_epoch",
        "producer_id",
    )

    def __init__(
        self,
        codec: int = Codec.NONE,
        base_offset: int = 0,
        base_timestamp: int | None = None,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = NO_SEQUENCE,
        leader_epoch: int = -1,
        attributes: int = 0,
        *,
        level: int | None = None,
    ) -> None:
        self.codec = Codec(codec)
        self.level = level
        self.base_offset = base_offset
        self.base_timestamp = base_timestamp
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.leader_epoch = leader_epoch
        self.attributes = attributes & ~CODEC_BITS | self.codec
        self.max_timestamp = NO_TIMESTAMP
        self.count = 0
        self.last_offset = base_offset - 1
        self._body = bytearray()

    @property
    def size_bytes(self) -> int:
        """Of the batch if it were built now and not compressed."""
        return HEADER_BYTES + len(self._body)

    def append(
        self,
        key: Buffer | None,
        value: Buffer | None,
        timestamp: int,
        headers: Iterable[Header] = (),
        *,
        offset: int | None = None,
    ) -> int:
        """Add a record; returns its offset."""
        if offset is None:
            offset = self.last_offset + 1
        assert offset > self.last_offset, f"offset {offset} after {self.last_offset}"
        if self.base_timestamp is None:
            self.base_timestamp = timestamp
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        encode_record(self._body, offset - self.base_offset, timestamp - self.base_timestamp, key, value, headers)
        self.last_offset = offset
        self.count += 1
        return offset

    def build(self) -> bytearray:
        records = self._body if self.codec == Codec.NONE else compressed(self.codec, self._body, self.level)
        built = bytearray(HEADER_BYTES)
        HEADER.pack_into(
            built,
            0,
            self.base_offset,
            HEADER_BYTES - OVERHEAD_BYTES + len(records),
            self.leader_epoch,
            MAGIC,
            0,
            self.attributes,
            self.last_offset - self.base_offset,
            NO_TIMESTAMP if self.base_timestamp is None else self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.count,
        )
        built += records
        set_crc(memoryview(built))
        return built


def rebuilt(
    batch_view: Buffer,
    records: Iterable[Record],
    codec: int,
    *,
    level: int | None = None,
    delete_horizon_ms: int | None = None,
) -> bytearray:
    """The batch again with only these of its records, which may be none, and in this codec.

    The last offset stays even when its record is gone: a reader's next offset and the producer's last sequence follow
    from it. The largest timestamp is that of the records left. A delete horizon takes the base timestamp's place.
    """
    batch = read_header(batch_view)
    builder = BatchBuilder(
        codec,
        batch.base_offset,
        batch.base_timestamp,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.leader_epoch,
        batch.attributes,
        level=level,
    )
    if delete_horizon_ms is not None:
        builder.base_timestamp = delete_horizon_ms
        builder.attributes |= DELETE_HORIZON_BIT
    for record in records:
        builder.append(record.key, record.value, record.timestamp, record.headers, offset=record.offset)
    if builder.count == 0:
        # Nothing to compress; Kafka's readers, too, expect such a batch to be a header and no more.
        builder.codec = Codec.NONE
        builder.attributes &= ~CODEC_BITS
    if builder.count == 0 or builder.attributes & LOG_APPEND_TIME_BIT:
        builder.max_timestamp = batch.max_timestamp
    assert builder.last_offset <= batch.last_offset
    builder.last_offset = batch.last_offset
    return builder.build()


def recompressed(view: Buffer, codec: Codec, *, level: int | None = None, limit: int) -> bytearray:
    """The same records in another codec. None of them is looked at: only how they are packed changes."""
    view = memoryview(view)
    batch = read_header(view)
    body = decompressed(batch.codec, view[HEADER_BYTES:], limit)
    out = bytearray(view[:HEADER_BYTES])
    out += compressed(codec, body, level) if codec is not Codec.NONE else body
    HEADER.pack_into(
        out,
        0,
        batch.base_offset,
        len(out) - OVERHEAD_BYTES,
        batch.leader_epoch,
        batch.magic,
        0,
        batch.attributes & ~CODEC_BITS | codec,
        batch.last_offset_delta,
        batch.base_timestamp,
        batch.max_timestamp,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.count,
    )
    set_crc(memoryview(out))
    return out
