"""The options of a query, understood and checked before anything is asked of a cluster.

Names, meanings, defaults and what is refused are those of Spark's Kafka connector 4.x, so that `format("klamm")` and
`format("kafka")` are interchangeable. Ours alone are `klamm.reader`: `raw` (our own fetches), `librdkafka`, or `auto`,
which is librdkafka where `kafka.security.protocol` asks for TLS or SASL; and `klamm.group.note`, which is written down
beside the progress of the group `kafka.group.id`.
"""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass

from klamm.ids import TopicPartition
from klamm.pipeline.kafka.access import LIBRDKAFKA, RAW
from klamm.pipeline.kafka.connection import CLIENT_ID
from klamm.pipeline.kafka.problems import ClusterProblem
from klamm.pipeline.kafka.security import with_security
from klamm.pipeline.kafka.settings import ClusterSettings, addresses
from klamm.pipeline.source.limits import ENDING, STARTING, Kind, Limit, check_batch, limit_of, partitions_of
from klamm.pipeline.source.option_names import KAFKA, check_names
from klamm.pipeline.source.problems import WrongOption
from klamm.pipeline.source.values import boolean, duration_seconds, number, one_of

log = logging.getLogger("klamm.pipeline")

STRATEGIES = ("subscribe", "subscribePattern", "assign")
_BYTES = "Keys and values are columns of bytes; turn them into what you need with DataFrame functions."
REFUSED = {
    "kafka.auto.offset.reset": "Where a new query starts is said by startingOffsets ('earliest', 'latest', offsets); a "
    "query that goes on starts where its checkpoint ends.",
    "kafka.key.deserializer": _BYTES,
    "kafka.value.deserializer": _BYTES,
    "kafka.enable.auto.commit": "Progress is in Spark's checkpoint. To show it to other tools set kafka.group.id.",
    "kafka.interceptor.classes": "An interceptor could change records; use DataFrame functions.",
}
NO_SECURITY = "PLAINTEXT"
SLOWER = "Reading through librdkafka (for TLS or SASL, or because klamm.reader says so), slower than our own fetches."


@dataclass(frozen=True, slots=True)
class Wanted:
    """Exactly one of the three."""

    topics: tuple[str, ...] = ()
    pattern: str = ""
    partitions: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceOptions:
    cluster: ClusterSettings
    reader: str
    wanted: Wanted
    starting: Limit
    ending: Limit
    include_headers: bool
    fail_on_data_loss: bool
    group: str | None
    group_note: str
    min_partitions: int | None
    max_records_per_partition: int | None
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_seconds: float
    attempts: int
    attempt_pause_seconds: float


def batch_options(options: Mapping[str, str]) -> SourceOptions:
    given = lowered(options)
    found = _understood(given, Kind.EARLIEST)
    check_batch(found.starting, found.ending)
    for name in ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay"):
        if name.lower() in given:
            log.warning("%s is ignored in a batch query; it limits the triggers of a stream", name)
    return found


def stream_options(options: Mapping[str, str]) -> SourceOptions:
    given = lowered(options)
    for name in (ENDING.offsets, ENDING.times):
        if name.lower() in given:
            raise WrongOption(f"{name} is for batch queries (spark.read); a stream has no end. Leave it out.")
    if ENDING.time.lower() in given:
        log.warning("%s is ignored in a stream, which has no end", ENDING.time)
    return _understood({name: text for name, text in given.items() if name != ENDING.time.lower()}, Kind.LATEST)


def include_headers(options: Mapping[str, str]) -> bool:
    return boolean(lowered(options), "includeHeaders", False)


def lowered(options: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): text for name, text in options.items()}


def _understood(given: Mapping[str, str], starting: Kind) -> SourceOptions:
    check_names(given)
    for name, instead in REFUSED.items():
        if name in given:
            raise WrongOption(f"The option {name} cannot be used here. {instead}")
    least, most = number(given, "minOffsetsPerTrigger"), number(given, "maxOffsetsPerTrigger", least=1)
    if least is not None and most is not None and least > most:
        raise WrongOption(f"minOffsetsPerTrigger ({least}) is above maxOffsetsPerTrigger ({most}). Lower it.")
    if "kafka.group.id" in given and "groupidprefix" in given:
        log.warning("groupIdPrefix is ignored where kafka.group.id is set")
    reader = _reader(given)
    return SourceOptions(
        cluster=_cluster(given, reader),
        reader=reader,
        wanted=_wanted(given),
        starting=limit_of(given, STARTING, starting),
        ending=limit_of(given, ENDING, Kind.LATEST),
        include_headers=boolean(given, "includeHeaders", False),
        fail_on_data_loss=boolean(given, "failOnDataLoss", True),
        group=given.get("kafka.group.id"),
        group_note=given.get("klamm.group.note", ""),
        min_partitions=number(given, "minPartitions", least=1),
        max_records_per_partition=number(given, "maxRecordsPerPartition", least=1),
        max_offsets_per_trigger=most,
        min_offsets_per_trigger=least,
        max_trigger_delay_seconds=duration_seconds(given, "maxTriggerDelay", "15m"),
        attempts=number(given, "fetchOffset.numRetries", 3, least=1) or 1,
        attempt_pause_seconds=(number(given, "fetchOffset.retryIntervalMs", 1000) or 0) / 1000,
    )


