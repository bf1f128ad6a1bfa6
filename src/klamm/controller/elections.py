"""Elections that nobody's loss calls for.

A person asks for one: leadership back to the preferred replicas, or an unclean election where nothing else helps. By
itself the controller gives leadership back too, every `leader.imbalance.check.interval.seconds`, as soon as the
preferred replica is in sync again (`auto.leader.rebalance.enable`); and it elects anew where a setting that was altered
allows what it did not before, or no longer guarantees what it did.
"""

from collections.abc import Iterable, Iterator, Sequence

from klamm.controller.changes import UNCLEAN, Changes, Pieces, Place
from klamm.controller.configs import MIN_ISR, Configs
from klamm.controller.leadership import Election, Wish
from klamm.controller.state import PartitionKey, State
from klamm.controller.wishes import ElectedLeader, ElectionType
from klamm.errors import ErrorCode, KafkaError
from klamm.ids import TopicPartition
from klamm.machine import Piece
from klamm.metadata.delta import Delta
from klamm.metadata.image import Image, PartitionState, ResourceType
from klamm.metadata.records import ConfigRecord, MetadataRecord
from klamm.slicing import in_slices, is_slice


def elect(
    state: State, configs: Configs, kind: ElectionType, partitions: Sequence[TopicPartition] | None
) -> Pieces[list[ElectedLeader]]:
    """Each partition by itself. None is all of them, and then those that need no election are not spoken of."""
    results: list[ElectedLeader] = []
    wanted = _in_need(state) if partitions is None else list(dict.fromkeys(partitions))
    for some, is_last in in_slices(wanted):
        changes = Changes(state, configs)
        for partition in some:
            result = ElectedLeader(partition)
            try:
                _elect(changes, kind, partition)
            except KafkaError as refused:
                result.error, result.message = refused.code, refused.message
            if partitions is not None or result.error != ErrorCode.ELECTION_NOT_NEEDED:
                results.append(result)
        yield Piece(changes.records, is_last=is_last)
    return results


def preferred_return(state: State, configs: Configs) -> Pieces[None]:
    """Leaders that are preferred and in sync again."""
    for some, is_last in in_slices(list(state.misled)):
        changes = Changes(state, configs)
        for place in changes.places(some):
            if _may_return(changes, changes.state(place)):
                changes.change(place, Wish(election=Election.PREFERRED))
        yield Piece(changes.records, is_last=is_last)


def leaders_wanted(state: State, configs: Configs, *, is_last: bool = True) -> Pieces[None]:
    """For partitions that nobody leads though somebody may: an earlier controller did not get to them."""
    for some, is_end in in_slices(list(state.leaderless)):
        changes = Changes(state, configs)
        for place in changes.places(some):
            changes.change(place, Wish())
        yield Piece(changes.records, is_last=is_end and is_last)


def after_settings(state: State, configs: Configs, altered: Sequence[MetadataRecord]) -> Pieces[list[MetadataRecord]]:
    """What follows from altered settings, to be committed before them or with them.

    With fewer replicas demanded in sync the leader goes on committing alone, and who was eligible no longer holds
    everything. Where unclean elections are allowed from now on, partitions that wait for a leader wait no longer.
    """
    names = {record.name for record in altered if isinstance(record, ConfigRecord)}
    if not names & {MIN_ISR, UNCLEAN}:
        return []
    # Nobody is elected by a setting that is not true yet.
    restricting = [record for record in altered if isinstance(record, ConfigRecord) and record.name != UNCLEAN]
    seen: dict[PartitionKey, PartitionState] = {}
    while True:
        image = _with(state.image, altered)
        todo = [key for key in _concerned(state, image, altered) if seen.get(key) != _state_of(image, key)]
        if not is_slice(len(todo)):
            changes = Changes(state, configs, image=image)
            for place in changes.places(todo):
                changes.change(place, Wish())
            return changes.records
        if MIN_ISR not in names:
            return []
        for some, _ in in_slices(todo):
            changes = Changes(state, configs, image=_with(state.image, restricting))
            for place in changes.places(some):
                seen[place.topic.topic_id, place.number] = changes.change(place, Wish())
            # Others may be decided about meanwhile, by the settings as they are: so once more.
            yield Piece(changes.records)


def are_left(state: State, altered: Sequence[MetadataRecord]) -> bool:
    """Whether partitions may wait for a leader that these settings allow from now on, because they were too many."""
    is_allowed = any(isinstance(record, ConfigRecord) and record.name == UNCLEAN for record in altered)
    return is_allowed and is_slice(len(state.leaderless))


def _with(image: Image, altered: Sequence[MetadataRecord]) -> Image:
    delta = Delta(image)
    for record in altered:
        delta.replay(record)
    return delta.finished(image.offset, image.epoch)[0]


def _concerned(state: State, image: Image, altered: Sequence[MetadataRecord]) -> Iterator[PartitionKey]:
    """Partitions for which one of these settings matters."""
    resources = {(record.resource_type, record.resource_name) for record in altered if isinstance(record, ConfigRecord)}
    keys: Iterable[PartitionKey] = (*state.eligible, *state.leaderless)
    if all(kind == ResourceType.TOPIC for kind, _ in resources):
        topics = [image.topics[name] for _, name in sorted(resources)]
        keys = ((topic.topic_id, index) for topic in topics for index in range(len(topic.partitions)))
    return (key for key in dict.fromkeys(keys) if key in state.eligible or key in state.leaderless)


def _state_of(image: Image, key: PartitionKey) -> PartitionState:
    topic = image.topic_with_id(key[0])
    assert topic is not None, "a partition that is counted belongs to a topic"
    return topic.partitions[key[1]]


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


def _in_need(state: State) -> list[TopicPartition]:
    """Those that are not led by their preferred replica, in order of their names."""
    names = state.image.topic_names
    return sorted(TopicPartition(names[topic_id], index) for topic_id, index in (*state.misled, *state.leaderless))
