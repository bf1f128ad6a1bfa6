"""What has to be true of a partition after a crash, read as any consumer reads it."""

from klamm.errors import ErrorCode
from klamm.records.batch import batches, intact
from tests.crash.client import Client
from tests.crash.load import IdempotentProducer, Place


def check_partition(client: Client, place: Place, promised: dict[int, int], producers: list[IdempotentProducer]) -> int:
    """Everything acknowledged is there at its offset; every batch is whole; offsets are dense; each sequence number of
    the idempotent producers is there once and in order. Returns how many batches there are."""
    expected_sequence = {producer.producer_id: 0 for producer in producers}
    missing = dict(promised)
    offset, end, count = 0, client.end_offset(place.topic, place.partition), 0
    while offset < end:
        answer = client.fetch(place.topic, offset, place.partition)
        assert answer.error_code == ErrorCode.NONE, f"{place}: {ErrorCode(answer.error_code).name}"
        data = memoryview(bytes(answer.records))
        assert data, f"{place} ends at {end}, but there is nothing at {offset}"
        for position, batch in batches(data):
            intact(data[position : position + batch.size_bytes])
            assert batch.base_offset == offset, f"{place}: {batch} where offset {offset} is due"
            crc = missing.pop(offset, None)
            assert crc is None or crc == batch.crc, f"{place}: another batch at {offset} than was acknowledged"
            if batch.producer_id >= 0:
                due = expected_sequence[batch.producer_id]
                assert batch.base_sequence == due, f"{place}: sequence {batch.base_sequence} where {due} is due"
                expected_sequence[batch.producer_id] += batch.count
            offset = batch.next_offset
            count += 1
    assert not missing, f"{place} ends at {end}; {len(missing)} acknowledged batches are gone, first {min(missing)}"
    for producer in producers:
        stored = expected_sequence[producer.producer_id]
        assert stored >= producer.acknowledged_sequence, f"{place}: {producer.name} lost records"
    return count
