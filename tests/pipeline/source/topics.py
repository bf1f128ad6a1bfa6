"""Topics with records in them, for tests that read."""

from collections.abc import Iterable

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic  # type: ignore[attr-defined]


class Topics:
    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self._configuration: dict[str, str | int | float | bool] = {
            "bootstrap.servers": bootstrap_servers,
            "log_level": 0,
        }
        self._admin = AdminClient(self._configuration)

    def create(self, name: str, partitions: int = 1, replicas: int = 1, **settings: str) -> None:
        config = {key.replace("_", "."): value for key, value in settings.items()}
        created = self._admin.create_topics([NewTopic(name, partitions, replicas, config=config)])
        created[name].result(30)

    def add_partitions(self, name: str, total: int) -> None:
        self._admin.create_partitions([NewPartitions(name, total)])[name].result(30)

    def delete(self, name: str) -> None:
        self._admin.delete_topics([name], operation_timeout=30)[name].result(30)

    def committed(self, group: str, topic: str, partitions: int) -> list[int]:
        consumer = Consumer({**self._configuration, "group.id": group})
        try:
            keys = [TopicPartition(topic, partition) for partition in range(partitions)]
            return [found.offset for found in consumer.committed(keys, timeout=30)]
        finally:
            consumer.close()

    def write(self, name: str, partition: int, values: Iterable[bytes], **producer: str) -> None:
        settings = {key.replace("_", "."): value for key, value in producer.items()}
        written = Producer({**self._configuration, "linger.ms": 5, **settings})
        for value in values:
            written.produce(name, value, partition=partition)
            written.poll(0)
        assert written.flush(30) == 0
