"""Known bugs of others, put into our code: the simulator has to catch each of them.

A mutation replaces one function by one that is wrong in the way somebody's was. One that nobody catches means that a
checker or a workload is missing. The numbers are those of the table of known bugs in docs/proof.md.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from klamm.broker import speaker
from klamm.broker.coordination import Coordination
from klamm.broker.directories import Directories
from klamm.broker.facts import StrayDirectory
from klamm.broker.life import Life
from klamm.broker.loading import Loading
from klamm.controller import leadership
from klamm.coordinator.groups import reconciliation
from klamm.coordinator.groups.classic import ClassicGroup
from klamm.coordinator.groups.consumer import ConsumerGroup
from klamm.errors import KafkaError
from klamm.handlers import fetch, fetch_by_follower
from klamm.ids import ZERO_UUID, uuid_text
from klamm.log.producers import ProducerStates
from klamm.node.flushing import Flushing
from klamm.node.membership import Membership
from klamm.partition.leader import Leader
from klamm.partition.partition import Partition
from klamm.quorum import answering, participant
from klamm.quorum.participant import Participant
from klamm.sim.plan import DAMAGE_FAULTS, FORGED_FAULTS, GROUPS, HEARING_FAULTS, Plan, drawn_plan


@dataclass(frozen=True, slots=True)
class Mutation:
    number: str
    what: str
    where: type[Any] | ModuleType
    name: str
    wrong: Callable[[Any], Any]
    """The wrong function, given the right one."""
    needs: tuple[str, ...] = ()
    """Faults: without all of these nobody can see it. GROUPS stands for groups and their members."""


def plan_for(mutation: Mutation, seed: int) -> Plan | None:
    """The run in which this seed looks for it: with groups if it needs them, and nobody forges or damages for nothing.
    None if it cannot be seen in that run."""
    plan = drawn_plan(seed, with_groups=GROUPS in mutation.needs)
    if GROUPS in mutation.needs and not plan.groups:
        return None
    faults = set(mutation.needs) - {GROUPS}
    if not faults <= plan.faults.keys():
        return None
    return plan.without(*({*FORGED_FAULTS, *DAMAGE_FAULTS} - faults))


@contextmanager
def mutated(mutation: Mutation) -> Iterator[None]:
    right = mutation.where.__dict__[mutation.name]
    setattr(mutation.where, mutation.name, mutation.wrong(right))
    try:
        yield
    finally:
        setattr(mutation.where, mutation.name, right)


def _everybody_is_eligible(right: Any) -> Any:
    def wrong(state: Any, members: Any, distrusted: Any, rules: Any) -> Any:
        if len(members.isr) >= rules.min_isr:
            return ()
        return tuple(broker for broker in members.replicas if broker not in members.isr)

    return wrong


def _cut_to_the_watermark(right: Any) -> Any:
    def wrong(self: Partition, state: Any, now: Any) -> None:
        begins_to_follow = state.leader != self.me and state.leader_epoch > self.leader_epoch
        right(self, state, now)
        if begins_to_follow and self.failure is None and self.log.end_offset > self.high_watermark:
            self.log.truncate_to(self.high_watermark)
            self._has_been_cut()

    return wrong


def _never_parted(right: Any) -> Any:
    def wrong(partition: Partition, last_epoch: int, fetch_offset: int) -> None:
        return None

    return wrong


def _any_epoch(right: Any) -> Any:
    def wrong(self: Partition, epoch: int) -> None:
        return None

    return wrong


def _nothing_was_lost(right: Any) -> Any:
    def wrong(self: Life, files: Any, boot_id: Any) -> None:
        right(self, files, "never started anew")
        self.doubt = lambda: None  # type: ignore[method-assign]

    return wrong


def _no_memory_of_batches(right: Any) -> Any:
    def wrong(self: ProducerStates, batch: Any) -> None:
        with suppress(KafkaError):
            right(self, batch)

    return wrong


def _does_not_wait_for_the_disk(right: Any) -> Any:
    def wrong(self: Partition, settings: Any, min_in_sync_replicas: int) -> None:
        right(self, settings, min_in_sync_replicas)
        self.waits_for_disk = False
        self._see_who_commits()

    return wrong


def _one_verdict_for_all(right: Any) -> Any:
    def wrong(self: Flushing, token: int, failures: Any, now: Any) -> None:
        reason = next(iter(failures.values()), None)
        right(self, token, dict.fromkeys(range(len(self._owners)), reason) if reason else {}, now)

    return wrong


def _forgetful_vote(right: Any) -> Any:
    def wrong(files: Any, directory: str, chosen: Any) -> None:
        class Careless:
            def write_whole(self, path: str, data: bytes, *, durable: bool = True) -> None:
                files.write_whole(path, data, durable=False)

        right(Careless(), directory, chosen)

    return wrong


def _a_majority_will_do(right: Any) -> Any:
    def wrong(self: Leader, own_end: int) -> int:
        ends = sorted((own_end, *[each.end_offset for each in self.followers.values()]), reverse=True)
        return int(ends[len(ends) // 2])

    return wrong


def _reads_what_is_not_committed(right: Any) -> Any:
    def wrong(self: Partition, offset: int, max_bytes: int, *, at_least_one: bool) -> Any:
        return self.log.read(offset, max_bytes, self.log.end_offset, at_least_one=at_least_one)

    return wrong


def _says_nothing(right: Any) -> Any:
    def wrong(self: Membership, incarnation: Any, now: Any) -> None:
        return None

    return wrong


def _answers_at_once(right: Any) -> Any:
    def wrong(self: Coordination, hosted: Any, answers: Any, now: Any) -> None:
        for answer in answers:
            self._give(*answer)

    return wrong


def _takes_any_commit(right: Any) -> Any:
    def wrong(self: ClassicGroup | ConsumerGroup, wish: Any, now: Any) -> None:
        return None

    return wrong


def _never_gives_up(right: Any) -> Any:
    def wrong(self: Coordination, partition: Any, now: Any) -> None:
        if partition.topic_partition.partition not in self._hosted:
            right(self, partition, now)

    return wrong


def _serves_before_it_is_loaded(right: Any) -> Any:
    def wrong(self: Loading) -> bool:
        right(self)
        return True

    return wrong


def _takes_what_others_hold(right: Any) -> Any:
    def wrong(member: Any, epoch: Any, target: Any, owned: Any, is_free: Any) -> Any:
        return right(member, epoch, target, owned, lambda topic, partition: True)

    return wrong


def _believes_anybody(right: Any) -> Any:
    def wrong(call: Any, broker_id: int) -> Any:
        call.speaker = speaker.Speaker(broker_id, b"", is_this_node=True)
        return call.speaker

    return wrong


def _believes_in_nobody(right: Any) -> Any:
    def wrong(self: Participant) -> bool:
        return False

    return wrong


def _counts_only_who_is_known_to_be_in_sync(right: Any) -> Any:
    return property(lambda self: set(self.committed))


def _takes_anybody_for_a_follower(right: Any) -> Any:
    def wrong(call: Any, broker_id: int, broker_epoch: int) -> None:
        return None

    return wrong


def _follows_whoever_says_so(right: Any) -> Any:
    def wrong(me: Participant, request: Any) -> Any:
        if (
            me.epoch < request.epoch <= me.epoch + 5
            and request.leader_id in me.voters
            and request.leader_id != me.node_id
        ):
            me.become_follower(request.epoch, request.leader_id)
        return right(me, request)

    return wrong


def _removes_what_it_cannot_name(right: Any) -> Any:
    """As it was: set aside with one warning, and removed some seconds later."""

    def wrong(self: Directories, entry: str, found: Any, reason: str) -> None:
        self._tell(StrayDirectory(entry, uuid_text(found) if found else "unknown"))
        self.set_aside(entry, found or ZERO_UUID)

    return wrong


MUTATIONS = (
    Mutation("1", "any replica may be elected", leadership, "_eligible", _everybody_is_eligible),
    Mutation("2", "a follower cuts its log to its watermark", Partition, "take_role", _cut_to_the_watermark),
    Mutation("3", "a follower is not told where it parted", fetch_by_follower, "_parted", _never_parted),
    Mutation("4", "no leader epoch is fenced", Partition, "check_epoch", _any_epoch),
    Mutation(
        "5", "a machine that lost its power says it lost nothing", Life, "__init__", _nothing_was_lost, needs=("power",)
    ),
    Mutation("10", "a retry is not recognised", ProducerStates, "judge", _no_memory_of_batches),
    Mutation(
        "16",
        "acknowledged before it is on disk",
        Partition,
        "configure",
        _does_not_wait_for_the_disk,
        needs=("blackout",),
    ),
    Mutation(
        "17",
        "a damaged log is taken for a shorter one",
        Membership,
        "admit_loss",
        _says_nothing,
        needs=("rotten tails",),
    ),
    Mutation(
        "verdict",
        "one file that fails fails a whole flush",
        Flushing,
        "done",
        _one_verdict_for_all,
        needs=("flush error",),
    ),
    Mutation("vote", "a vote is told before it is on disk", participant, "write_election", _forgetful_vote),
    Mutation("majority", "a majority of replicas counts as committed", Leader, "watermark", _a_majority_will_do),
    Mutation("dirty", "readers are given what is not committed", Partition, "read", _reads_what_is_not_committed),
    Mutation(
        "hasty",
        "a group is answered before that is safe",
        Coordination,
        "_answer_when_safe",
        _answers_at_once,
        needs=(GROUPS,),
    ),
    Mutation(
        "zombie",
        "members of any generation may commit",
        ClassicGroup,
        "check_commit",
        _takes_any_commit,
        needs=(GROUPS, "member paused"),
    ),
    Mutation(
        "stale",
        "members of any epoch may commit",
        ConsumerGroup,
        "check_commit",
        _takes_any_commit,
        needs=(GROUPS, "member paused"),
    ),
    Mutation(
        "deposed", "a coordinator goes on when another leads", Coordination, "look", _never_gives_up, needs=(GROUPS,)
    ),
    Mutation(
        "shared",
        "a partition is handed over while another has it",
        reconciliation,
        "_towards",
        _takes_what_others_hold,
        needs=(GROUPS,),
    ),
    Mutation("stranger", "whoever names a broker is believed", speaker, "_claimed", _believes_anybody),
    Mutation("follower", "any fetch counts as a follower's", fetch, "check_speaker", _takes_anybody_for_a_follower),
    Mutation(
        "strays",
        "what nobody can name is removed",
        Directories,
        "_keep",
        _removes_what_it_cannot_name,
        needs=("lost names",),
    ),
    Mutation(
        "maximal",
        "who may have been let in is not waited for (KIP-497)",
        Leader,
        "maximal",
        _counts_only_who_is_known_to_be_in_sync,
        needs=HEARING_FAULTS,
    ),
    Mutation(
        "early",
        "a coordinator serves before it is loaded",
        Loading,
        "step",
        _serves_before_it_is_loaded,
        needs=(GROUPS,),
    ),
    Mutation(
        "asked",
        "a vote is given while a leader lives",
        Participant,
        "believes_in_leader",
        _believes_in_nobody,
        needs=FORGED_FAULTS,
    ),
    Mutation(
        "told",
        "whoever is said to lead is followed",
        answering,
        "begin_quorum_epoch",
        _follows_whoever_says_so,
        needs=FORGED_FAULTS,
    ),
)

CAUGHT_BY = {
    "1": 2, "2": 3, "3": 2, "4": 1, "5": 38, "10": 2, "16": 171, "17": 95, "verdict": 40, "vote": 9, "majority": 0,
    "dirty": 0, "hasty": 3, "zombie": 117, "stale": 47, "deposed": 7, "shared": 7, "early": 13,
    "stranger": 4, "follower": 4, "asked": 43, "told": 2, "strays": 9, "maximal": 27,
}  # fmt: skip
"""A seed that catches each. `python -m proof known_bugs --fresh` looks again when what is drawn has changed."""
