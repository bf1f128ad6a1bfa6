"""The partitions that one decision changes.

Each is decided by `leadership.py`; here the decision counts along, so that leaders it moves spread over those who take
over, and a partition that is named twice is decided about as the first time left it.
"""

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias, TypeVar

from klamm.config import BrokerConfig, validate_topic_config
from klamm.controller import features
from klamm.controller.configs import MIN_ISR, Configs
from klamm.controller.leadership import NOBODY, Electorate, Rules, Wish, after_restart, next_state
from klamm.controller.state import PartitionKey, State
from klamm.ids import BrokerId, Uuid
from klamm.machine import Piece
from klamm.metadata.image import Image, PartitionState, Topic
from klamm.metadata.partitions import change_record
from klamm.metadata.records import MetadataRecord

UNCLEAN = "unclean.leader.election.enable"

Response = TypeVar("Response")
Pieces: TypeAlias = Generator[Piece[MetadataRecord], None, Response]
"""How a plan is decided, and its response."""


class Place(NamedTuple):
    """A partition of a topic that there is."""

    topic: Topic
    number: int


class Changes:
    """Decided on the controller's image unless another is given. `lost` brokers may not lead though they are active,
    `found` ones may though they are not yet, and `homes` are directories that the image does not know yet."""

    def __init__(
        self,
        state: State,
        configs: Configs,
        *,
        image: Image | None = None,
        lost: Collection[BrokerId] = NOBODY,
        found: Collection[BrokerId] = NOBODY,
        homes: Mapping[BrokerId, Collection[Uuid]] | None = None,
    ) -> None:
        self.records: list[MetadataRecord] = []
        self.image = image or state.image
        self.electorate = Electorate(
            {each.broker_id for each in self.image.brokers.values() if each.is_active}.difference(
                lost, state.leaving
            ).union(found),
            {each.broker_id: each.directories for each in self.image.brokers.values()} | dict(homes or {}),
            dict(state.leads),
        )
        self._config = configs.effective(self.image)
        self._elr = features.has_eligible_leader_replicas(self.image)
        self._rules: dict[Uuid, Rules] = {}
        self._now: dict[PartitionKey, PartitionState] = {}

    def place(self, key: PartitionKey) -> Place | None:
        """None of a partition that is not there any more."""
        topic = self.image.topic_with_id(key[0])
        return None if topic is None else Place(topic, key[1])

    def places(self, keys: Iterable[PartitionKey]) -> Iterator[Place]:
        return (place for key in keys if (place := self.place(key)) is not None)

    def state(self, place: Place) -> PartitionState:
        """As it is by now."""
        return self._now.get((place.topic.topic_id, place.number)) or place.topic.partitions[place.number]

    def rules(self, topic: Topic) -> Rules:
        rules = self._rules.get(topic.topic_id)
        if rules is None:
            rules = self._rules[topic.topic_id] = topic_rules(self._config, self.image, topic, elr=self._elr)
        return rules

    def change(self, place: Place, wish: Wish) -> PartitionState:
        """What the partition becomes."""
        before = self.state(place)
        after = next_state(before, wish, self.electorate, self.rules(place.topic))
        return self._note(place, before, after)

    def restart(self, place: Place, broker: BrokerId, *, clean: bool) -> PartitionState:
        before = self.state(place)
        after = after_restart(before, broker, self.electorate, self.rules(place.topic), clean=clean)
        return self._note(place, before, after)

    def _note(self, place: Place, before: PartitionState, after: PartitionState) -> PartitionState:
        record = change_record(place.topic.topic_id, place.number, before, after)
        if record is not None:
            self.records.append(record)
            self.electorate.note(before, after)
            self._now[place.topic.topic_id, place.number] = after
        return after


def topic_rules(config: BrokerConfig, image: Image, topic: Topic, *, elr: bool) -> Rules:
    """What the topic sets itself, over what is set for all."""
    own = image.topic_config(topic.name)
    values = {
        name: validate_topic_config(name, own[name]) if name in own else config.topic_defaults[name]
        for name in (MIN_ISR, UNCLEAN)
    }
    min_isr, unclean = values[MIN_ISR], values[UNCLEAN]
    assert isinstance(min_isr, int) and isinstance(unclean, bool)
    return Rules(min_isr, unclean, elr)
