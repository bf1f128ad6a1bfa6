"""What a leader sent, checked before a follower writes it.

The leader has judged these batches; the follower makes sure that they arrived whole, and that offsets and epochs go on
where its own log ends. Gaps are allowed, for the leader's log may be compacted.
"""

from klamm.errors import ErrorCode, KafkaError
from klamm.ids import Epoch, Offset
from klamm.records.batch import ATTRIBUTES_AT, Batch, InvalidBatch, batches
from klamm.records.crc import crc32c


def checked_run(
    view: memoryview, end_offset: Offset, latest_epoch: Epoch, *, may_begin_before: bool
) -> list[tuple[int, Batch]]:
    """The whole batches with their positions. The first may hold `end_offset` if the log has no records yet."""
    found = list(batches(view))
    if found and may_begin_before and found[0][1].base_offset < end_offset < found[0][1].next_offset:
        end_offset = found[0][1].base_offset
    for position, batch in found:
        if crc32c(view[position + ATTRIBUTES_AT : position + batch.size_bytes]) != batch.crc:
            raise InvalidBatch(ErrorCode.CORRUPT_MESSAGE, f"the CRC of {batch} does not match its bytes")
        if batch.base_offset < end_offset or batch.last_offset_delta < 0:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"{batch} does not continue a log that ends at {end_offset}"
            )
        if batch.leader_epoch < latest_epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH, f"{batch} comes after epoch {latest_epoch}")
        end_offset = batch.next_offset
        latest_epoch = batch.leader_epoch
    return found
