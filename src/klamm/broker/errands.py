"""What a broker wants of the controller, wherever that is. The node runs these errands; nobody waits for them here."""

from collections.abc import Sequence
from typing import Protocol

from klamm.ids import Now


class Errands(Protocol):
    def take_producer_ids(self, now: Now) -> None:
        """Have `ProducerIds.grant` or `refuse` called, some time."""
        ...

    def create_topics(self, names: Sequence[str], now: Now) -> None:
        """Have these topics created with the brokers' defaults, if they can be."""
        ...

    def create_offsets_topic(self, replication_factor: int, now: Now) -> None:
        """Have the topic of the groups' offsets created; `OffsetsTopic.not_created` hears if it could not be."""
        ...
