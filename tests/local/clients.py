"""What tests of whole clusters do with them: write some records, read them all."""

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition


def write(bootstrap: str, topic: str, *values: str, acks: str = "all") -> None:
    """Acknowledged, each of them."""
    problems: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: object) -> None:
        if error is not None:
            problems.append(error)

    producer = Producer({"bootstrap.servers": bootstrap, "acks": acks, "log_level": 0})
    for value in values:
        producer.produce(topic, value=value, on_delivery=delivered)
    assert producer.flush(30) == 0 and not problems, problems


def read(bootstrap: str, topic: str, count: int, partition: int = 0) -> list[str]:
    """The first so many values of a partition."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "tests", "enable.auto.commit": False, "log_level": 0}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, partition, 0)])
    values: list[str] = []
    try:
        while len(values) < count:
            message = consumer.poll(30)
            assert message is not None, f"{len(values)} of {count} records within 30 s"
            problem = message.error()
            if problem:
                raise KafkaException(problem)
            values.append((message.value() or b"").decode())
    finally:
        consumer.close()
    return values
