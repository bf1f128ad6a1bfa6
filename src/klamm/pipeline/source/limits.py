"""Where a query begins or ends: the words `earliest` and `latest`, offsets, or times, as the options spell them.

Times go before offsets if both are given, and a time for all partitions goes before times for each: the connector's
order. In offsets -2 is the earliest and -1 the latest.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from klamm.ids import TopicPartition
from klamm.pipeline.kafka.offsets import EARLIEST, LATEST
from klamm.pipeline.source.problems import WrongOption

OFFSETS_EXAMPLE = '{"topicA": {"0": 23, "1": -1}, "topicB": {"0": -2}}'
TIMES_EXAMPLE = '{"topicA": {"0": 1700000000000, "1": 1700000000000}}'
PARTITIONS_EXAMPLE = '{"topicA": [0, 1], "topicB": [2, 4]}'


class Kind(Enum):
    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSETS = "offsets"
    TIMES = "a time per partition"
    TIME = "a time"


@dataclass(frozen=True, slots=True)
class Limit:
    """`values` are offsets (or EARLIEST, LATEST) or times by partition; `time_ms` holds for all partitions."""

    kind: Kind
    option: str = ""
    values: dict[TopicPartition, int] = field(default_factory=dict)
    time_ms: int = 0
    latest_without_match: bool = False


@dataclass(frozen=True, slots=True)
class LimitNames:
    """The options of one side."""

    offsets: str
    time: str
    times: str


STARTING = LimitNames("startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp")
ENDING = LimitNames("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")


def limit_of(given: Mapping[str, str], names: LimitNames, default: Kind) -> Limit:
    """`given` has names in lower case."""
    latest_without_match = _strategy(given) == "latest"
    time = given.get(names.time.lower())
    if time is not None:
        return Limit(Kind.TIME, names.time, {}, _time(names.time, time), latest_without_match)
    times = given.get(names.times.lower())
    if times is not None:
        values = _partition_values(names.times, times, TIMES_EXAMPLE)
        return Limit(Kind.TIMES, names.times, values, 0, latest_without_match)
    offsets = given.get(names.offsets.lower(), default.value).strip()
    if offsets.lower() in (Kind.EARLIEST.value, Kind.LATEST.value):
        return Limit(Kind(offsets.lower()), names.offsets)
    return Limit(Kind.OFFSETS, names.offsets, _offsets(names.offsets, offsets))


def check_batch(starting: Limit, ending: Limit) -> None:
    """A batch is a piece of the past: it cannot begin at the end, nor end at the beginning."""
    at_latest = [key for key, offset in starting.values.items() if offset == LATEST and starting.kind is Kind.OFFSETS]
    if starting.kind is Kind.LATEST or at_latest:
        raise WrongOption(
            f"{_of(at_latest)}{STARTING.offsets} is 'latest', and a batch that starts at the end of a topic is empty. "
            "Use 'earliest', offsets or a time; or a stream (spark.readStream), which waits for new records."
        )
    at_earliest = [key for key, offset in ending.values.items() if offset == EARLIEST and ending.kind is Kind.OFFSETS]
    if ending.kind is Kind.EARLIEST or at_earliest:
        raise WrongOption(
            f"{_of(at_earliest)}{ENDING.offsets} is 'earliest', and a batch that ends at the beginning of a topic is "
            "empty. Use 'latest', offsets or a time."
        )
    if starting.kind is ending.kind and starting.kind in (Kind.OFFSETS, Kind.TIMES):
        _check_pair(starting, ending)


def partitions_of(text: str) -> tuple[TopicPartition, ...]:
    """The option `assign`."""
    try:
        read = json.loads(text)
        found = [TopicPartition(str(topic), _number(part)) for topic, parts in read.items() for part in list(parts)]
    except (ValueError, TypeError, AttributeError) as error:
        raise WrongOption(f"assign: expected partitions such as {PARTITIONS_EXAMPLE}, got: {text}") from error
    if not found:
        raise WrongOption(f"assign names no partition. Give some, such as {PARTITIONS_EXAMPLE}.")
    return tuple(sorted(set(found)))


def _check_pair(starting: Limit, ending: Limit) -> None:
    if starting.values.keys() != ending.values.keys():
        differing = sorted(starting.values.keys() ^ ending.values.keys())
        raise WrongOption(
            f"{starting.option} and {ending.option} name different partitions: {', '.join(map(str, differing))} stand "
            "in one of them only. Name the same partitions in both."
        )
    for key, start in sorted(starting.values.items()):
        end = ending.values[key]
        if start > end and start >= 0 and end >= 0:
            raise WrongOption(
                f"{key} would start at {start} ({starting.option}) and end before that, at {end} ({ending.option}). "
                "Swap them, or correct one."
            )


def _offsets(option: str, text: str) -> dict[TopicPartition, int]:
    if not text.startswith("{"):
        raise WrongOption(f"{option}: expected 'earliest', 'latest' or offsets such as {OFFSETS_EXAMPLE}, got: {text}")
    values = _partition_values(option, text, OFFSETS_EXAMPLE)
    for key, offset in values.items():
        if offset < EARLIEST:
            raise WrongOption(
                f"{option}: {key} has the offset {offset}. Use -2 for earliest, -1 for latest, or 0 and up."
            )
    return values


def _partition_values(option: str, text: str, example: str) -> dict[TopicPartition, int]:
    try:
        read = json.loads(text)
        return {
            TopicPartition(str(topic), int(partition)): _number(value)
            for topic, values in sorted(read.items())
            for partition, value in values.items()
        }
    except (ValueError, TypeError, AttributeError) as error:
        raise WrongOption(f"{option}: expected e.g. {example}, got: {text}") from error


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r} is no whole number")
    return value


def _time(option: str, text: str) -> int:
    try:
        return int(text.strip())
    except ValueError as error:
        raise WrongOption(f"{option}: expected milliseconds since 1970, e.g. 1700000000000, got: {text}") from error


def _strategy(given: Mapping[str, str]) -> str:
    strategy = given.get("startingoffsetsbytimestampstrategy", "error").strip().lower()
    if strategy not in ("error", "latest"):
        raise WrongOption(f"startingOffsetsByTimestampStrategy is '{strategy}'. It is 'error' or 'latest'.")
    return strategy


def _of(keys: list[TopicPartition]) -> str:
    return f"For {', '.join(map(str, sorted(keys)))} " if keys else ""
