"""The controller: decides what the cluster becomes.

Every wish is answered with a `Decision`: records, and the response that is true once they are committed. It decides on
its own image, which is ahead of the committed one by what was proposed and not yet agreed on; `replay` is how that
image changes, live and after a start alike. So whoever asks does, in this order: decide, propose the records to the
quorum, replay them here, and hold the response until they are committed.

A controller that loses the leadership is thrown away with its image; the next one begins with the committed one.
"""

from collections.abc import Sequence
from random import Random

from klamm.config import BrokerConfig
from klamm.controller import brokers, features, producer_ids
from klamm.controller.brokers import BrokerHeartbeat, BrokerRegistration, HeartbeatReply, Registered
from klamm.controller.configs import Configs
from klamm.controller.producer_ids import ProducerIdBlock
from klamm.controller.state import State
from klamm.controller.topics import Topics
from klamm.controller.wishes import (
    ConfigChanges,
    ConfigReplacement,
    ConfigResult,
    CreatedTopic,
    DeletedTopic,
    GrownTopic,
    MorePartitions,
    NewTopic,
    TopicToDelete,
)
from klamm.ids import BrokerId, Offset
from klamm.machine import Decision
from klamm.metadata.image import EMPTY, Image
from klamm.metadata.records import MetadataRecord


class Controller:
    def __init__(self, config: BrokerConfig, cluster_id: str, random: Random, image: Image = EMPTY) -> None:
        self.cluster_id = cluster_id
        self._state = State(image)
        self._configs = Configs(config.node_id, config)
        self._topics = Topics(self._configs, config, random)

    @property
    def image(self) -> Image:
        """The cluster as it will be when everything proposed is committed."""
        return self._state.image

    def replay(self, record: MetadataRecord) -> None:
        self._state.replay(record)

    def activate(self) -> Decision[MetadataRecord, None]:
        """When the log has been replayed to its end: what a new cluster begins with."""
        return Decision(None, [] if self.image.features else features.bootstrap_records())

    # Brokers.

    def register_broker(
        self, registration: BrokerRegistration, next_offset: Offset
    ) -> Decision[MetadataRecord, Registered]:
        """`next_offset` is where the records will stand. Raises KafkaError."""
        return brokers.register(self.image, registration, self.cluster_id, next_offset)

    def heartbeat(self, beat: BrokerHeartbeat) -> Decision[MetadataRecord, HeartbeatReply]:
        """Raises KafkaError."""
        return brokers.heartbeat(self.image, beat)

    def allocate_producer_ids(
        self, broker_id: BrokerId, broker_epoch: int
    ) -> Decision[MetadataRecord, ProducerIdBlock]:
        """Raises KafkaError."""
        return producer_ids.allocate(self.image, broker_id, broker_epoch)

    # Topics. Every item of the response has its own error.

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
        return self._configs.alter(self.image, wishes, validate_only=validate_only)

    def alter_configs(
        self, wishes: Sequence[ConfigReplacement], *, validate_only: bool = False
    ) -> Decision[MetadataRecord, list[ConfigResult]]:
        return self._configs.replace(self.image, wishes, validate_only=validate_only)
