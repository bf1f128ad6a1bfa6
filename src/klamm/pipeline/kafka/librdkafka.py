"""Access through librdkafka, for clusters that want TLS or SASL: slower, since every record becomes a Python object.

The `kafka.` options are handed on as `source/options.py` translated them; what librdkafka does not know, it refuses.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, cast

import confluent_kafka as ck
import pyarrow as pa
from confluent_kafka import admin
from confluent_kafka.admin import AdminClient

from klamm.errors import ErrorCode, error_code
from klamm.ids import ZERO_UUID, TopicPartition, uuid_from_text
from klamm.pipeline.decoding import arrow_schema
from klamm.pipeline.kafka.access import Committed
from klamm.pipeline.kafka.cluster import ClusterSeen, TopicSeen
from klamm.pipeline.kafka.committing import PATIENCE_SECONDS
from klamm.pipeline.kafka.connection import Address
from klamm.pipeline.kafka.notes import END, closed, note_in
from klamm.pipeline.kafka.offsets import EARLIEST, LATEST
from klamm.pipeline.kafka.problems import (
    ClusterProblem,
    EndNotReached,
    NoAnswer,
    OutOfRange,
    Refused,
    TopicGone,
    no_records,
)
from klamm.pipeline.kafka.ranges import Range
from klamm.pipeline.kafka.settings import ClusterSettings

ROWS_AT_ONCE = 10_000
POLL_SECONDS = 0.5
READER_GROUP = "klamm-spark-reader"
"""librdkafka wants a group's name even where nobody joins one."""
_PATIENCE_MS = int(PATIENCE_SECONDS * 1000)


