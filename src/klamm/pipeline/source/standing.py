"""Asking a cluster what a query needs to know: which partitions it wants, and where they begin and end."""

import logging
import re
import time
from collections.abc import Mapping
from typing import Protocol

from klamm.errors import ErrorCode
from klamm.ids import ZERO_UUID, TopicPartition, uuid_text
from klamm.pipeline.kafka.access import Access
from klamm.pipeline.kafka.cluster import ClusterSeen, TopicSeen
from klamm.pipeline.kafka.offsets import EARLIEST, LATEST, NO_MATCH
from klamm.pipeline.kafka.problems import ClusterProblem
from klamm.pipeline.source.limits import Kind, Limit
from klamm.pipeline.source.options import SourceOptions
from klamm.pipeline.source.planning import Standing
from klamm.pipeline.source.position import MEMBER, Position
from klamm.pipeline.source.problems import WrongOption

log = logging.getLogger("klamm.pipeline")


class Sleep(Protocol):
    def __call__(self, seconds: float, /) -> None: ...


class Asking:
    """`may_be_missing`: for a stream under way it is no mistake if a topic is gone, but a loss."""

    def __init__(self, options: SourceOptions, access: Access, sleep: Sleep = time.sleep) -> None:
        self._options = options
        self._access = access
        self._sleep = sleep

    def standing(self, may_be_missing: bool = False) -> Standing:
        seen = self._seen(may_be_missing)
        keys = self._keys(seen)
        earliest = self._access.offsets(dict.fromkeys(keys, EARLIEST))
        latest = self._access.offsets(dict.fromkeys(keys, LATEST))
        there = sorted(earliest.keys() & latest.keys())
        return Standing(
            cluster=seen.cluster_id,
            topics={topic: _id_text(seen, topic) for topic in sorted({key.topic for key in there})},
            earliest={key: earliest[key] for key in there},
            latest={key: latest[key] for key in there},
        )

    def standing_after(self, known: Position) -> Standing:
        """The same for a stream under way. What the position knows and the cluster does not (a topic, a partition, the
        end of a log) is asked for again before it counts as lost: whoever answered may be behind the others."""
        for attempt in range(self._options.attempts):
            now = self.standing(may_be_missing=not known.is_initial)
            if now.has_all_of(known):
                break
            if attempt + 1 < self._options.attempts:
                self._sleep(self._options.attempt_pause_seconds)
        return now

    def resolved(self, limit: Limit, now: Standing, is_start: bool) -> dict[TopicPartition, int]:
        """The offsets that a limit means, for every partition."""
        if limit.kind is Kind.EARLIEST:
            return dict(now.earliest)
        if limit.kind is Kind.LATEST:
            return dict(now.latest)
        if limit.kind is Kind.TIME:
            return self._at_times(limit, dict.fromkeys(now.latest, limit.time_ms), now, is_start)
        if limit.values.keys() != now.latest.keys():
            raise WrongOption(_differ(limit, now))
        if limit.kind is Kind.TIMES:
            return self._at_times(limit, limit.values, now, is_start)
        words = {EARLIEST: now.earliest, LATEST: now.latest}
        return {key: words[offset][key] if offset in words else offset for key, offset in limit.values.items()}

    def _at_times(
        self, limit: Limit, times: Mapping[TopicPartition, int], now: Standing, is_start: bool
    ) -> dict[TopicPartition, int]:
        found = self._access.offsets(times)
        for key, offset in sorted(found.items()):
            if offset != NO_MATCH:
                continue
            if is_start and not limit.latest_without_match:
                raise WrongOption(
                    f"{limit.option}: {key} has no record at or after {times[key]}. Choose an earlier time, or set "
                    "startingOffsetsByTimestampStrategy to 'latest' to start such partitions at their end."
                )
            found[key] = now.latest[key]
        return found

    def _seen(self, may_be_missing: bool) -> ClusterSeen:
        """The metadata; a topic that is missing is asked for again, since a new one takes a moment to be known."""
        wanted = self._options.wanted
        names = sorted({key.topic for key in wanted.partitions}) or list(wanted.topics) or None
        for attempt in range(self._options.attempts):
            seen = self._access.look(names)
            missing = [name for name in names or () if name not in seen.topics and not may_be_missing]
            if not missing or attempt + 1 == self._options.attempts:
                break
            self._sleep(self._options.attempt_pause_seconds)
        if missing:
            raise ClusterProblem(_missing_topics(seen, missing, self._options))
        return seen

    def _keys(self, seen: ClusterSeen) -> list[TopicPartition]:
        wanted = self._options.wanted
        if wanted.partitions:
            known = [key for key in wanted.partitions if key.topic in seen.topics]
            absent = [str(key) for key in known if key.partition not in _leaders(seen, key)]
            if absent:
                # The connector reads the others without a word; whoever comes from there expects that much.
                log.warning("assign: there is no partition %s. Partitions count from 0.", ", ".join(absent))
            return [key for key in known if key.partition in _leaders(seen, key)]
        topics = [topic for topic in seen.topics.values() if not wanted.pattern or _matches(wanted.pattern, topic)]
        if MEMBER in (topic.name for topic in topics):
            raise WrongOption(f"A topic named {MEMBER} cannot be read: the checkpoint uses this name for itself.")
        return [TopicPartition(topic.name, partition) for topic in topics for partition in topic.leaders]


def _leaders(seen: ClusterSeen, key: TopicPartition) -> dict[int, int]:
    return seen.topics[key.topic].leaders


def _matches(pattern: str, topic: TopicSeen) -> bool:
    """Anywhere in the name, as the connector does it; internal topics are nobody's business."""
    return not topic.is_internal and re.search(pattern, topic.name) is not None


def _id_text(seen: ClusterSeen, topic: str) -> str:
    topic_id = seen.topics[topic].topic_id
    return "" if topic_id == ZERO_UUID else uuid_text(topic_id)


def _missing_topics(seen: ClusterSeen, missing: list[str], options: SourceOptions) -> str:
    codes = {seen.refused.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for name in missing}
    servers = ",".join(map(str, options.cluster.bootstrap))
    names = ", ".join(missing)
    if codes == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}:
        return (
            f"There is no topic {names} in the cluster at {servers}. Create it first (klamm topic create {missing[0]}) "
            "or check its spelling in subscribe or assign."
        )
    said = ", ".join(sorted(code.name for code in codes))
    return f"The cluster at {servers} does not let {names} be read: {said}. Check the topic's name and its permissions."


def _differ(limit: Limit, now: Standing) -> str:
    unknown = sorted(limit.values.keys() - now.latest.keys())
    lacking = sorted(now.latest.keys() - limit.values.keys())
    said = [f"{', '.join(map(str, lacking))} missing"] if lacking else []
    said += [f"{', '.join(map(str, unknown))} unknown"] if unknown else []
    hint = (
        " In offsets use -2 for earliest and -1 for latest where you do not care." if limit.kind is Kind.OFFSETS else ""
    )
    return f"{limit.option} has to name exactly the partitions that are read: {'; '.join(said)}.{hint}"
