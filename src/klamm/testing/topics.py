"""Topics as a test asks for them: made, and known everywhere when the call returns; looked at, and told from those that
are not there."""

from collections.abc import Iterable, Mapping, Sequence

from klamm.errors import ErrorCode
from klamm.local.agreeing import settings_text
from klamm.local.asking import Address, Conversation, NoAnswer
from klamm.local.asking_several import first_answer
from klamm.local.view import ClusterSeen, UnknownTopic, cluster_seen
from klamm.testing.problems import TopicRefused
from klamm.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from klamm.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

__tracebackhide__ = True
"""For pytest: the report of a test that fails ends in the test's own line."""

CREATE_TOPICS, VERSION = 19, 7
CREATE_PARTITIONS, CREATE_PARTITIONS_VERSION = 37, 3
ANSWER_SECONDS = 10.0
SOON_SECONDS = 2.0
MOST = (1 << 31) - 1
IS_MISSING = {
    ErrorCode.NONE,
    ErrorCode.INVALID_REPLICATION_FACTOR,  # There would be, if there were brokers for all its replicas.
    ErrorCode.POLICY_VIOLATION,  # Too many to be added at once.
}
"""The answers to whether a topic could be given a partition that it does not have."""


def create(
    addresses: Iterable[Address], name: str, partitions: int, replication: int, configs: Mapping[str, object]
) -> None:
    """Ask the first of these brokers that answers. TopicRefused says why not."""
    wanted = CreatableTopic(name=name, num_partitions=partitions, replication_factor=replication)
    wanted.configs = [CreatableTopicConfig(config_name(key), value) for key, value in settings_text(configs).items()]
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


def why_not_there(addresses: Sequence[Address], topic: str, partition: int) -> str | None:
    """Why there is no such partition; None if there is one, or nobody can say. A broker may not have heard yet of what
    was created through another. The controller has, and any broker passes this on to it: whether the topic could be
    given so many partitions that this one would be new."""
    # A negative one is never there: it is asked for more than there can be, to hear of the topic.
    wanted = CreatePartitionsTopic(topic, partition + 1 if 0 <= partition < MOST else MOST, assignments=None)
    request = CreatePartitionsRequest([wanted], timeout_ms=int(SOON_SECONDS * 1000), validate_only=True)
    try:
        _, answer = first_answer(
            addresses, SOON_SECONDS, lambda broker: broker.ask(CREATE_PARTITIONS, CREATE_PARTITIONS_VERSION, request)
        )
    except NoAnswer:
        return None
    (told,) = answer.results
    if told.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return f"there is no topic {topic}"
    if told.error_code not in IS_MISSING:
        return None
    seen = [found.partitions for found in (seen_by(address, [topic]) for address in addresses) if found is not None]
    has = f": it has 0 to {max(map(len, seen)) - 1}" if seen else ""
    return f"there is no partition {partition} of {topic}{has}"


def config_name(key: str) -> str:
    """Kafka's name of a setting, which Python writes with underscores."""
    return key.replace("_", ".")
