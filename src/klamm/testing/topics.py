"""Topics as a test asks for them: made, and known everywhere when the call returns."""

from collections.abc import Iterable, Mapping

from klamm.errors import ErrorCode
from klamm.local.asking import Address, Conversation, NoAnswer
from klamm.local.view import ClusterSeen, UnknownTopic, cluster_seen
from klamm.testing.problems import TopicRefused
from klamm.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

__tracebackhide__ = True
"""For pytest: the report of a test that fails ends in the test's own line."""

CREATE_TOPICS, VERSION = 19, 7
ANSWER_SECONDS = 10.0


def create(
    addresses: Iterable[Address], name: str, partitions: int, replication: int, configs: Mapping[str, object]
) -> None:
    """Ask the first of these brokers that answers. TopicRefused says why not."""
    wanted = CreatableTopic(name=name, num_partitions=partitions, replication_factor=replication)
    wanted.configs = [CreatableTopicConfig(config_name(key), config_value(value)) for key, value in configs.items()]
    problems = []
    for address in addresses:
        try:
            with Conversation(address, ANSWER_SECONDS) as broker:
                request = CreateTopicsRequest([wanted], timeout_ms=int(ANSWER_SECONDS * 1000))
                (told,) = broker.ask(CREATE_TOPICS, VERSION, request).topics
        except NoAnswer as problem:
            problems.append(str(problem))
            continue
        if told.error_code == ErrorCode.TOPIC_ALREADY_EXISTS and problems:
            # Whoever was asked before did it, and could not say so any more.
            return
        if told.error_code:
            reason = f": {told.error_message}" if told.error_message else ""
            raise TopicRefused(f"topic {name} was not created: {ErrorCode(told.error_code).name}{reason}")
        return
    raise TopicRefused(f"topic {name} was not created, nobody answers: {'; '.join(problems) or 'no broker runs'}")


def seen_by(address: Address, topics: list[str]) -> ClusterSeen | None:
    """The cluster and these topics as one broker knows them; None if it does not answer, or does not know them."""
    try:
        return cluster_seen([address], ANSWER_SECONDS, topics)
    except (NoAnswer, UnknownTopic):
        return None


def config_name(key: str) -> str:
    """Kafka's name of a setting, which Python writes with underscores."""
    return key.replace("_", ".")


def config_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
