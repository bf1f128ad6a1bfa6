"""Who speaks on a connection: a broker that was confirmed at its address, one that only says so, or a client.

Fetches of followers, heartbeats and wishes about in-sync replicas count because a certain broker says them. Broker ids
and epochs are no secret: anybody may read them, or guess. So each of these handlers asks `check_speaker` first. A
connection that began with a claim (`wire/claims.py`) is confirmed when it is first needed: the request raises
`Unconfirmed` before it has any effect, and is taken again once the broker's address has answered
(`node/confirmation.py`). A connection without a claim is a client's, and speaks for nobody.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from klamm.errors import ErrorCode, KafkaError
from klamm.ids import BrokerId, Uuid
from klamm.metadata.image import Endpoint

if TYPE_CHECKING:
    from klamm.broker.broker import Broker
    from klamm.broker.call import Call

Address: TypeAlias = tuple[str, int]
UNCHECKED = -1
"""The broker epoch is compared elsewhere, with what the controller has decided and not committed yet."""


class Speaker:
    """What one connection claims, and what is known of it."""

    __slots__ = ("address", "broker_id", "is_refused", "is_this_node", "predecessor", "token")

    def __init__(self, broker_id: BrokerId, token: bytes, *, is_this_node: bool = False) -> None:
        self.broker_id = broker_id
        self.token = token
        self.is_this_node = is_this_node
        self.address: Address | None = None
        """Where the token was confirmed."""
        self.is_refused = False
        """Whether it was not, a moment ago: the request that waited for that is told so."""
        self.predecessor: Uuid | None = None
        """The incarnation found where its broker was registered before; zeros if nobody answers there."""


class Unconfirmed(Exception):  # noqa: N818
    """Ask at this address, or wait until this soon holds if the claim is true; then take the request again."""

    def __init__(
        self,
        address: Address | None = None,
        *,
        until: Callable[[], bool] = lambda: False,
        is_of_predecessor: bool = False,
    ) -> None:
        super().__init__("a claim that nobody has confirmed yet")
        self.address = address
        self.until = until
        self.is_of_predecessor = is_of_predecessor


def check_speaker(call: "Call", broker_id: BrokerId, broker_epoch: int = UNCHECKED) -> None:
    """Raise unless this broker speaks, in the life that is registered, from the address at which it is registered."""
    speaker = _claimed(call, broker_id)
    if speaker.is_this_node:
        return
    broker = call.broker
    registered = broker.image.brokers.get(broker_id)
    if registered is None or registered.epoch < broker_epoch:
        # It has registered, and we have not heard of it yet.
        raise Unconfirmed(until=lambda: _epoch_of(broker_id, broker) >= max(broker_epoch, 0))
    if broker_epoch not in (UNCHECKED, registered.epoch):
        reason = f"Broker {broker_id} has epoch {registered.epoch}, not {broker_epoch}."
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, reason)
    address = address_of(registered.endpoints)
    if address is None or address != speaker.address:
        raise Unconfirmed(address)


def check_has_fetched(call: "Call", broker_id: BrokerId) -> None:
    """Raise unless this broker has fetched the metadata up to its registration, as it says when it wants to be counted
    on: the controller leads the quorum, and has given it what it holds."""
    if call.speaker is not None and call.speaker.is_this_node:
        return
    registered, quorum = call.broker.image.brokers.get(broker_id), call.broker.quorum
    if registered is None or not registered.fenced:
        return
    epoch = registered.epoch
    if quorum.fetched_end(broker_id) <= epoch:
        raise Unconfirmed(until=lambda: quorum.fetched_end(broker_id) > epoch)


def check_newcomer(call: "Call", broker_id: BrokerId, incarnation: Uuid, endpoints: list[Endpoint]) -> None:
    """Raise unless whoever registers as this broker answers at the address that it advertises, and nobody does any
    more, as the broker that it was until now, where that one is registered."""
    speaker = _claimed(call, broker_id)
    if speaker.is_this_node:
        return
    address = address_of(endpoints)
    if address is None:
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "A broker needs an address.")
    if speaker.address != address:
        raise Unconfirmed(address)
    known = call.broker.image.brokers.get(broker_id)
    if known is None or known.incarnation_id == incarnation:
        return
    before = address_of(known.endpoints)
    if before is None or before == address:
        # Who answers there is the one that speaks.
        return
    if speaker.predecessor is None:
        raise Unconfirmed(before, is_of_predecessor=True)
    found, speaker.predecessor = speaker.predecessor, None
    if found == known.incarnation_id:
        reason = f"Another process is broker {broker_id}, and answers at {before[0]}:{before[1]}."
        raise KafkaError(ErrorCode.DUPLICATE_BROKER_REGISTRATION, reason)


def address_of(endpoints: "list[Endpoint] | tuple[Endpoint, ...]") -> Address | None:
    return (endpoints[0].host, endpoints[0].port) if endpoints else None


def _epoch_of(broker_id: BrokerId, broker: "Broker") -> int:
    registered = broker.image.brokers.get(broker_id)
    return -1 if registered is None else registered.epoch


def _claimed(call: "Call", broker_id: BrokerId) -> Speaker:
    speaker = call.speaker
    if speaker is None or speaker.broker_id != broker_id:
        reason = f"This connection does not speak for broker {broker_id}."
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, reason)
    if speaker.is_refused:
        speaker.is_refused = False
        reason = f"Broker {broker_id} does not confirm this connection at its address."
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, reason)
    return speaker