def _wanted(given: Mapping[str, str]) -> Wanted:
    named = [name for name in STRATEGIES if name.lower() in given]
    if len(named) != 1:
        said = "none of them is given" if not named else f"{' and '.join(named)} are given"
        raise WrongOption(
            "Say what to read with exactly one of subscribe (topics, 'orders,payments'), subscribePattern (a regular "
            f"expression) and assign (partitions, as JSON); {said}."
        )
    text = given[named[0].lower()].strip()
    if named[0] == "assign":
        return Wanted(partitions=partitions_of(text))
    if named[0] == "subscribe":
        topics = tuple(dict.fromkeys(filter(None, (topic.strip() for topic in text.split(",")))))
        if not topics:
            raise WrongOption("subscribe names no topic. Give one or more, such as 'orders' or 'orders,payments'.")
        return Wanted(topics=topics)
    try:
        re.compile(text)
    except re.error as error:
        raise WrongOption(f"subscribePattern '{text}' is no regular expression: {error}.") from error
    if not text:
        raise WrongOption("subscribePattern is empty. Give a regular expression, such as 'orders-.*'.")
    return Wanted(pattern=text)


def _cluster(given: Mapping[str, str], reader: str) -> ClusterSettings:
    servers = given.get("kafka.bootstrap.servers")
    if servers is None:
        raise WrongOption(
            "The option kafka.bootstrap.servers is missing. Give one or more of the cluster's brokers, such as "
            "'localhost:9092'."
        )
    try:
        bootstrap = addresses(servers)
        for_librdkafka = _for_librdkafka(given) if reader == LIBRDKAFKA else ()
    except ClusterProblem as problem:
        raise WrongOption(str(problem)) from problem
    level = one_of(given, "kafka.isolation.level", "read_uncommitted", ("read_uncommitted", "read_committed"))
    return ClusterSettings(
        bootstrap=bootstrap,
        client_id=given.get("kafka.client.id", CLIENT_ID),
        rack=given.get("kafka.client.rack", ""),
        read_committed=level == "read_committed",
        request_timeout_seconds=(number(given, "kafka.request.timeout.ms", 30_000, least=1) or 0) / 1000,
        patience_seconds=(number(given, "kafkaConsumer.pollTimeoutMs", 120_000, least=1) or 0) / 1000,
        for_librdkafka=for_librdkafka,
        **_fetch(given),
    )


def _fetch(given: Mapping[str, str]) -> dict[str, int]:
    """How much is fetched at once. A task reads one partition, so the smaller of the two limits is its limit."""
    most = [number(given, name, least=1) for name in ("kafka.fetch.max.bytes", "kafka.max.partition.fetch.bytes")]
    found = {
        "fetch_bytes": min((size for size in most if size is not None), default=None),
        "fetch_least_bytes": number(given, "kafka.fetch.min.bytes"),
        "fetch_wait_ms": number(given, "kafka.fetch.max.wait.ms"),
    }
    return {name: value for name, value in found.items() if value is not None}


def _reader(given: Mapping[str, str]) -> str:
    chosen = one_of(given, "klamm.reader", "auto", ("auto", RAW, LIBRDKAFKA))
    protocol = given.get("kafka.security.protocol", NO_SECURITY).strip().upper()
    if chosen == RAW and protocol != NO_SECURITY:
        raise WrongOption(
            f"klamm.reader is 'raw', which speaks neither TLS nor SASL, and kafka.security.protocol is {protocol}. "
            "Leave klamm.reader out: librdkafka reads then."
        )
    if chosen == "auto":
        chosen = RAW if protocol == NO_SECURITY else LIBRDKAFKA
    if chosen == LIBRDKAFKA:
        log.warning(SLOWER)
    return chosen


_OURS = ("kafka.bootstrap.servers", "kafka.group.id", "kafka.isolation.level", "kafka.client.id", "kafka.client.rack")

_RENAMED = {"fetch.max.wait.ms": "fetch.wait.max.ms"}


def _for_librdkafka(given: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Under librdkafka's names, where they are not Java's."""
    found = {name.removeprefix(KAFKA): text for name, text in given.items() if name.startswith(KAFKA)}
    for name in _OURS:
        found.pop(name.removeprefix(KAFKA), None)
    return tuple(sorted((_RENAMED.get(name, name), text) for name, text in with_security(found).items()))
