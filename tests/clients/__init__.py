"""Python's Kafka clients against a running broker."""

from tests.clients.aio import AioKafka
from tests.clients.confluent import ConfluentKafka
from tests.clients.driver import Driver
from tests.clients.kafka_python import KafkaPython

DRIVERS: tuple[Driver, ...] = (ConfluentKafka(), KafkaPython(), AioKafka())
