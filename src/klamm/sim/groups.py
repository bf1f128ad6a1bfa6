"""Groups of a run: seats, who sits on them, and how they come and go (F41).

A seat is where a member runs, over and over: killed without a word, leaving as it should, paused for longer than its
session, doubled. A static seat has an instance id, which each life of it uses. In a mixed group every life draws which
protocol it speaks, so that the group changes from one to the other and back while it lives.
"""

from collections.abc import Callable
from functools import partial

from klamm.metadata.image import Image
from klamm.sim.checkers.group_progress import GroupProgress
from klamm.sim.clients.client import Client, Desk
from klamm.sim.clients.group_history import GroupHistory
from klamm.sim.clients.history import History
from klamm.sim.clients.member import Member, MemberSettings, Versions
from klamm.sim.clients.member_classic import ClassicMember
from klamm.sim.clients.member_consumer import ConsumerMember
from klamm.sim.clients.watcher import Watcher
from klamm.sim.cluster import Cluster
from klamm.sim.plan import CLASSIC, MIXED, GroupPlan
from klamm.sim.topics import OFFSETS_PARTITIONS
from klamm.sim.world import World

SESSION_MS = 2_500
REBALANCE_MS = 2_000
BEAT_MS = 400
AWAY_MS = (50.0, 6_000.0)
SHORT_MS = (0.1 * SESSION_MS, 0.9 * SESSION_MS)
PAST_SESSION_MS = (1.2 * SESSION_MS, 2.4 * SESSION_MS)
CALM_MS = 8_000.0
DOUBLED_MS = (300.0, 2.0 * SESSION_MS)

OF_CLASSIC = (
    Versions(find=1, join=2, sync=1, heartbeat=1, leave=1, commit=2, offsets=1),
    Versions(find=3, join=5, sync=3, heartbeat=3, leave=3, commit=7, offsets=6),
    Versions(find=4, join=9, sync=5, heartbeat=4, leave=5, commit=9, offsets=9),
)
FIRST_WITH_INSTANCES = 2
"""Of these. (The one before has instance ids too. But if it led its group and comes back, it is not told that it leads:
nobody sees the topic grow any more, with Kafka as well, until somebody else joins.)"""
OF_CONSUMER = (
    Versions(find=4, join=0, sync=0, heartbeat=0, leave=0, commit=9, offsets=9),
    Versions(find=6, join=0, sync=0, heartbeat=1, leave=0, commit=10, offsets=10),
)

SETTINGS = {
    "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
    "group.min.session.timeout.ms": "500",
    "group.initial.rebalance.delay.ms": "150",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": str(BEAT_MS),
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.assignment.interval.ms": "50",
}
"""Of brokers: sessions that end within a run."""


class Seat:
    def __init__(self, plan: GroupPlan, number: int, name: str) -> None:
        self.plan = plan
        self.number = number
        self.name = name
        self.instance_id = name if number < plan.static else None
        self.member: Member | None = None
        self.lives = 0