class LibrdkafkaAccess:
    def __init__(self, settings: ClusterSettings) -> None:
        self._settings = settings
        self._patience_seconds = settings.first_patience_seconds
        self._known_admin: AdminClient | None = None

    def look(self, topics: Sequence[str] | None) -> ClusterSeen:
        metadata = self._asked(lambda: self._admin.list_topics(timeout=self._patience_seconds))
        self._patience_seconds = self._settings.patience_seconds
        named = sorted(metadata.topics) if topics is None else [name for name in topics if name in metadata.topics]
        ids = self._topic_ids(named)
        leaders = {name: {p.id: p.leader for p in metadata.topics[name].partitions.values()} for name in named}
        return ClusterSeen(
            cluster_id=metadata.cluster_id or "",
            brokers={broker.id: Address(broker.host, broker.port) for broker in metadata.brokers.values()},
            topics={
                name: TopicSeen(name, ids.get(name, ZERO_UUID), dict(sorted(leaders[name].items())), _is_internal(name))
                for name in named
                if leaders[name]
            },
            refused={name: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION for name in topics or () if not leaders.get(name)},
        )

    def offsets(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        if not wanted:
            return {}
        asked = {ck.TopicPartition(*key): _spec(when) for key, when in wanted.items()}
        level = (
            ck.IsolationLevel.READ_COMMITTED if self._settings.read_committed else ck.IsolationLevel.READ_UNCOMMITTED
        )
        futures: dict[Any, Future[Any]] = self._admin.list_offsets(
            asked, isolation_level=level, request_timeout=self._patience_seconds
        )
        found = {}
        for key, future in futures.items():
            try:
                found[TopicPartition(key.topic, key.partition)] = future.result().offset
            except ck.KafkaException as error:
                if error.args[0].code() != ck.KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise _problem(error, f"the offsets of {key.topic}-{key.partition}") from error
        return found

    def rows(self, piece: Range, include_headers: bool) -> Iterator[pa.RecordBatch]:
        level = "read_committed" if self._settings.read_committed else "read_uncommitted"
        settings = {"enable.partition.eof": True, "auto.offset.reset": "error", "isolation.level": level}
        consumer = self._made(ck.Consumer, {**settings, "group.id": READER_GROUP, "enable.auto.commit": False})
        try:
            consumer.assign([ck.TopicPartition(piece.topic, piece.partition, piece.start)])
            yield from self._consumed(consumer, piece, include_headers)
        finally:
            consumer.close()

    def write_down(self, group: str, offsets: Mapping[TopicPartition, int], note: str = "") -> None:
        if not offsets:
            return
        # The second is how long librdkafka looks for the group's coordinator.
        quick = {"socket.timeout.ms": _PATIENCE_MS, "session.timeout.ms": _PATIENCE_MS}
        consumer = self._made(ck.Consumer, {**quick, "group.id": group, "enable.auto.commit": False})
        try:
            wanted = [ck.TopicPartition(*key, offset, metadata=closed(note)) for key, offset in sorted(offsets.items())]
            consumer.commit(offsets=wanted, asynchronous=False)
        except ck.KafkaException as error:
            raise _problem(error, f"progress of the group {group}") from error
        finally:
            consumer.close()

    def written_down(self, group: str) -> Committed:
        asked = self._admin.list_consumer_group_offsets(
            [ck.ConsumerGroupTopicPartitions(group)], request_timeout=PATIENCE_SECONDS
        )
        found = self._asked(lambda: asked[group].result(2 * PATIENCE_SECONDS))
        return {
            TopicPartition(each.topic, each.partition): (each.offset, _note_of(each))
            for each in found.topic_partitions
            if each.error is None
        }

    def close(self) -> None:
        self._known_admin = None

    def _consumed(self, consumer: Any, piece: Range, include_headers: bool) -> Iterator[pa.RecordBatch]:
        position, last_progress, problem = piece.start, time.monotonic(), "it is silent"
        while position < piece.end:
            messages = consumer.consume(ROWS_AT_ONCE, POLL_SECONDS)
            taken = []
            for message in messages:
                if message.error() is None:
                    position = message.offset() + 1
                    if message.offset() < piece.end:
                        taken.append(message)
                elif message.error().code() == ck.KafkaError._PARTITION_EOF:
                    position = max(position, message.offset())
                else:
                    _raise_for(message.error(), piece, position)
                    problem = message.error().str()
            if taken:
                yield _arrow(taken, piece, include_headers)
            now = time.monotonic()
            if messages and (taken or position >= piece.end):
                last_progress = now
            elif now - last_progress > self._settings.patience_seconds:
                self._check_end(piece, position)
                raise no_records(str(piece), now - last_progress, problem)

    def _check_end(self, piece: Range, position: int) -> None:
        """Silence alone says nothing about a log: only a cluster that answers can say that it is shorter by now."""
        key = TopicPartition(piece.topic, piece.partition)
        latest = self.offsets({key: LATEST}).get(key)
        if latest is not None and latest < piece.end:
            raise EndNotReached(piece.topic, piece.partition, position, piece.end)

    @property
    def _admin(self) -> AdminClient:
        if self._known_admin is None:
            self._known_admin = self._made(AdminClient, {})
        return self._known_admin

    def _made(self, kind: Any, settings: dict[str, Any]) -> Any:
        settings = {
            "bootstrap.servers": ",".join(map(str, self._settings.bootstrap)),
            "client.id": self._settings.client_id,
            "log_level": 3,
            **dict(self._settings.for_librdkafka),
            **settings,
        }
        try:
            return kind(settings)
        except ck.KafkaException as error:
            why = error.args[0].str().rstrip(".")
            raise ClusterProblem(
                f"librdkafka does not take the kafka. options: {why}. Where TLS or SASL are wanted the "
                "options are librdkafka's (kafka.ssl.ca.location, kafka.sasl.mechanism, kafka.sasl.username, "
                "kafka.sasl.password); leave out those that only Java knows."
            ) from error

    def _asked(self, question: Any) -> Any:
        try:
            return question()
        except ck.KafkaException as error:
            servers = ",".join(map(str, self._settings.bootstrap))
            raise NoAnswer(
                f"No cluster answers at {servers} ({error.args[0].str()}). Check that it runs, that "
                "kafka.bootstrap.servers names its brokers, and the kafka.security, kafka.ssl and kafka.sasl options; "
                "they are librdkafka's, for instance kafka.ssl.ca.location, kafka.sasl.username."
            ) from error

    def _topic_ids(self, names: Sequence[str]) -> dict[str, bytes]:
        """None where the cluster is too old for topic ids, or does not let us describe."""
        if not names:
            return {}
        futures = self._admin.describe_topics(ck.TopicCollection(list(names)), request_timeout=self._patience_seconds)
        found = {}
        for name, future in futures.items():
            try:
                found[name] = uuid_from_text(str(future.result().topic_id))
            except (ck.KafkaException, ValueError):
                continue
        return found


def _spec(when: int) -> Any:
    specs = cast(Any, admin).OffsetSpec
    if when == EARLIEST:
        return specs.earliest()
    return specs.latest() if when == LATEST else specs.for_timestamp(when)


def _is_internal(name: str) -> bool:
    return name in ("__consumer_offsets", "__transaction_state")


def _arrow(messages: list[Any], piece: Range, include_headers: bool) -> pa.RecordBatch:
    schema = arrow_schema(include_headers)
    times = [message.timestamp() for message in messages]
    columns: list[Any] = [
        [message.key() for message in messages],
        [message.value() for message in messages],
        [piece.topic] * len(messages),
        [piece.partition] * len(messages),
        [message.offset() for message in messages],
        [time_ms * 1000 for _, time_ms in times],
        # librdkafka counts from "none", Kafka from -1.
        [kind - 1 for kind, _ in times],
    ]
    if include_headers:
        columns.append([_headers(message.headers()) for message in messages])
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _headers(found: Any) -> list[dict[str, Any]] | None:
    return [{"key": key, "value": value} for key, value in found] if found else None


def _raise_for(error: Any, piece: Range, position: int) -> None:
    code = error.code()
    if code in (ck.KafkaError._AUTO_OFFSET_RESET, ck.KafkaError.OFFSET_OUT_OF_RANGE):
        raise OutOfRange(piece.topic, piece.partition, position)
    if code in (ck.KafkaError.UNKNOWN_TOPIC_OR_PART, ck.KafkaError._UNKNOWN_TOPIC, ck.KafkaError._UNKNOWN_PARTITION):
        raise TopicGone(piece.topic, f"The topic {piece.topic} was deleted while {piece} was to be read.")
    if error.fatal() or code in (ck.KafkaError._AUTHENTICATION, ck.KafkaError.TOPIC_AUTHORIZATION_FAILED):
        raise Refused(error_code(code), f"reading {piece}: {error.str()}")
    # All else passes; librdkafka tries again by itself.


def _problem(error: ck.KafkaException, what: str) -> ClusterProblem:
    if error.args[0].code() < 0:
        # librdkafka's own codes: nobody was reached, or nobody answered in time.
        return NoAnswer(f"{what}: {error.args[0].str()}. Check the cluster; the query can be restarted.")
    return Refused(error_code(error.args[0].code()), f"{what}: {error.args[0].str()}")


def _note_of(partition: Any) -> str:
    try:
        return note_in(partition.metadata)
    except UnicodeDecodeError as problem:
        # What stands behind its end is no text; the note itself is.
        return problem.object.partition(END.encode())[0].decode(errors="replace")
