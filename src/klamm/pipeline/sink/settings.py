"""From the options of a write to the settings of a producer: Java's names come in, librdkafka's go out.

Options that start with `kafka.` are settings of the producer, as with Spark's connector, whose producer is Java's. Most
have the same name in librdkafka; some have another; some only tune what Java does inside and change no result, so they
are left out; those that name Java classes are refused. What nobody knows is refused too: a misspelt option that is
quietly ignored is found out in production.

Our defaults are Java's where the two differ and a user could tell: which partition a key goes to, how large a record
may be, how long a delivery may take.
"""

from collections.abc import Iterable, Mapping

from confluent_kafka import KafkaException, Producer

from klamm.pipeline.kafka.problems import ClusterProblem
from klamm.pipeline.kafka.security import with_security
from klamm.pipeline.sink.problems import WrongOption

PREFIX = "kafka."
TOPIC = "topic"
LIKE_JAVA = {
    "partitioner": "murmur2_random",
    "message.max.bytes": "1048576",
    "delivery.timeout.ms": "120000",
    "acks": "all",
}
_RENAMED = {
    "max.request.size": "message.max.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
}
_OF_JAVA_ALONE = {
    "auto.include.jmx.reporter",
    "max.block.ms",
    "metadata.max.idle.ms",
    "metric.reporters",
    "metrics.num.samples",
    "metrics.recording.level",
    "metrics.sample.window.ms",
    "partitioner.adaptive.partitioning.enable",
    "partitioner.availability.timeout.ms",
}
_CLASSES = {"interceptor.classes", "partitioner.class", "security.providers", "ssl.engine.factory.class"}
ERRORS_ONLY = "3"
_SERIALIZERS = {"key.serializer", "value.serializer"}


def topic_of(options: Mapping[str, str]) -> str | None:
    """The option `topic`, which wins over a column of that name."""
    given = {name.lower(): value for name, value in options.items()}.get(TOPIC)
    return None if given is None else given.strip()


def producer_settings(options: Mapping[str, str]) -> dict[str, str]:
    """For librdkafka's producer, and known to be good: it was asked."""
    given = {
        name.lower().removeprefix(PREFIX): value for name, value in options.items() if name.lower().startswith(PREFIX)
    }
    _refuse(given)
    properties = _with_security({_RENAMED.get(name, name): value for name, value in given.items()})
    properties = {name: value for name, value in properties.items() if name not in _OF_JAVA_ALONE}
    _bound_memory(properties)
    _choose_level(properties)
    settings = {**LIKE_JAVA, "enable.idempotence": _idempotence(properties), **properties}
    _ask_librdkafka(settings, given)
    return settings


def _with_security(properties: Mapping[str, str]) -> dict[str, str]:
    try:
        return with_security(properties)
    except ClusterProblem as problem:
        raise WrongOption(str(problem)) from None


def _refuse(given: Mapping[str, str]) -> None:
    if not given.get("bootstrap.servers", "").strip():
        raise WrongOption(
            "The option kafka.bootstrap.servers is missing: which cluster shall the rows go to? Give one or more of "
            "its brokers, such as 'localhost:9092'."
        )
    for name in sorted(given):
        if name in _SERIALIZERS:
            raise WrongOption(
                f"The option kafka.{name} is not supported: keys and values are written as the bytes they are. Turn "
                "columns into strings or binary before you write them."
            )
        if name in _CLASSES:
            raise WrongOption(
                f"The option kafka.{name} names Java classes, and format klamm writes without Java. Leave it out, or "
                "write with Spark's own connector (format kafka)."
            )


def _bound_memory(properties: dict[str, str]) -> None:
    """Java counts bytes, librdkafka kilobytes."""
    if "buffer.memory" in properties:
        size_bytes = _number("buffer.memory", properties.pop("buffer.memory"))
        properties["queue.buffering.max.kbytes"] = str(max(1, size_bytes // 1024))


def _choose_level(properties: dict[str, str]) -> None:
    """Java has a level for each codec, librdkafka one for the codec that is used."""
    levels = {codec: properties.pop(f"compression.{codec}.level", None) for codec in ("gzip", "lz4", "zstd")}
    level = levels.get(properties.get("compression.type", "none"))
    if level is not None:
        properties["compression.level"] = level


def _idempotence(properties: Mapping[str, str]) -> str:
    """On, unless something is asked for that it excludes. Then it is off, as in Java; who asks for both is refused."""
    in_flight = "max.in.flight.requests.per.connection"
    excluded = (
        properties.get("acks", "all") not in ("all", "-1")
        or properties.get("retries") == "0"
        or _number(in_flight, properties.get(in_flight, "5")) > 5
    )
    return "false" if excluded else "true"


def _number(name: str, text: str) -> int:
    if not text.strip().isdigit():
        raise WrongOption(f"The option kafka.{name} is '{text}', and it has to be a whole number.")
    return int(text)


def _ask_librdkafka(settings: Mapping[str, str], given: Iterable[str]) -> None:
    """A producer without a cluster connects to nobody, and says what is wrong with its settings."""
    alone = {name: value for name, value in settings.items() if name != "bootstrap.servers"}
    try:
        Producer({**alone, "log_level": ERRORS_ONLY})
    except KafkaException as error:
        raise WrongOption(
            f"librdkafka, which writes for format klamm, does not take the options that start with kafka. "
            f"({', '.join(sorted(given))}): {error.args[0].str()}. It knows most settings of Kafka's Java producer and "
            "some of its own; look for the name in librdkafka's CONFIGURATION.md, or leave the option out."
        ) from None
