"""One request on its way: what a handler may know besides the request itself."""

from typing import TYPE_CHECKING

from klamm.broker.speaker import Speaker
from klamm.ids import Now

if TYPE_CHECKING:
    from klamm.broker.broker import Broker


class Call:
    __slots__ = ("broker", "client_id", "connection", "now", "peer", "speaker", "version")

    def __init__(
        self,
        broker: "Broker",
        version: int,
        client_id: str | None,
        connection: int,
        peer: str,
        now: Now,
        speaker: Speaker | None = None,
    ) -> None:
        self.broker = broker
        self.version = version
        self.client_id = client_id
        self.connection = connection
        self.peer = peer
        self.now = now
        self.speaker = speaker

    @property
    def client_host(self) -> str:
        """Where the client is, as Kafka's tools show it."""
        return "/" + self.peer.rpartition(":")[0]
