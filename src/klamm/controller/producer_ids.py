"""Producer ids, handed out to brokers a thousand at a time, so that most producers get theirs without asking us.

An id is never given twice: the record says where the next block begins, and it is committed before the block is told.
"""

from dataclasses import dataclass

from klamm.controller.brokers import checked_broker
from klamm.errors import ErrorCode, KafkaError
from klamm.ids import BrokerId, ProducerId
from klamm.machine import Decision
from klamm.metadata.image import Image
from klamm.metadata.records import MetadataRecord, ProducerIdsRecord

BLOCK_SIZE = 1000
LARGEST_ID = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ProducerIdBlock:
    first: ProducerId
    count: int


def allocate(image: Image, broker_id: BrokerId, broker_epoch: int) -> Decision[MetadataRecord, ProducerIdBlock]:
    checked_broker(image, broker_id, broker_epoch)
    first = image.next_producer_id
    if first > LARGEST_ID - BLOCK_SIZE:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "All producer ids of 64 bits have been handed out.")
    record = ProducerIdsRecord(broker_id=broker_id, broker_epoch=broker_epoch, next_producer_id=first + BLOCK_SIZE)
    return Decision(ProducerIdBlock(first, BLOCK_SIZE), [record])
