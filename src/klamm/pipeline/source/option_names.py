"""The names of the options, as Spark's Kafka connector spells them; and what to say about names nobody knows.

Spark compares names without regard to case. A name that is nearly one of ours is a typing mistake and ends the query
before it begins: the connector would ignore it, and somebody would wonder for a day why nothing is limited.
"""

from collections.abc import Iterable
from difflib import get_close_matches

from klamm.pipeline.source.problems import WrongOption

KAFKA = "kafka."

READING = (
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "endingOffsets",
    "endingTimestamp",
    "endingOffsetsByTimestamp",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "failOnDataLoss",
    "includeHeaders",
    "groupIdPrefix",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "kafkaConsumer.pollTimeoutMs",
    "partition.metadata.cache.ttl.ms",
    "klamm.reader",
    "klamm.group.note",
)
OF_KAFKA = (
    "kafka.bootstrap.servers",
    "kafka.group.id",
    "kafka.client.id",
    "kafka.client.rack",
    "kafka.isolation.level",
    "kafka.security.protocol",
    "kafka.request.timeout.ms",
    "kafka.fetch.max.bytes",
    "kafka.fetch.min.bytes",
    "kafka.fetch.max.wait.ms",
    "kafka.max.partition.fetch.bytes",
)
_SPELLING = {name.lower(): name for name in READING + OF_KAFKA}
_CLOSE = 0.84


def check_names(given: Iterable[str]) -> None:
    """Raise for what is probably a slip; stay silent about what may be meant for somebody else."""
    for name in sorted(given):
        meant = _meant(name.lower())
        if meant is not None:
            raise WrongOption(
                f"There is no option '{name}'. Did you mean '{meant}'? The options are those of Spark's Kafka "
                "connector; what starts with 'kafka.' goes to the consumer."
            )


def _meant(name: str) -> str | None:
    if name in _SPELLING:
        return None
    if KAFKA + name in _SPELLING:
        return _SPELLING[KAFKA + name]
    if name.startswith(KAFKA) and name.removeprefix(KAFKA) in _SPELLING:
        return _SPELLING[name.removeprefix(KAFKA)]
    if name.startswith(KAFKA):
        # The consumer has some hundred settings that we do not list: only one that we use can be misspelt here.
        close = get_close_matches(name, [key for key in _SPELLING if key.startswith(KAFKA)], 1, 0.92)
    else:
        close = get_close_matches(name, _SPELLING, 1, _CLOSE)
    return _SPELLING[close[0]] if close else None
