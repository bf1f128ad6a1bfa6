"""The controller: decides what the cluster becomes.

Every wish is answered with a `Plan`: records, a piece at a time where they may be thousands, and the response that is
true once they are committed. (What is always little is a `Decision`.) It decides on its own image, which is ahead of
the committed one by what was proposed and not yet agreed on; `replay` is how that image changes, live and after a start
alike. So whoever asks does, in this order: take a piece, propose the records to the quorum, replay them here, go on
with the next, and hold the response until all are committed.

What it decides by itself, because time passed, `tick` gives: brokers whose session is over are fenced, preferred
leaders return.

A controller that loses the leadership is thrown away with its image; the next one begins with the committed one.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

from klamm.config import BrokerConfig
from klamm.controller import alterations, elections, features, producer_ids, reassignment
from klamm.controller.brokers import (
    BrokerHeartbeat,
    BrokerRegistration,
    Brokers,
    HeartbeatReply,
    NextOffset,
    Registered,
)
from klamm.controller.changes import Pieces
from klamm.controller.configs import Configs
from klamm.controller.producer_ids import ProducerIdBlock
from klamm.controller.sessions import Sessions
from klamm.controller.state import Draft, State
from klamm.controller.topics import Topics
from klamm.controller.wishes import (
    AlteredPartition,
    ConfigChanges,
    ConfigReplacement,
    ConfigResult,
    CreatedTopic,
    DeletedTopic,
    ElectedLeader,
    ElectionType,
    FeatureUpdate,
    GrownTopic,
    MorePartitions,
    NewTopic,
    OngoingReassignment,
    PartitionAlteration,
    Reassignment,
    ReassignmentResult,
    TopicToDelete,
)
from klamm.errors import ErrorCode
from klamm.ids import BrokerId, Now, TopicPartition
from klamm.machine import Decision, Piece, Plan
from klamm.metadata.image import ConfigResource, Image
from klamm.metadata.records import MetadataRecord
from klamm.slicing import in_slices, is_slice

RESOURCE = 4
"""So much is it to look at the settings of one."""

SettingsWish = TypeVar("SettingsWish", ConfigChanges, ConfigReplacement)


class Controller:
    def __init__(self, config: BrokerConfig, cluster_id: str, random: Random, image: Image, now: Now) -> None:
        self.cluster_id = cluster_id
        self._state = State(image)
        self._configs = Configs(config.node_id, config)
        self._topics = Topics(self._configs, config, random)
        self._sessions = Sessions(config)
        self._brokers = Brokers(cluster_id, self._configs, self._sessions)
        self._returns_leaders = config.boolean("auto.leader.rebalance.enable")
        self._check_interval_ms = config.integer("leader.imbalance.check.interval.seconds") * 1000
        self._next_check_ms = now.monotonic_ms + self._check_interval_ms
        self._brokers.begin_sessions(image, now)

    @property
    def image(self) -> Image:
        """The cluster as it will be when everything proposed is committed."""
        return self._state.image

    @property
    def partition_count(self) -> int:
        return sum(self._state.leads.values()) + len(self._state.leaderless)

    @property
    def leaderless_count(self) -> int:
        """How many partitions nobody leads."""
        return len(self._state.leaderless)

    @property
    def misled_count(self) -> int:
        """How many partitions are led by another than their preferred replica."""
        return len(self._state.misled)

    def replay(self, record: MetadataRecord) -> None:
        self._state.replay(record)

    def adopt(self, draft: Draft) -> None:
        """Replay all records of a draft."""
        self._state.adopt(draft)

    def activate(self, now: Now) -> Plan[MetadataRecord, None]:
        """When the log has been replayed to its end: what a new cluster begins with, and what an earlier controller did
        not get to. Every broker has a whole session from now on to be heard."""
        self._brokers.begin_sessions(self.image, now)
        return Plan(self._begin())

    def _begin(self) -> Pieces[None]:
        if not self.image.features:
            yield Piece(features.bootstrap_records(), is_last=True)
        elif self._state.leaderless:
            yield from elections.leaders_wanted(self._state, self._configs)

    # Time.

    @property
    def next_deadline_ms(self) -> float | None:
        """When to tick, at the latest."""
        session_ends_ms = self._sessions.next_deadline_ms
        if not (self._returns_leaders and self._state.misled):
            return session_ends_ms
        return self._next_check_ms if session_ends_ms is None else min(session_ends_ms, self._next_check_ms)

    def tick(self, now: Now) -> Plan[MetadataRecord, None]:
        return Plan(self._ticked(now))

    def _ticked(self, now: Now) -> Pieces[None]:
        ended = self._sessions.ended(now)
        if ended:
            yield from self._brokers.gone(self._state, ended)
        elif self._returns_leaders and self._state.misled and now.monotonic_ms >= self._next_check_ms:
            self._next_check_ms = now.monotonic_ms + self._check_interval_ms
            yield from elections.preferred_return(self._state, self._configs)

    # Brokers. All of these may raise a KafkaError.

    def register_broker(
        self, registration: BrokerRegistration, next_offset: NextOffset, now: Now
    ) -> Plan[MetadataRecord, Registered]:
        return Plan(self._brokers.register(self._state, registration, next_offset, now))

    def heartbeat(
        self, beat: BrokerHeartbeat, next_offset: NextOffset, now: Now
    ) -> Plan[MetadataRecord, HeartbeatReply]:
        return Plan(self._brokers.heartbeat(self._state, beat, next_offset, now))

    def broker_is_gone(self, broker_id: BrokerId, now: Now) -> Plan[MetadataRecord, None]:
        """There is evidence that its process is dead: its connections closed, and nobody listens there any more."""
        return Plan(self._brokers.evidently_gone(self._state, broker_id, now))

    def look_again(self, now: Now) -> None:
        """What was decided on a tick could not be written: whoever was to be fenced is looked at again soon."""
        self._sessions.look_again((each.broker_id for each in self.image.brokers.values() if not each.fenced), now)

    def unregister_broker(self, broker_id: BrokerId) -> Plan[MetadataRecord, None]:
        return Plan(self._brokers.unregister(self._state, broker_id))

    def allocate_producer_ids(
        self, broker_id: BrokerId, broker_epoch: int
    ) -> Decision[MetadataRecord, ProducerIdBlock]:
        return producer_ids.allocate(self.image, broker_id, broker_epoch)

    # Partitions. Every item of the response has its own error.

    def alter_partition(
        self, broker_id: BrokerId, broker_epoch: int, wishes: Sequence[PartitionAlteration]
    ) -> Plan[MetadataRecord, list[AlteredPartition]]:
        """Refused as a whole if it is not the present life of the broker that asks."""
        return Plan(alterations.alter(self._state, self._configs, broker_id, broker_epoch, wishes))

    def elect_leaders(
        self, kind: ElectionType, partitions: Sequence[TopicPartition] | None
    ) -> Plan[MetadataRecord, list[ElectedLeader]]:
        return Plan(elections.elect(self._state, self._configs, kind, partitions))

    def reassign(
        self, wishes: Sequence[Reassignment], *, allow_replication_factor_change: bool = True
    ) -> Plan[MetadataRecord, list[ReassignmentResult]]:
        allow = allow_replication_factor_change
        return Plan(reassignment.reassign(self._state, self._configs, wishes, allow_replication_factor_change=allow))

    def list_reassignments(self, partitions: Sequence[TopicPartition] | None) -> list[OngoingReassignment]:
        return reassignment.ongoing(self._state, partitions)

    # Topics. The same.

    def create_topics(
        self, wishes: Sequence[NewTopic], *, validate_only: bool = False
    ) -> Plan[MetadataRecord, list[CreatedTopic]]:
        return Plan(self._topics.create(self._state, wishes, validate_only=validate_only))

    def create_partitions(
        self, wishes: Sequence[MorePartitions], *, validate_only: bool = False
    ) -> Plan[MetadataRecord, list[GrownTopic]]:
        return Plan(self._topics.add_partitions(self._state, wishes, validate_only=validate_only))

    def delete_topics(self, wishes: Sequence[TopicToDelete]) -> Plan[MetadataRecord, list[DeletedTopic]]:
        return Plan(self._topics.delete(self._state, wishes))

    # Settings. The same.

    def incremental_alter_configs(
        self, wishes: Sequence[ConfigChanges], *, validate_only: bool = False
    ) -> Plan[MetadataRecord, list[ConfigResult]]:
        return Plan(self._alter_settings(wishes, self._configs.alter, lambda wish: len(wish.changes), validate_only))

    def alter_configs(
        self, wishes: Sequence[ConfigReplacement], *, validate_only: bool = False
    ) -> Plan[MetadataRecord, list[ConfigResult]]:
        return Plan(self._alter_settings(wishes, self._configs.replace, lambda wish: len(wish.values), validate_only))

    def update_features(
        self, wishes: Sequence[FeatureUpdate], *, validate_only: bool = False
    ) -> Decision[MetadataRecord, None]:
        """All or none. Raises KafkaError."""
        return features.update(self._state, wishes, validate_only=validate_only)

    def _alter_settings(
        self,
        wishes: Sequence[SettingsWish],
        alter: Callable[[Image, Sequence[SettingsWish]], Decision[MetadataRecord, list[ConfigResult]]],
        count: Callable[[SettingsWish], int],
        validate_only: bool,
    ) -> Pieces[list[ConfigResult]]:
        times: Counter[ConfigResource] = Counter()
        results: list[ConfigResult] = []
        if is_slice(len(wishes)):
            # To read so many was enough for now.
            yield Piece()
        for some, is_last in in_slices(wishes):
            times.update(wish.resource for wish in some)
            if not is_last:
                yield Piece()
        for some, is_last in in_slices(wishes, lambda wish: RESOURCE + count(wish)):
            decision = alter(self.image, [wish for wish in some if times[wish.resource] == 1])
            altered = iter(decision.response)
            results += [next(altered) if times[wish.resource] == 1 else _named_twice(wish) for wish in some]
            records = [] if validate_only else decision.records
            records += yield from elections.after_settings(self._state, self._configs, records)
            are_left = elections.are_left(self._state, records)
            yield Piece(records, is_last=is_last and not are_left)
            if are_left:
                yield from elections.leaders_wanted(self._state, self._configs, is_last=is_last)
        return results


def _named_twice(wish: ConfigChanges | ConfigReplacement) -> ConfigResult:
    return ConfigResult(wish.resource, ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
