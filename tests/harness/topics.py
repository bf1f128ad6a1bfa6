"""Topics for tests, made through a client's own admin calls."""

from collections.abc import Mapping

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec  # type: ignore[attr-defined]

from tests.harness.waiting import wait_until

BROKER_DEFAULT = -1


def create_topic(
    bootstrap: str, name: str, partitions: int = BROKER_DEFAULT, config: Mapping[str, str] | None = None
) -> None:
    """Creates a topic and returns when every partition of it can be used."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = NewTopic(name, num_partitions=partitions, replication_factor=BROKER_DEFAULT, config=dict(config or {}))
    admin.create_topics([new], operation_timeout=30)[name].result(timeout=30)
    wait_usable(admin, name)


def wait_usable(admin: AdminClient, name: str) -> None:
    """Until the topic is listed with all its leaders, and they answer: on Kafka the second comes a moment later."""
    wait_until(lambda: bool(_led_partitions(admin, name)), f"{name} has leaders")
    numbers = _led_partitions(admin, name)
    wait_until(lambda: _all_answer(admin, name, numbers), f"the leaders of {name} answer")


def _led_partitions(admin: AdminClient, name: str) -> list[int]:
    """The partitions' numbers, or none while one of them has no leader."""
    topic = admin.list_topics(name, timeout=10).topics[name]
    led = topic.error is None and all(partition.leader >= 0 for partition in topic.partitions.values())
    return sorted(topic.partitions) if led else []


def _all_answer(admin: AdminClient, name: str, numbers: list[int]) -> bool:
    ends = admin.list_offsets({TopicPartition(name, number): OffsetSpec.latest() for number in numbers})
    try:
        return all(end.result(timeout=10).offset >= 0 for end in ends.values())
    except KafkaException:
        return False
