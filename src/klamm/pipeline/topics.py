"""The cluster before the start: whether it answers, and whether the topics are there that a pipeline needs.

A topic that is read has to exist: a misspelt one would be an empty result. Topics that are written are made if they are
missing, with as many partitions as the source has and three replicas, or as many as there are brokers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from klamm.pipeline.declaration import Pipeline
from klamm.pipeline.problems import PipelineError, meant

ANSWER_SECONDS = 10.0
MOST_REPLICAS = 3
GROUPS = "__consumer_offsets"
"""Where a cluster keeps what groups have read; not there before the first of them."""


class NoCluster(PipelineError):  # noqa: N818
    """Nobody answers."""


class NoTopic(PipelineError):  # noqa: N818
    """One that is read is not there, or one that is written could not be made."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """What was seen of it."""

    cluster_id: str
    brokers: int
    partitions: dict[str, int]
    """Of each topic."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    name: str
    partitions: int
    replicas: int

    @property
    def command(self) -> str:
        return f"klamm topic create {self.name} --partitions {self.partitions} --replication {self.replicas}"


def seen(bootstrap: str, settings: Mapping[str, str], seconds: float = ANSWER_SECONDS) -> Cluster:
    """`settings` as the client library has them, for TLS and SASL."""
    from confluent_kafka import KafkaException

    complaints: list[str] = []
    admin = admin_of(bootstrap, settings, complaints)
    try:
        metadata = admin.list_topics(timeout=seconds)
    except KafkaException as problem:
        said = f" ({complaints[0]})" if complaints else f" ({problem.args[0].str()})"
        raise NoCluster(
            f"no broker answers at {bootstrap}{said}. Is the cluster running? `klamm up --detach` starts one on this "
            "machine, --bootstrap HOST:PORT names another."
        ) from problem
    topics = {name: len(topic.partitions) for name, topic in metadata.topics.items() if topic.error is None}
    return Cluster(str(metadata.cluster_id or ""), len(metadata.brokers), topics)


def missing(pipeline: Pipeline, cluster: Cluster) -> list[NewTopic]:
    """Those to be made before it can run. One that is read and not there is a mistake."""
    replicas = min(MOST_REPLICAS, cluster.brokers)
    for source in pipeline.sources:
        if source.topic not in cluster.partitions:
            others = [name for name in cluster.partitions if not name.startswith("__")]
            hint = meant(source.topic, others) if "mean" in meant(source.topic, others) else ""
            wanted = NewTopic(source.topic, 10, replicas)
            raise NoTopic(
                f"there is no topic {source.topic}, which the pipeline reads.{hint} `klamm topic list` shows those "
                f"there are; `{wanted.command}` makes it."
            )
    widest = max(cluster.partitions[source.topic] for source in pipeline.sources)
    of_source = {source.quarantine_topic: cluster.partitions[source.topic] for source in pipeline.sources}
    return [
        NewTopic(name, of_source.get(name, widest), replicas)
        for name in pipeline.topic_names
        if name not in cluster.partitions
    ]


def make(new: list[NewTopic], bootstrap: str, settings: Mapping[str, str]) -> None:
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.cimpl import NewTopic as Asked

    asked = [Asked(each.name, num_partitions=each.partitions, replication_factor=each.replicas) for each in new]
    admin = admin_of(bootstrap, settings, [])
    futures = admin.create_topics(asked, operation_timeout=ANSWER_SECONDS) if asked else {}
    for each in new:
        try:
            futures[each.name].result(ANSWER_SECONDS * 2)
        except KafkaException as problem:
            if problem.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise NoTopic(
                    f"topic {each.name}, which the pipeline writes, is not there and could not be made: "
                    f"{problem.args[0].str()} Make it yourself: `{each.command}`."
                ) from problem


def admin_of(bootstrap: str, settings: Mapping[str, str], complaints: list[str]) -> Any:
    """A client; what it complains of goes to `complaints`."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    properties: dict[str, Any] = {
        **settings,
        "bootstrap.servers": bootstrap,
        "socket.connection.setup.timeout.ms": 5000,
        "error_cb": lambda error: complaints.append(error.str()),
    }
    try:
        return AdminClient(properties, logger=_Silent())
    except KafkaException as problem:
        raise PipelineError(
            f"the client does not take these settings: {problem.args[0].str()}. Look at what was given with --kafka."
        ) from problem


class _Silent:
    """The library would complain on standard error by itself, once a second."""

    def log(self, level: int, text: str, *arguments: object) -> None:
        pass
