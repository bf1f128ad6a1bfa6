"""How a broker's disk does, as the broker says it over Kafka's protocol (DescribeLogDirs).

A directory with an error takes no writes: with little room left its disk is full, else it fails. A log whose lag nobody
knows is offline.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from klamm.ids import TopicPartition
from klamm.local.asking import Conversation
from klamm.log.files import Space
from klamm.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest

DESCRIBE_LOG_DIRS = 35
UNKNOWN = Space(-1, -1)
NAMED = 3
UNITS = ("B", "kB", "MB", "GB", "TB")


@dataclass(frozen=True, slots=True)
class StorageSeen:
    takes_writes: bool = True
    space: Space = UNKNOWN
    """Of the disk; -1 where the broker does not say."""
    offline: tuple[TopicPartition, ...] = ()
    """Logs that take nothing and give nothing."""

    @property
    def is_full(self) -> bool:
        return not self.takes_writes and self.space.free_bytes >= 0 and not self.space.has_room

    @property
    def trouble(self) -> str | None:
        """In words, after the name of the broker; None where there is none."""
        if self.is_full:
            return f"has a full disk, {sized(self.space.free_bytes)} of {sized(self.space.total_bytes)} free"
        if not self.takes_writes:
            return "has a disk that takes no writes"
        if self.offline:
            named = ", ".join(map(str, self.offline[:NAMED]))
            more = f" and {len(self.offline) - NAMED} more" if len(self.offline) > NAMED else ""
            return f"has failed logs: {named}{more}"
        return None


def log_dirs(broker: Conversation, partitions: Sequence[TopicPartition] | None = None) -> Any:
    """Of these partitions, or of all that it has."""
    topics: dict[str, DescribableLogDirTopic] | None = None
    if partitions is not None:
        topics = {}
        for name, index in partitions:
            topics.setdefault(name, DescribableLogDirTopic(name, [])).partitions.append(index)
    request = DescribeLogDirsRequest(topics=None if topics is None else list(topics.values()))
    return broker.ask(DESCRIBE_LOG_DIRS, 4, request)


def storage_in(answer: Any) -> StorageSeen:
    """A DescribeLogDirs response. Of several directories, as Kafka's brokers may have, the worst."""
    worst = min(answer.results, key=lambda each: (not each.error_code, each.usable_bytes), default=None)
    if worst is None:
        # Kafka's brokers say so where they may not say.
        return StorageSeen()
    offline = sorted(
        TopicPartition(topic.name, each.partition_index)
        for directory in answer.results
        for topic in directory.topics
        for each in topic.partitions
        if each.offset_lag < 0
    )
    return StorageSeen(not worst.error_code, Space(worst.total_bytes, worst.usable_bytes), tuple(offline))


def sized(size: float) -> str:
    """`970 B`, `1.4 MB`."""
    for unit in UNITS:
        if size < 1_000 or unit == UNITS[-1]:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1_000
    raise AssertionError("the last unit takes everything")
