"""What a shop does with Kafka: it sends orders and reads them again, here with confluent-kafka, there with aiokafka."""

from collections.abc import Iterable

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

PATIENCE_SECONDS = 60.0


class Orders:
    """Sends orders, each to the partition of its customer, and knows which of them were acknowledged."""

    def __init__(self, servers: str, topic: str, **settings: object) -> None:
        usual = {"bootstrap.servers": servers, "acks": "all", "linger.ms": 5, "enable.idempotence": True}
        self._producer = Producer({**usual, **settings})
        self._topic = topic
        self.acknowledged: list[str] = []
        self.refused: list[str] = []
        """Names of the errors."""

    def send(self, order: str, customer: str | None = None, **more: object) -> None:
        self._producer.produce(self._topic, order, customer, on_delivery=self._delivered, **more)
        self._producer.poll(0)

    def wait(self) -> None:
        """Until everything that was sent is acknowledged or refused."""
        left = self._producer.flush(PATIENCE_SECONDS)
        assert left == 0, f"{left} orders are still under way"

    def _delivered(self, error, message) -> None:
        if error is None:
            self.acknowledged.append(message.value().decode())
        else:
            self.refused.append(error.name())


def read(servers: str, topic: str, count: int, partitions: Iterable[int] = (0,)) -> list[Message]:
    """The first so many records, without a group."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "reader", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    try:
        return take(consumer, count)
    finally:
        consumer.close()


def take(consumer: Consumer, count: int) -> list[Message]:
    """The next so many records of a consumer, which has its partitions or will be given some."""
    records = []
    while len(records) < count:
        record = consumer.poll(PATIENCE_SECONDS)
        assert record is not None, f"only {len(records)} of {count} records came"
        if record.error():
            raise KafkaException(record.error())
        records.append(record)
    return records


def values(records: Iterable[Message]) -> list[str]:
    return [record.value().decode() for record in records]


async def send_all(servers: str, topic: str, orders: Iterable[tuple[str, str]], **settings: object) -> list[int]:
    """Customer and order of each, acknowledged; the offsets they got."""
    async with AIOKafkaProducer(bootstrap_servers=servers, acks="all", **settings) as producer:
        sent = [await producer.send_and_wait(topic, order.encode(), customer.encode()) for customer, order in orders]
        return [each.offset for each in sent]


async def read_some(servers: str, topic: str, count: int, group: str) -> list[str]:
    """The next so many orders that a group has not seen, committed."""
    async with AIOKafkaConsumer(
        topic, bootstrap_servers=servers, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False
    ) as consumer:
        orders = []
        while len(orders) < count:
            record = await consumer.getone()
            orders.append(record.value.decode())
        await consumer.commit()
        return orders
