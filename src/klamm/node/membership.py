"""This broker's place in the cluster: registered, caught up, counted on, and in the end let go.

A broker registers with the controller under an incarnation and gets an epoch. While it is fenced it leads nothing
and is in nobody's in-sync set; heartbeats tell the controller how far its metadata is, and when that holds its own
registration and its logs are open, it is counted on. From then on heartbeats say that it is alive. A broker that wants
to stop says so, goes on until the controller has given its partitions to others, and stops then.

Nothing here waits for an interval where something has happened: a new controller, metadata that caught up and the wish
to stop are told at once.
"""

from collections.abc import Callable

from klamm.broker.broker import Broker
from klamm.controller import features
from klamm.errors import ErrorCode, error_code
from klamm.facts import Tell
from klamm.ids import ZERO_UUID, Now, Uuid
from klamm.metadata.image import Endpoint
from klamm.node.facts import EarlierLifeStands, Registered, RegistrationRefused, Replaced, Serving
from klamm.node.identity import Identity
from klamm.node.peers import Peer, Peers, Purpose
from klamm.wire.apis import BROKER_HEARTBEAT, BROKER_REGISTRATION
from klamm.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from klamm.wire.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    Listener,
)

HEARTBEAT_VERSION = 1
REGISTRATION_VERSION = 4
RETRY_MS = 50.0
NOT_YET_MS = 10.0
"""A node that was just elected is not the controller before everything an earlier one left is committed."""
NOT_REGISTERED = -1


