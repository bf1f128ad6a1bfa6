"""The controller: decides what the cluster becomes.

Every wish is answered with a `Decision`: records, and the response that is true once they are committed. It decides on
its own image, which is ahead of the committed one by what was proposed and not yet agreed on; `replay` is how that
image changes, live and after a start alike. So whoever asks does, in this order: decide, propose the records to the
quorum, replay them here, and hold the response until they are committed.

What it decides by itself, because time passed, `tick` gives: brokers whose session is over are fenced, preferred
leaders return.

A controller that loses the leadership is thrown away with its image; the next one begins with the committed one.
"""

from collections.abc import Sequence
from random import Random

from klamm.config import BrokerConfig
from klamm.controller import alterations, elections, features, producer_ids, reassignment
from klamm.controller.brokers import BrokerHeartbeat, BrokerRegistration, Brokers, HeartbeatReply, Registered
from klamm.controller.configs import Configs
from klamm.controller.producer_ids import ProducerIdBlock
from klamm.controller.sessions import Sessions
from klamm.controller.state import State
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
from klamm.ids import BrokerId, Now, Offset, TopicPartition
from klamm.machine import Decision
from klamm.metadata.image import Image
from klamm.metadata.records import MetadataRecord


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

    def activate(self, now: Now) -> Decision[MetadataRecord, None]:
        """When the log has been replayed to its end: what a new cluster begins with. Every broker has a whole session
        from now on to be heard."""
        self._brokers.begin_sessions(self.image, now)
        return Decision(None, [] if self.image.features else features.bootstrap_records())

    # Time.

    @property
    def next_deadline_ms(self) -> float | None:
        """When to tick, at the latest."""
        session_ends_ms = self._sessions.next_deadline_ms
        if not (self._returns_leaders and self._state.misled):
            return session_ends_ms
        return self._next_check_ms if session_ends_ms is None else min(session_ends_ms, self._next_check_ms)

    def tick(self, now: Now) -> Decision[MetadataRecord, None]:
        lost = self._brokers.gone(self._state, self._sessions.ended(now))
        if lost:
            return Decision(None, lost)
        if not (self._returns_leaders and self._state.misled) or now.monotonic_ms < self._next_check_ms:
            return Decision(None)
        returned = elections.preferred_return(self._state, self._configs)
        if len(returned) < elections.MOST_AT_ONCE:
            self._next_check_ms = now.monotonic_ms + self._check_interval_ms
        return Decision(None, returned)

    # Brokers. All of these may raise a KafkaError.

    def register_broker(
        self, registration: BrokerRegistration, next_offset: Offset, now: Now
    ) -> Decision[MetadataRecord, Registered]:
        """`next_offset` is where the first record will stand."""
        return self._brokers.register(self._state, registration, next_offset, now)

    def heartbeat(
        self, beat: BrokerHeartbeat, next_offset: Offset, now: Now
    ) -> Decision[MetadataRecord, HeartbeatReply]:
        """`next_offset` is where the first record will stand, if there is one."""
        return self._brokers.heartbeat(self._state, beat, next_offset, now)

    def broker_is_gone(self, broker_id: BrokerId, now: Now) -> Decision[MetadataRecord, None]:
        """There is evidence that its process is dead: its connections closed, and nobody listens there any more."""
        return Decision(None, self._brokers.evidently_gone(self._state, broker_id, now))

    def look_again(self, now: Now) -> None:
        """What was decided on a tick could not be written: whoever was to be fenced is looked at again soon."""
        self._sessions.look_again((each.broker_id for each in self.image.brokers.values() if not each.fenced), now)

    def unregister_broker(self, broker_id: BrokerId) -> Decision[MetadataRecord, None]:
        return Decision(None, self._brokers.unregister(self._state, broker_id))

    def allocate_producer_ids(
        self, broker_id: BrokerId, broker_epoch: int
    ) -> Decision[MetadataRecord, ProducerIdBlock]:
        return producer_ids.allocate(self.image, broker_id, broker_epoch)

    # Partitions. Every item of the response has its own error.

    def alter_partition(
        self, broker_id: BrokerId, broker_epoch: int, wishes: Sequence[PartitionAlteration]
    ) -> Decision[MetadataRecord, list[AlteredPartition]]:
        """Raises KafkaError if it is not the present life of the broker that asks."""
        return alterations.alter(self._state, self._configs, broker_id, broker_epoch, wishes)

    def elect_leaders(
        self, kind: ElectionType, partitions: Sequence[TopicPartition] | None
    ) -> Decision[MetadataRecord, list[ElectedLeader]]:
        return elections.elect(self._state, self._configs, kind, partitions)

    def reassign(
        self, wishes: Sequence[Reassignment], *, allow_replication_factor_change: bool = True
    ) -> Decision[MetadataRecord, list[ReassignmentResult]]:
        return reassignment.reassign(
            self._state, self._configs, wishes, allow_replication_factor_change=allow_replication_factor_change
        )

    def list_reassignments(self, partitions: Sequence[TopicPartition] | None) -> list[OngoingReassignment]:
        return reassignment.ongoing(self._state, partitions)

    # Topics. The same.

    def create_topics(
        self, wishes: Sequence[NewTopic], *, validate_only: bool = False
    ) -> Decision[MetadataRecord, list[CreatedTopic]]:
        return self._topics.create(self._state, wishes, validate_only=validate_only)

    def create_partitions(
        self, wishes: Sequence[MorePartitions], *, validate_only: bool = False
    ) -> Decision[MetadataRecord, list[GrownTopic]]:
        return self._topics.add_partitions(self._state, wishes, validate_only=validate_only)

    def delete_topics(self, wishes: Sequence[TopicToDelete]) -> Decision[MetadataRecord, list[DeletedTopic]]:
        return self._topics.delete(self.image, wishes)

    # Settings. The same.

    def incremental_alter_configs(
        self, wishes: Sequence[ConfigChanges], *, validate_only: bool = False
    ) -> Decision[MetadataRecord, list[ConfigResult]]:
        return self._with_elections(self._configs.alter(self.image, wishes, validate_only=validate_only))

    def alter_configs(
        self, wishes: Sequence[ConfigReplacement], *, validate_only: bool = False
    ) -> Decision[MetadataRecord, list[ConfigResult]]:
        return self._with_elections(self._configs.replace(self.image, wishes, validate_only=validate_only))

    def update_features(
        self, wishes: Sequence[FeatureUpdate], *, validate_only: bool = False
    ) -> Decision[MetadataRecord, None]:
        """All or none. Raises KafkaError."""
        return features.update(self._state, wishes, validate_only=validate_only)

    def _with_elections(
        self, decision: Decision[MetadataRecord, list[ConfigResult]]
    ) -> Decision[MetadataRecord, list[ConfigResult]]:
        decision.records += elections.after_settings(self._state, self._configs, decision.records)
        return decision