class Groups:
    """`desk` gives a client of this name a place to work."""

    def __init__(
        self,
        world: World,
        cluster: Cluster,
        plans: tuple[GroupPlan, ...],
        history: History,
        desk: Callable[[str], Desk],
    ) -> None:
        self._world = world
        self._cluster = cluster
        self._chance = world.chance("groups")
        self._history = history
        self._desk = desk
        self._is_settling = False
        self._calm_until_ms = 0.0
        self._aside: list[Member] = []
        """Those whose seat somebody else has taken."""
        self.plans = plans
        self.history = GroupHistory()
        self._seats = [Seat(plan, number, f"{plan.name}-{number}") for plan in plans for number in range(plan.members)]
        self.watcher = Watcher(desk("watcher"), self.history, {plan.name: plan.topic for plan in plans})
        for seat in self._seats:
            seat.member = self._new_member(seat)

    @property
    def clients(self) -> list[Client]:
        """The first on each seat, and who watches. (A network knows clients by their names, which all lives share.)"""
        return [self.watcher, *self.members]

    @property
    def members(self) -> list[Member]:
        return [seat.member for seat in self._seats if seat.member is not None]

    def begin(self) -> None:
        self.watcher.watch()
        for member in self.members:
            self._world.after(self._chance.uniform(0.0, 2_000.0), partial(self._begin, member))

    def kinds(self) -> dict[str, Callable[[], bool]]:
        """What may happen to members."""
        return {
            "member killed": self._kill,
            "member leaves": self._leave,
            "member paused": self._pause,
            "member doubled": self._double,
            "rebalance storm": self._storm,
        }

    def settle(self) -> None:
        """From now on nobody goes any more, and those who are away come back."""
        self._is_settling = True
        for member in self._aside:
            member.end()
        for seat in self._seats:
            if seat.member is None:
                self._take(seat)
            elif seat.member.is_paused:
                seat.member.resume()

    def complaint(self, image: Image, progress: GroupProgress) -> str:
        """What is missing until every partition has an owner, and every record that is there was handled."""
        for plan in self.plans:
            members = [seat.member for seat in self._seats if seat.plan is plan and seat.member is not None]
            owned = sorted(index for member in members for index in member.owned)
            topic = image.topics[plan.topic]
            if owned != list(range(len(topic.partitions))):
                return f"{plan.name}: {', '.join(f'{each.standing.who} owns {sorted(each.owned)}' for each in members)}"
            for index, state in enumerate(topic.partitions):
                partition = self._cluster.machines[state.leader].broker.partitions.get(plan.topic, index)
                end = 0 if partition is None else partition.log.end_offset
                if not progress.has_all(plan.name, (topic.topic_id, index), end):
                    up_to = progress.up_to(plan.name, (topic.topic_id, index))
                    return f"{plan.name} has handled {plan.topic}-{index} up to {up_to} of {end}"
            for member in members:
                if not member.is_settled:
                    return f"{member.standing.who} has not settled"
        return ""

    # Lives.

    def _new_member(self, seat: Seat) -> Member:
        seat.lives += 1
        plan = seat.plan
        is_classic = self._chance.random() < 0.5 if plan.protocol == MIXED else plan.protocol == CLASSIC
        ages = OF_CLASSIC if is_classic else OF_CONSUMER
        least = FIRST_WITH_INSTANCES if is_classic and seat.instance_id is not None else 0
        settings = MemberSettings(
            group=plan.name,
            topic=plan.topic,
            versions=ages[self._chance.randrange(least, len(ages))],
            session_ms=SESSION_MS,
            rebalance_ms=REBALANCE_MS,
            beat_ms=BEAT_MS,
            instance_id=seat.instance_id,
            life=seat.lives,
        )
        kind = ClassicMember if is_classic else ConsumerMember
        member = kind(self._desk(seat.name), settings, self._history, self.history)
        member.on_end = partial(self._ended, seat, member)
        return member

    def _begin(self, member: Member) -> None:
        if not member.has_ended:
            member.tell(f"begins, {type(member).__name__} of {member.member.versions}")
            member.begin()

    def _take(self, seat: Seat) -> None:
        if seat.member is None:
            seat.member = self._new_member(seat)
            self._begin(seat.member)

    def _come_back(self, seat: Seat) -> None:
        seat.member = None
        delay_ms = 0.0 if self._is_settling else self._chance.uniform(*AWAY_MS) * self._chance.random()
        self._world.after(delay_ms, partial(self._take, seat))

    def _ended(self, seat: Seat, member: Member) -> None:
        """By itself, because another one has its instance id."""
        member.tell("ends, another one took its place")
        if seat.member is member:
            self._come_back(seat)

    # What happens to them.

    def _somebody(self) -> Seat | None:
        seats = [seat for seat in self._seats if seat.member is not None and not seat.member.is_paused]
        return self._chance.choice(seats) if seats and not self._is_settling else None

    def _kill(self) -> bool:
        seat = self._somebody()
        if seat is None or seat.member is None:
            return False
        seat.member.tell("is killed")
        seat.member.end()
        self._come_back(seat)
        return True

    def _leave(self) -> bool:
        seat = self._somebody()
        if seat is None or seat.member is None:
            return False
        seat.member.leave()
        self._come_back(seat)
        return True

    def _pause(self) -> bool:
        seat = self._somebody()
        if seat is None or seat.member is None:
            return False
        member = seat.member
        member.tell("is paused")
        member.pause()
        lasts_ms = self._chance.uniform(*(SHORT_MS if self._chance.random() < 0.3 else PAST_SESSION_MS))
        self._world.after(lasts_ms, partial(self._resume, member))
        return True

    def _resume(self, member: Member) -> None:
        if member.is_paused and not member.has_ended:
            member.tell("goes on")
            member.resume()

    def _double(self) -> bool:
        """Another one begins on a seat, under the same instance id if it has one, and the first goes on for a while."""
        seat = self._somebody()
        if seat is None or seat.member is None:
            return False
        old = seat.member
        self._aside.append(old)
        self._world.after(self._chance.uniform(*DOUBLED_MS), old.end)
        seat.member = None
        self._take(seat)
        return True

    def _storm(self) -> bool:
        """Many at once; then they have some time to find together."""
        if self._is_settling or self._world.now_ms < self._calm_until_ms:
            return False
        self._calm_until_ms = self._world.now_ms + CALM_MS

        def strike() -> None:
            self._chance.choice((self._kill, self._leave, self._pause))()

        for _ in range(self._chance.randint(2, 2 * len(self._seats))):
            self._world.after(self._chance.uniform(0.0, 1_000.0), strike)
        return True