class Membership:
    def __init__(self, broker: Broker, peers: Peers, controller: Callable[[], Peer | None], tell: Tell) -> None:
        self._broker = broker
        self._peers = peers
        self._controller = controller
        """Who is the active controller, as far as we know."""
        self._tell = tell
        self._interval_ms = float(broker.config.integer("broker.heartbeat.interval.ms"))
        self._patience_ms = float(broker.config.integer("broker.session.timeout.ms"))
        self._lease_ms = _lease_ms(broker)
        self._asked_ms = 0.0
        self._request: BrokerRegistrationRequest
        self.epoch = NOT_REGISTERED
        """The last one we got."""
        self.is_registered = False
        self.is_serving = False
        """Whether the controller has counted on us once. Clients are heard from then on."""
        self.is_replaced = False
        """Whether another process was registered as this broker after us."""
        self.may_stop = False
        self.counted_on_ms: float | None = None
        """When we sent the last heartbeat that found us counted on; None while we are fenced, as far as we know."""
        self._wants_to_stop = False
        self._asking = False
        self._told_offset = -1
        self._due_ms: float | None = None

    def start(
        self, identity: Identity, endpoint: Endpoint, incarnation: Uuid, previous_broker_epoch: int, now: Now
    ) -> None:
        self._request = BrokerRegistrationRequest(
            broker_id=self._broker.node_id,
            cluster_id=identity.cluster_id,
            incarnation_id=incarnation,
            listeners=[
                Listener(
                    name=endpoint.name,
                    host=endpoint.host,
                    port=endpoint.port,
                    security_protocol=endpoint.security_protocol,
                )
            ],
            features=[
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in sorted(features.SUPPORTED.items())
            ],
            rack=self._broker.config.rack,
            log_dirs=[identity.directory_id],
            previous_broker_epoch=previous_broker_epoch,
        )
        self._due_ms = now.monotonic_ms

    @property
    def incarnation_id(self) -> Uuid:
        return self._request.incarnation_id if self._due_ms is not None else ZERO_UUID

    def admit_loss(self, incarnation: Uuid, now: Now) -> None:
        """Something that we wrote earlier is not there. The controller has not counted on us yet: if we had said that
        all is there, register again, as a life that knows of nothing before it."""
        if self._request.previous_broker_epoch == NOT_REGISTERED:
            self._broker.life.begin(self.epoch)
            return
        self._request.previous_broker_epoch = NOT_REGISTERED
        self._request.incarnation_id = incarnation
        self.is_registered = False
        self._due_ms = now.monotonic_ms

    def begin_to_stop(self, now: Now) -> None:
        """Ask to be let go. `may_stop` says when."""
        self._wants_to_stop = True
        self._due_ms = now.monotonic_ms

    def next_deadline_ms(self) -> float | None:
        return None if self._asking else self._due_ms

    def controller_changed(self, now: Now) -> None:
        """Whoever it is now does not know yet that we are alive."""
        if self._due_ms is not None:
            self._due_ms = now.monotonic_ms

    def followed(self, now: Now) -> None:
        """The broker's image moved on. If it names another life of this broker, later than ours, ours is over."""
        known = self._broker.image.brokers.get(self._broker.node_id)
        is_ours = known is None or known.incarnation_id == self._request.incarnation_id
        if not self.is_replaced and known is not None and not is_ours and 0 <= self.epoch < known.epoch:
            self.is_replaced = True
            self._tell(Replaced(self._broker.node_id))
        if (
            self._due_ms is not None
            and not self.is_serving
            and self._has_caught_up()
            and self._told_offset < self.epoch
        ):
            self._due_ms = now.monotonic_ms

    def tick(self, now: Now) -> None:
        if self._asking or self._due_ms is None or self._due_ms > now.monotonic_ms:
            return
        controller = self._controller()
        if controller is None:
            self._due_ms = now.monotonic_ms + RETRY_MS
        elif not self.is_registered:
            self._ask(controller, BROKER_REGISTRATION, REGISTRATION_VERSION, self._request, self._registered, now)
        else:
            self._beat(controller, now)

    def _beat(self, controller: Peer, now: Now) -> None:
        ready = self._has_caught_up()
        self._told_offset = self._broker.image.offset if ready else -1
        beat = BrokerHeartbeatRequest(
            broker_id=self._broker.node_id,
            broker_epoch=self.epoch,
            current_metadata_offset=self._broker.image.offset,
            want_fence=not ready,
            want_shut_down=self._wants_to_stop,
        )
        self._ask(controller, BROKER_HEARTBEAT, HEARTBEAT_VERSION, beat, self._heard, now)

    def _has_caught_up(self) -> bool:
        return self.is_registered and self._broker.image.offset >= self.epoch and self._broker.is_open

    def _ask(
        self,
        controller: Peer,
        api: int,
        version: int,
        request: object,
        then: Callable[[object, Now], None],
        now: Now,
    ) -> None:
        self._asking = True
        self._asked_ms = now.monotonic_ms
        self._peers.ask(controller, Purpose.MEMBERSHIP, api, version, request, self._patience_ms, then, now)

    def _registered(self, answer: object, now: Now) -> None:
        self._asking = False
        self._due_ms = now.monotonic_ms
        if not isinstance(answer, BrokerRegistrationResponse):
            self._due_ms += RETRY_MS
        elif answer.error_code == ErrorCode.NOT_CONTROLLER:
            self._due_ms += NOT_YET_MS
        elif answer.error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION:
            self._tell(EarlierLifeStands(self._broker.node_id))
            self._due_ms += 10 * RETRY_MS
        elif answer.error_code:
            self._tell(RegistrationRefused(error_code(answer.error_code).name))
            self._due_ms += 10 * RETRY_MS
        else:
            self.epoch = self._broker.epoch = answer.broker_epoch
            self._broker.life.begin(self.epoch)
            self.is_registered = True
            self._tell(Registered(self.epoch))

    def _heard(self, answer: object, now: Now) -> None:
        self._asking = False
        if not isinstance(answer, BrokerHeartbeatResponse):
            self._due_ms = now.monotonic_ms + RETRY_MS
        elif answer.error_code == ErrorCode.NOT_CONTROLLER:
            self._due_ms = now.monotonic_ms + NOT_YET_MS
        elif answer.error_code:
            if answer.error_code in (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED):
                # It does not know this life of ours: it was unregistered, or somebody else took our number.
                self.is_registered = False
            self._due_ms = now.monotonic_ms + RETRY_MS
        else:
            self.counted_on_ms = None if answer.is_fenced else self._asked_ms
            if self._lease_ms is not None and not answer.is_fenced:
                self._broker.coordination.counted_on_until_ms = self._asked_ms + self._lease_ms
            self.may_stop = self.may_stop or (self._wants_to_stop and answer.should_shut_down)
            self._due_ms = now.monotonic_ms + (RETRY_MS if self._wants_to_stop else self._interval_ms)
            if not self.is_registered:
                # Meanwhile something was found missing, and that should be said at once.
                self._due_ms = now.monotonic_ms
            elif answer.is_fenced:
                if self.is_serving:
                    # We were given up meanwhile, and are counted on again once we know what became of what we led.
                    self._due_ms = now.monotonic_ms + RETRY_MS
                self.followed(now)
            elif not self.is_serving:
                self.is_serving = True
                self._tell(Serving(self._broker.node_id))


def _lease_ms(broker: Broker) -> float | None:
    """How long after a heartbeat that was answered nobody can have taken our place, apart from what we ourselves know
    of. The controller waits for a whole session; but whoever answered may have been deposed, and finds that out when
    it has not heard of the others for its own timeout. The only voter is its own controller."""
    config = broker.config
    if all(node_id == broker.node_id for node_id, _, _ in config.voters):
        return None
    session_ms = config.integer("broker.session.timeout.ms")
    deposed_ms = 1.5 * config.integer("controller.quorum.fetch.timeout.ms")
    return float(max(session_ms - deposed_ms, session_ms / 3))
