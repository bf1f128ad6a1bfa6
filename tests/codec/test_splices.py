"""Records are not copied on their way out: the writer notes where they belong."""

from klamm.codec.compiler import Splices, decode, encode, pieces, writer
from klamm.codec.writing import SPLICE_BYTES
from klamm.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData


class Region:
    """A part of a file: it has a length and is no buffer."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)


def response_with(*batches: object) -> FetchResponse:
    partitions = [PartitionData(index, high_watermark=9, records=records) for index, records in enumerate(batches)]
    return FetchResponse(responses=[FetchableTopicResponse(topic="orders", partitions=partitions)])


def written(response: FetchResponse, version: int) -> list[object]:
    out, splices = bytearray(), Splices()
    writer(FetchResponse, version)(out, response, splices)
    return pieces(out, splices)


def test_small_records_are_copied() -> None:
    assert len(written(response_with(b"small"), 12)) == 1


def test_large_records_are_the_very_object_that_was_given() -> None:
    large = memoryview(bytes(SPLICE_BYTES))
    before, records, after = written(response_with(large), 12)
    assert records is large
    assert b"".join((before, records, after)) == encode(response_with(large), 12)  # type: ignore[arg-type]


def test_a_region_of_a_file_is_spliced_however_small() -> None:
    for version in (4, 12, 18):
        first, second = Region(b"abc"), Region(b"")
        found = written(response_with(first, None, second, b"xyz"), version)
        assert first in found
        assert second in found
        data = b"".join(piece.data if isinstance(piece, Region) else piece for piece in found)  # type: ignore[misc]
        (topic,) = decode(FetchResponse, version, data, exact=True).responses
        assert [partition.records for partition in topic.partitions] == [b"abc", None, b"", b"xyz"]


def test_records_read_are_a_view_that_writes_through() -> None:
    """The batch that arrived is stamped where it lies."""
    data = bytearray(encode(response_with(b"batch"), 12))
    (topic,) = decode(FetchResponse, 12, data).responses
    topic.partitions[0].records[:5] = b"BATCH"
    assert b"BATCH" in data
