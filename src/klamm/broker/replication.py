"""Following and being followed: which leader is asked for what, and what the controller is asked about who is in sync.

One plan for each leader (`partition/fetching.py`) says what to fetch there next. Wishes about in-sync replicas, from
followers that caught up or fell behind, are gathered into one request at a time. Values only: `node` makes requests of
them, sends them, and brings back what came of them, once for each.

What happens in a step is looked at when the step settles, so the answer to one fetch and the next fetch are one step.
Time matters twice: partitions and leaders that failed are tried again, and followers that do not keep up are noticed.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from klamm.broker.facts import InSyncReplicasChanged, LogCut
from klamm.broker.throttles import Throttles
from klamm.errors import ErrorCode
from klamm.facts import Tell
from klamm.ids import NO_BROKER, BrokerId, Now
from klamm.metadata.delta import Changes
from klamm.metadata.image import ConfigResource, Image, ResourceType
from klamm.partition.fetching import FetchAsk, Fetched, FetchPlan, FetchSettings
from klamm.partition.isr import IsrOutcome, IsrWish
from klamm.partition.partition import Partition
from klamm.partition.progress import NO_BROKER_EPOCH

if TYPE_CHECKING:
    from klamm.broker.broker import Broker

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
MOST_WISHES = 500
"""In one request: deciding on so many takes the controller a few milliseconds."""
PARTITIONS_A_LOOK = 500
ISR_PAUSE_MS = 50.0
LONGEST_ISR_PAUSE_MS = 1_000.0
"""After a refusal, or no answer, the controller is left alone for a while, which doubles each time."""
LOOKS_A_LAG = 2
"""How often followers are looked at within `replica.lag.time.max.ms`, as in Kafka."""


@dataclass(slots=True)
class IsrAsk:
    """One AlterPartition request."""

    wishes: list[IsrWish]
    partitions: list[Partition]
    broker_id: BrokerId
    broker_epoch: int


class Replication:
    def __init__(self, broker: "Broker", tell: Tell) -> None:
        config = broker.config
        self._broker = broker
        self._me = broker.node_id
        self._tell = tell
        self._settings = FetchSettings(
            max_wait_ms=config.integer("replica.fetch.wait.max.ms"),
            min_bytes=config.integer("replica.fetch.min.bytes"),
            max_bytes=config.integer("replica.fetch.response.max.bytes"),
            partition_max_bytes=config.integer("replica.fetch.max.bytes"),
            backoff_ms=config.integer("replica.fetch.backoff.ms"),
        )
        self.fetch_patience_ms = float(config.integer("replica.socket.timeout.ms"))
        """So long a leader may take to answer a fetch before it is given up."""
        self.throttles = Throttles()
        surroundings = broker.partitions.surroundings
        surroundings.max_lag_ms = float(config.integer("replica.lag.time.max.ms"))
        surroundings.readers_may_follow = config.text("replica.selector.class") == RACK_AWARE
        self._look_interval_ms = surroundings.max_lag_ms / LOOKS_A_LAG
        self._plans: dict[BrokerId, FetchPlan] = {}
        self._plan_of: dict[Partition, FetchPlan] = {}
        self._ready: dict[BrokerId, None] = {}
        """Leaders that may have to be asked for something."""
        self._wishing = broker.partitions.wishing
        """Partitions whose in-sync replicas may have to change."""
        self._isr_ask: IsrAsk | None = None
        self._isr_failures = 0
        self._isr_resume_ms = 0.0
        self._next_look_ms: float | None = None
        self._look: Iterator[Partition] | None = None

    # Following the metadata.

    def begin(self, now: Now) -> None:
        """After the start: follow what the image gives us to follow. What was lost with the power must not be believed
        of what comes in its place."""
        self._broker.housekeeping.were_cut(list(self._broker.partitions))
        self._next_look_ms = now.monotonic_ms + self._look_interval_ms
        self.throttles.follow(self._broker.image, self._broker.config, self._me)
        for partition in self._broker.partitions:
            self.follow_leader(partition)

    def follow(self, before: Image, changes: Changes, now: Now) -> None:
        """The metadata moved on, and partitions have taken their new roles."""
        if changes.configs_changed or changes.topics_deleted:
            image = self._broker.image
            deleted = (ConfigResource(ResourceType.TOPIC, topic.name) for topic in changes.topics_deleted)
            are_same = self.throttles.are_same(before, image, (*changes.configs_changed, *deleted))
            is_freed = self.throttles.follow(image, self._broker.config, self._me, are_same=are_same)
            # What was set aside waits for a debt at the old rate, which may have been for days.
            self._try_again(self._plans if is_freed else ())
        self._try_again(self._plans if self._me in changes.brokers_changed else changes.brokers_changed)
        if changes.brokers_changed:
            # Somebody may be able to join now, somebody need not be waited for any longer.
            self._look, self._next_look_ms = None, now.monotonic_ms

    def revived(self, partition: Partition) -> None:
        """Its log has been recovered."""
        self.follow_leader(partition)

    def follow_leader(self, partition: Partition) -> None:
        """Ask the leader that this partition has now, or nobody. Nothing changes while its epoch is the same: an answer
        may be under way."""
        leader = partition.leader
        plan = self._plan_of.get(partition)
        if plan is not None:
            if plan.leader == leader and partition in plan:
                return
            plan.remove(partition)
            del self._plan_of[partition]
            self._ready[plan.leader] = None
        if leader in (self._me, NO_BROKER) or partition.deleted or partition.failure is not None:
            return
        plan = self._plans.get(leader)
        if plan is None:
            plan = self._plans[leader] = FetchPlan(leader, self._settings)
        plan.add(partition)
        self._plan_of[partition] = plan
        self._ready[leader] = None

    # Fetching.

    @property
    def is_busy(self) -> bool:
        """Whether there may be something to send."""
        return bool(self._ready or (self._wishing and self._isr_ask is None))

    def take_fetches(self, now: Now) -> list[FetchAsk]:
        """Fetches to send now. Each is to be given back, by `fetched` or `fetch_lost`, those of a leader in order."""
        if not self._ready:
            return []
        asks = []
        epoch = self._broker_epoch()
        if epoch == NO_BROKER_EPOCH:
            # Nobody would believe us. `follow` looks again when the image knows this life of ours.
            self._ready.clear()
            return []
        for leader in sorted(self._ready):
            plan = self._plans[leader]
            if not plan.waits_for_disk:
                del self._ready[leader]
            ask = plan.next_ask(self._me, epoch, now)
            if ask is not None:
                asks.append(ask)
        return asks

    def fetched(
        self, ask: FetchAsk, session_id: int, error: ErrorCode, partitions: Iterator[Fetched], now: Now
    ) -> None:
        """A leader's answer. Views of records in it are used before this returns."""
        plan = self._plans[ask.leader]
        self._ready[ask.leader] = None
        if not plan.answered(ask, session_id, error, now):
            return
        cut = []
        for fetched in partitions:
            partition = plan.take(fetched, now)
            if partition is not None:
                cut.append(partition)
                self._tell(LogCut(str(partition.topic_partition), partition.log.end_offset, partition.leader))
            if self.throttles.follower.is_limited and len(fetched.records):
                self._throttle(plan, fetched, now)
        if cut:
            self._broker.housekeeping.were_cut(cut)

    def fetch_lost(self, ask: FetchAsk, now: Now) -> None:
        """No answer came: the leader could not be reached, or not in time."""
        self._plans[ask.leader].lost(ask, now)

    def _throttle(self, plan: FetchPlan, fetched: Fetched, now: Now) -> None:
        """Count what came for a throttled partition; when it was too much, ask for it later. What is needed to keep up
        is never held back."""
        found = self._broker.partitions.by_id(fetched.topic_id)
        partition = found[fetched.index] if found is not None and fetched.index < len(found) else None
        if partition is None or not self.throttles.follower.holds(partition.topic_partition):
            return
        self.throttles.follower.count(len(fetched.records), now)
        free_ms = self.throttles.follower.free_ms(now)
        if free_ms is not None and partition in plan and fetched.high_watermark > partition.log.end_offset:
            plan.set_aside(partition, free_ms)

    def _try_again(self, leaders: Iterable[BrokerId]) -> None:
        for broker_id in leaders:
            plan = self._plans.get(broker_id)
            if plan is not None:
                plan.try_again()
                self._ready[broker_id] = None

    # In-sync replicas.

    def take_isr_wishes(self, now: Now) -> IsrAsk | None:
        """What to ask the controller for now. It is to be given back, by `isr_answered` or `isr_lost`."""
        if not self._wishing or self._isr_ask is not None or now.monotonic_ms < self._isr_resume_ms:
            return None
        if self._broker_epoch() == NO_BROKER_EPOCH:
            return None
        ask = IsrAsk([], [], self._me, self._broker_epoch())
        for partition in sorted(islice(self._wishing, MOST_WISHES), key=lambda each: each.topic_partition):
            del self._wishing[partition]
            wish = partition.isr_wish(now)
            if wish is not None:
                ask.wishes.append(wish)
                ask.partitions.append(partition)
        if not ask.wishes:
            return None
        self._isr_ask = ask
        return ask

    def isr_answered(self, ask: IsrAsk, outcomes: Sequence[IsrOutcome], now: Now) -> None:
        """What the controller decided. A partition it says nothing of is asked for again."""
        assert self._isr_ask is ask
        self._isr_ask = None
        found = {(outcome.topic_id, outcome.index): outcome for outcome in outcomes}
        if len(found) < len(ask.wishes) or any(outcome.error for outcome in outcomes):
            self._pause(now)
        else:
            self._isr_failures = 0
        for wish, partition in zip(ask.wishes, ask.partitions, strict=True):
            outcome = found.get((wish.topic_id, wish.topic_partition.partition))
            if outcome is None:
                partition.isr_unanswered(wish)
            else:
                self._answered(partition, wish, outcome, now)

    def _answered(self, partition: Partition, wish: IsrWish, outcome: IsrOutcome, now: Now) -> None:
        before = partition.in_sync
        partition.isr_answered(wish, outcome, now)
        if set(before) != set(partition.in_sync):
            self._tell(InSyncReplicasChanged(str(partition.topic_partition), before, partition.in_sync))

    def isr_lost(self, ask: IsrAsk, now: Now) -> None:
        """The controller did not answer, or is not the controller."""
        assert self._isr_ask is ask
        self._isr_ask = None
        for wish, partition in zip(ask.wishes, ask.partitions, strict=True):
            partition.isr_unanswered(wish)
        self._pause(now)

    def _pause(self, now: Now) -> None:
        pause_ms = min(ISR_PAUSE_MS * 2 ** min(self._isr_failures, 10), LONGEST_ISR_PAUSE_MS)
        self._isr_failures += 1
        self._isr_resume_ms = now.monotonic_ms + pause_ms

    # Time.

    @property
    def next_deadline_ms(self) -> float | None:
        due = []
        if self._broker_epoch() != NO_BROKER_EPOCH:
            due = [due_ms for plan in self._plans.values() if (due_ms := plan.next_deadline_ms) is not None]
            if self._wishing and self._isr_ask is None:
                due.append(self._isr_resume_ms)
        if self._next_look_ms is not None:
            due.append(self._next_look_ms)
        return min(due, default=None)

    def tick(self, now: Now) -> None:
        """Whatever is due by now. What is to be sent for it is taken when the step settles."""
        now_ms = now.monotonic_ms
        for leader, plan in self._plans.items():
            due_ms = plan.next_deadline_ms
            if due_ms is not None and due_ms <= now_ms:
                self._ready[leader] = None
        if self._next_look_ms is not None and self._next_look_ms <= now_ms:
            self._look_at_some(now)

    def _look_at_some(self, now: Now) -> None:
        """Is anybody behind? A few hundred partitions at a time."""
        if self._look is None:
            self._look = iter(list(self._broker.partitions))
        some = list(islice(self._look, PARTITIONS_A_LOOK))
        for partition in some:
            if not partition.deleted:
                partition.look_at_followers(now)
        if len(some) < PARTITIONS_A_LOOK:
            self._look = None
            self._next_look_ms = now.monotonic_ms + self._look_interval_ms
        else:
            self._next_look_ms = now.monotonic_ms

    def _broker_epoch(self) -> int:
        """Ours, if the image speaks of this life of ours and not of another one."""
        registered = self._broker.image.brokers.get(self._me)
        if registered is None or self._broker.epoch not in (None, registered.epoch):
            return NO_BROKER_EPOCH
        return registered.epoch
