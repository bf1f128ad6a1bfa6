"""What can go wrong with a cluster, in the words people read. Each text is a paragraph that says what to do."""

from klamm.errors import ErrorCode


class ClusterProblem(Exception):  # noqa: N818
    """The cluster cannot be asked, or refuses; trying again would not help."""


class NoAnswer(ClusterProblem):
    """Nobody there, or nobody who answers in time. The next attempt, or another broker, may."""


class Refused(ClusterProblem):
    """A broker answered with an error code."""

    def __init__(self, code: ErrorCode, text: str) -> None:
        super().__init__(text)
        self.code = code


class OutOfRange(ClusterProblem):
    """The offset that was asked for is not in the log: retention passed it, or the log was cut before it."""

    def __init__(self, topic: str, partition: int, offset: int) -> None:
        super().__init__(f"offset {offset} is not in the log of {topic}-{partition}")
        self.topic, self.partition, self.offset = topic, partition, offset


class TopicGone(ClusterProblem):
    """The topic was deleted, or another one has its name now."""

    def __init__(self, topic: str, text: str) -> None:
        super().__init__(text)
        self.topic = topic


class EndNotReached(ClusterProblem):
    """The log stayed shorter than it was when the read was planned."""

    def __init__(self, topic: str, partition: int, offset: int, end: int) -> None:
        super().__init__(f"{topic}-{partition} ends at {offset}, the read was planned up to {end}")
        self.topic, self.partition, self.offset, self.end = topic, partition, offset, end


def no_records(piece: str, waited_seconds: float, problem: str) -> NoAnswer:
    return NoAnswer(
        f"{piece}: no broker gave these records for {waited_seconds:.0f} s ({problem}). Check the cluster; the query "
        "can be restarted and goes on where it was. kafkaConsumer.pollTimeoutMs sets how long to wait."
    )
