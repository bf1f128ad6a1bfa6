"""Elections that nobody's loss calls for.

A person asks for one: leadership back to the preferred replicas, or an unclean election where nothing else helps. By
itself the controller gives leadership back too, every `leader.imbalance.check.interval.seconds`, as soon as the
preferred replica is in sync again (`auto.leader.rebalance.enable`); and it elects anew where a setting that was altered
allows what it did not before, or no longer guarantees what it did.
"""

from collections.abc import Sequence

from klamm.controller.changes import UNCLEAN, Changes, Place
from klamm.controller.configs import MIN_ISR, Configs
from klamm.controller.leadership import Election, Wish
from klamm.controller.state import State
from klamm.controller.wishes import ElectedLeader, ElectionType
from klamm.errors import ErrorCode, KafkaError
from klamm.ids import TopicPartition
from klamm.machine import Decision
from klamm.metadata.delta import Delta
from klamm.metadata.image import Image, PartitionState
from klamm.metadata.records import ConfigRecord, MetadataRecord

MOST_AT_ONCE = 1_000
"""A step that moves more leaders than this would be felt by those who wait for the next one."""


def elect(
    state: State, configs: Configs, kind: ElectionType, partitions: Sequence[TopicPartition] | None
) -> Decision[MetadataRecord, list[ElectedLeader]]:
    """Each partition by itself. None is all of them, and then those that need no election are not spoken of."""
    changes = Changes(state, configs)
    results: list[ElectedLeader] = []
    for partition in _all(state.image) if partitions is None else dict.fromkeys(partitions):
        result = ElectedLeader(partition)
        try:
            _elect(changes, kind, partition)
        except KafkaError as refused:
            result.error, result.message = refused.code, refused.message
        if partitions is not None or result.error != ErrorCode.ELECTION_NOT_NEEDED:
            results.append(result)
    return Decision(results, changes.records)


def preferred_return(state: State, configs: Configs) -> list[MetadataRecord]:
    """Leaders that are preferred and in sync again, so many at a time."""
    changes = Changes(state, configs)
    for key in sorted(state.misled):
        place = changes.place(key)
        partition = changes.state(place)
        if _may_return(changes, partition):
            changes.change(place, Wish(election=Election.PREFERRED))
            if len(changes.records) == MOST_AT_ONCE:
                break
    return changes.records


def after_settings(state: State, configs: Configs, altered: Sequence[MetadataRecord]) -> list[MetadataRecord]:
    """What follows from altered settings, to be committed with them.

    With fewer replicas demanded in sync the leader goes on committing alone, and who was eligible no longer holds
    everything. Where unclean elections are allowed from now on, partitions that wait for a leader wait no longer.
    """
    if not any(isinstance(record, ConfigRecord) and record.name in (MIN_ISR, UNCLEAN) for record in altered):
        return []
    delta = Delta(state.image)
    for record in altered:
        delta.replay(record)
    image, _ = delta.finished(state.image.offset, state.image.epoch)
    changes = Changes(state, configs, image=image)
    for key in sorted(state.eligible | state.leaderless):
        changes.change(changes.place(key), Wish())
    return changes.records


def _elect(changes: Changes, kind: ElectionType, partition: TopicPartition) -> None:
    topic = changes.image.topics.get(partition.topic)
    if topic is None or not 0 <= partition.partition < len(topic.partitions):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {partition}.")
    place = Place(topic, partition.partition)
    before = changes.state(place)
    if kind is ElectionType.PREFERRED:
        if before.leader == before.replicas[0]:
            raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED)
        if not _may_return(changes, before):
            reason = f"Broker {before.replicas[0]} is preferred for {partition}, and not in sync."
            raise KafkaError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, reason)
        changes.change(place, Wish(election=Election.PREFERRED))
    else:
        if changes.electorate.is_led(before):
            raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED)
        if not any(broker in changes.electorate.active for broker in before.replicas):
            reason = f"None of the replicas of {partition} is there."
            raise KafkaError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, reason)
        changes.change(place, Wish(election=Election.UNCLEAN))


def _may_return(changes: Changes, partition: PartitionState) -> bool:
    preferred = partition.replicas[0]
    return preferred in partition.isr and preferred in changes.electorate.active


def _all(image: Image) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, index) for topic in image.topics.values() for index in range(len(topic.partitions))
    ]
