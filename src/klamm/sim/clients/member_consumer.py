"""A member of the newer protocol (KIP-848): one request says all there is to say, and the coordinator assigns.

It joins with epoch 0, beats as often as it is told to, and is told what it should own. What it should not own any more
it gives up, after a last commit, and says so; only then may the coordinator hand it to somebody else. Whoever is fenced
has lost everything and joins anew. A static member leaves its place to its next life (epoch -2).
"""

from functools import partial
from math import inf

from klamm.errors import ErrorCode
from klamm.ids import NO_BROKER, ZERO_UUID
from klamm.sim.clients.client import Desk
from klamm.sim.clients.group_history import GroupHistory
from klamm.sim.clients.group_requests import CONSUMER_GROUP_HEARTBEAT
from klamm.sim.clients.history import History
from klamm.sim.clients.member import FENCED, Member, MemberSettings
from klamm.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

JOINS, LEAVES, LEAVES_FOR_A_WHILE = 0, -1, -2
FIRST_WITH_OWN_ID = 1
SOON_MS = 5.0


class ConsumerMember(Member):
    is_classic = False

    def __init__(self, desk: Desk, settings: MemberSettings, history: History, groups: GroupHistory) -> None:
        super().__init__(desk, settings, history, groups)
        self._target: frozenset[int] = frozenset()
        """What it was told to own."""
        self._topic_id = ZERO_UUID
        self._given_up: set[int] = set()
        """What it does not own any more, and has not said so yet."""
        self._is_revoking = False
        self._is_asking = False
        self._tells_all = True
        """Whether the next heartbeat tells everything: the coordinator may know nothing of it."""
        self._tells_owned = False

    def found_coordinator(self) -> None:
        self._tells_all = True
        if self.epoch < 0:
            self.epoch = JOINS
            if self.member.versions.heartbeat >= FIRST_WITH_OWN_ID:
                self.member_id = f"{self.standing.who}-{self.chance.randrange(1 << 32):08x}"
        self._beat()

    def leave(self) -> None:
        self.turn += 1
        self.tell("leaves")
        self.is_leaving = True
        instance_id = self.member.instance_id
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.member.group,
            member_id=self.member_id,
            member_epoch=LEAVES if instance_id is None else LEAVES_FOR_A_WHILE,
            instance_id=instance_id,
        )
        self.groups.on_released(self.standing, self.spots(self._target | self.owned.keys() | self._given_up))
        self.disown(list(self.owned))
        if self.coordinator == NO_BROKER or self.epoch <= JOINS:
            self.end()
            return
        version = self.member.versions.heartbeat
        self.ask(self.coordinator, CONSUMER_GROUP_HEARTBEAT, version, request, lambda answer: self.end(), apart=True)

    def was_fenced(self, code: ErrorCode) -> None:
        if code in FENCED:
            self._join_anew(code)

    @property
    def membership(self) -> tuple[str, int] | None:
        return self.member_id, self.epoch

    @property
    def is_settled(self) -> bool:
        return super().is_settled and not self._is_revoking and self._target == self.owned.keys()

    # Beating.

    def _beat(self) -> None:
        if self._is_asking or self.coordinator == NO_BROKER:
            return
        self._is_asking = True
        settings = self.member
        request = ConsumerGroupHeartbeatRequest(
            group_id=settings.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=settings.instance_id,
        )
        if self.epoch == JOINS and settings.instance_id is not None:
            self.groups.on_replaced(self.standing)
        if self._tells_all:
            request.rebalance_timeout_ms = settings.rebalance_ms
            request.subscribed_topic_names = [settings.topic]
        if self._tells_all or self._tells_owned:
            self._tell_owned(request)
        self._tells_all = self._tells_owned = False
        then = partial(self._heard_beat, self.world.now_ms)
        self.ask_coordinator(CONSUMER_GROUP_HEARTBEAT, settings.versions.heartbeat, request, then)

    def _tell_owned(self, request: ConsumerGroupHeartbeatRequest) -> None:
        indexes = sorted(self.owned)
        request.topic_partitions = [TopicPartitions(topic_id=self._topic_id, partitions=indexes)] if indexes else []
        self.groups.on_released(self.standing, self.spots(self._given_up))
        self._given_up = set()

    def _heard_beat(self, asked_ms: float, answer: ConsumerGroupHeartbeatResponse | None) -> None:
        self._is_asking = False
        if answer is None:
            self._tells_all = True
            self.beat_later(SOON_MS, self._beat)
            return
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.NONE:
            self._is_member(asked_ms, answer)
        elif self.is_of_coordinator(code):
            self._tells_all = True
            self.beat_later(self.chance.uniform(20.0, 200.0), self._beat)
        elif code is ErrorCode.UNRELEASED_INSTANCE_ID:
            self._tells_all = True
            self.beat_later(self.chance.uniform(200.0, 600.0), self._beat)
        elif code in FENCED:
            self._join_anew(code)
        else:
            self.is_strange(code, f"ConsumerGroupHeartbeat ({answer.error_message})")

    def _is_member(self, asked_ms: float, answer: ConsumerGroupHeartbeatResponse) -> None:
        if answer.member_id:
            self.member_id = answer.member_id
        if self.epoch == JOINS:
            self.groups.reached["static member returned"] += (
                self.member.instance_id is not None and self.member.life > 1
            )
        self.groups.reached["rebalance"] += answer.member_epoch != self.epoch
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            parts = [index for topic in answer.assignment.topic_partitions for index in topic.partitions]
            self.tell(f"is to own {sorted(parts)} in epoch {self.epoch}")
            self._target = frozenset(parts)
            for topic in answer.assignment.topic_partitions:
                self._topic_id = topic.topic_id
        if self.owned.keys() - self._target:
            self.standing.is_to_give_up(asked_ms)
        else:
            if not self._tells_owned:
                self.standing.revoked_ms = inf
            self.standing.is_heard(asked_ms)
        self.groups.on_told(self.standing, self.epoch, self.spots(self._target), self.world.now_ms)
        if answer.assignment is not None:
            self._reconcile()
        self.beat_later(answer.heartbeat_interval_ms * self.chance.uniform(0.7, 1.0), self._beat)

    # Owning what it should.

    def _reconcile(self) -> None:
        """First give up, then take: one thing at a time."""
        if self._is_revoking:
            return
        too_many = sorted(self.owned.keys() - self._target)
        if too_many:
            self._is_revoking = True
            turn, delay_ms = self.turn, self.chance.uniform(0.0, 300.0)
            give_up = partial(self._give_up_these, too_many, turn)
            self.commit(too_many, lambda: self.later(delay_ms, give_up))
            return
        if self._target - self.owned.keys():
            self.own(self._target - self.owned.keys())
        self._tells_owned = True
        self.beat_later(SOON_MS, self._beat)

    def _give_up_these(self, indexes: list[int], turn: int) -> None:
        if turn != self.turn:
            return
        self._is_revoking = False
        gone = [index for index in indexes if index not in self._target]
        self._given_up |= set(gone)
        self.disown(gone)
        self._reconcile()

    def _join_anew(self, code: ErrorCode) -> None:
        self.tell(f"hears {code.name}")
        self.groups.reached["member fenced"] += 1
        self.turn += 1
        self.groups.on_released(self.standing, self.spots(self._target | self.owned.keys() | self._given_up))
        self.disown(list(self.owned))
        self._target, self._given_up = frozenset(), set()
        self._is_revoking = self._is_asking = False
        self.epoch, self._tells_all = JOINS, True
        self.standing.joins += 1
        self.beat_later(self.chance.uniform(0.0, 100.0), self._beat)
