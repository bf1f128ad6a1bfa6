"""Asking about groups: each group's coordinator, each partition's leader, and again while they are moving.

A group belongs to one broker, its coordinator; the end of a log is known to its leader. Both move when brokers come and
go, and a coordinator reads its log before it answers. So every question here is asked again for some seconds: of
whoever is in charge by then. Groups are asked about together, one request a broker, however many there are.
"""

import argparse
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from klamm.cli.no_majority import gone, undecided
from klamm.cli.options import addresses_of, bootstrap_of
from klamm.cli.saying import say_silent
from klamm.errors import ErrorCode
from klamm.ids import TopicPartition
from klamm.local.asking import METADATA, Address, Conversation, NoAnswer
from klamm.local.asking_several import SOON_SECONDS, each_answer, first_answer
from klamm.local.view import ClusterSeen, PartitionSeen, placement_seen_by
from klamm.wire.messages.find_coordinator import FindCoordinatorRequest
from klamm.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from klamm.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

LIST_OFFSETS, FIND_COORDINATOR = 2, 10
LATEST, EARLIEST = -1, -2
READ_UNCOMMITTED, READ_COMMITTED = 0, 1

ANSWER_SECONDS = 5.0
PATIENCE_SECONDS = 15.0
"""For a coordinator: long enough that another broker has taken over from one that died."""
LEADER_SECONDS = 3.0
"""For a leader: a partition without one is shown as such, not waited for."""
PAUSE_SECONDS = 0.1

COORDINATOR_MOVING = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}
LEADER_MOVING = {
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    # Its metadata say that it leads: it is the one who has not heard of it yet.
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
}

NOT_DECIDED = "brokers answer, but none says that it is decided: is there a controller? `klamm status` shows who runs"

T = TypeVar("T")


class Refused(Exception):  # noqa: N818
    """Why the cluster did not do it, or why we did not even ask."""


@dataclass(frozen=True, slots=True)
class Coordinator:
    broker_id: int
    address: Address

    def __str__(self) -> str:
        return f"broker {self.broker_id} ({self.address})"


@dataclass(frozen=True, slots=True)
class Answered(Generic[T]):
    """What a coordinator said of one group: its error code, and the rest."""

    coordinator: Coordinator
    code: int
    value: T


class OffsetSaid(NamedTuple):
    """What a leader said of one partition: its error code, or an offset."""

    code: int
    offset: int


AskOfGroups = Callable[[Conversation, Sequence[str]], Mapping[str, tuple[int, T]]]
"""Asks one coordinator about some of its groups: for each of them the error code and what was said."""


class Cluster:
    """Some brokers to begin with, and all those they tell of."""

    def __init__(
        self,
        bootstrap: Sequence[Address],
        patience_seconds: float = PATIENCE_SECONDS,
        undecided: Callable[[], str | None] = lambda: None,
        gone: Callable[[], Collection[int]] = tuple,
    ) -> None:
        self._known = list(dict.fromkeys(bootstrap))
        self._patience_seconds = patience_seconds
        self.undecided = undecided
        """Why nothing can be decided, in words: no other coordinator is chosen, and there is little to wait for."""
        self._gone = gone
        """Brokers that do not run, of a cluster that cannot decide anything about them."""
        self._silent: set[Address] = set()
        """Who did not answer a moment ago: it has been waited for."""

    def of_groups(self, groups: Collection[str], ask: "AskOfGroups[T]") -> dict[str, Answered[T]]:
        """What the coordinator of each of these groups says. Refused if one has none for too long."""
        if groups:
            self.brokers()
        began = time.monotonic()
        answers: dict[str, Answered[T]] = {}
        waiting = list(dict.fromkeys(groups))
        while waiting:
            problems: dict[str, str] = {}
            for coordinator, its_groups in self._coordinators(waiting, problems).items():
                self._ask_coordinator(coordinator, its_groups, ask, answers, problems)
            waiting = [group for group in waiting if group in problems]
            if waiting:
                patience_seconds = self.patience_seconds()
                if time.monotonic() > began + patience_seconds:
                    raise Refused(_no_coordinator(waiting[0], problems[waiting[0]], patience_seconds))
                time.sleep(PAUSE_SECONDS)
        return {group: answers[group] for group in groups}

    def patience_seconds(self) -> float:
        """For a coordinator, as things are now."""
        return min(LEADER_SECONDS, self._patience_seconds) if self.undecided() else self._patience_seconds

    def of_group(self, group: str, ask: "AskOfGroups[T]") -> Answered[T]:
        return self.of_groups([group], ask)[group]

    def brokers(self) -> dict[int, Address]:
        """Those that take part. From now on they are asked, too, when those we began with do not answer."""
        answer = self.ask_anyone(METADATA, 12, MetadataRequest(topics=[], allow_auto_topic_creation=False))
        found = {each.node_id: Address(each.host, each.port) for each in answer.brokers}
        self._known = list(dict.fromkeys([*self._known, *found.values()]))
        return found

    @property
    def asked(self) -> Address:
        """Who has answered last."""
        return self._known[0]

    def of_brokers(
        self,
        addresses: Mapping[int, Address],
        ask: Callable[[int, Conversation], T],
        *,
        timeout_seconds: float = ANSWER_SECONDS,
        moment_seconds: float = SOON_SECONDS,
    ) -> dict[int, T | NoAnswer]:
        """What each of these brokers says of itself, asked side by side. Who lets the others wait has a moment."""
        return each_answer(addresses, timeout_seconds, ask, moment_seconds, self._silent)

    def seen(self, topics: Sequence[str] | None = None) -> ClusterSeen:
        """Its brokers, and the partitions of these topics or of all."""
        gone = self._gone()
        return self._first(lambda broker: placement_seen_by(broker, topics, gone))

    def topics(self) -> dict[str, bool]:
        """All of them, and whether the brokers keep it for themselves."""
        answer = self.ask_anyone(METADATA, 12, MetadataRequest(topics=None, allow_auto_topic_creation=False))
        return {each.name: bool(each.is_internal) for each in answer.topics}

    def leaders(self, topics: Iterable[str]) -> dict[TopicPartition, int]:
        """Of each partition of these topics; -1 where there is none. A topic that is not there has no partitions."""
        return {place: seen.leader for place, seen in self.partitions(topics).items()}

    def partitions(self, topics: Iterable[str], *, create: bool = False) -> dict[TopicPartition, PartitionSeen]:
        """All of these topics.

        With `create` the cluster may make it, if that is how it is set up, and it has partitions a moment later.
        """
        wanted = [MetadataRequestTopic(name=name) for name in sorted(set(topics))]
        if not wanted:
            return {}
        answer = self.ask_anyone(METADATA, 12, MetadataRequest(topics=wanted, allow_auto_topic_creation=create))
        return {
            TopicPartition(topic.name, each.partition_index): PartitionSeen(
                topic.name, each.partition_index, each.leader_id, tuple(each.replica_nodes), tuple(each.isr_nodes)
            )
            for topic in answer.topics
            for each in topic.partitions
        }

    def offsets_at(
        self, partitions: Collection[TopicPartition], time_ms: int, isolation: int = READ_UNCOMMITTED
    ) -> dict[TopicPartition, int]:
        """The first offset at that time or later, -1 where no record is so young; LATEST and EARLIEST are times, too.

        Partitions without a leader, or that are not there, are left out.
        """
        deadline = time.monotonic() + LEADER_SECONDS
        found: dict[TopicPartition, int] = {}
        waiting = set(partitions)
        while waiting:
            leaders = self.leaders(each.topic for each in waiting)
            waiting &= leaders.keys()
            addresses = self.brokers()
            for leader in sorted({leaders[each] for each in waiting} & addresses.keys()):
                its_own = sorted(each for each in waiting if leaders[each] == leader)
                said = _offsets_said_at(addresses[leader], its_own, time_ms, isolation)
                found |= {place: each.offset for place, each in said.items() if not each.code}
                waiting -= {place for place, each in said.items() if each.code not in LEADER_MOVING}
            if not waiting or time.monotonic() > deadline:
                break
            time.sleep(PAUSE_SECONDS)
        return found

    def _coordinators(self, groups: Sequence[str], problems: dict[str, str]) -> dict[Coordinator, list[str]]:
        answer = self.ask_anyone(FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=list(groups)))
        found: dict[Coordinator, list[str]] = {}
        for each in answer.coordinators:
            if each.error_code in COORDINATOR_MOVING:
                problems[each.key] = name_of(each.error_code)
            elif each.error_code:
                raise Refused(f"group {each.key!r}: {each.error_message or name_of(each.error_code)}")
            else:
                found.setdefault(Coordinator(each.node_id, Address(each.host, each.port)), []).append(each.key)
        return found

    def _ask_coordinator(
        self,
        coordinator: Coordinator,
        groups: Sequence[str],
        ask: "AskOfGroups[T]",
        answers: dict[str, Answered[T]],
        problems: dict[str, str],
    ) -> None:
        try:
            with Conversation(coordinator.address, ANSWER_SECONDS) as broker:
                said = ask(broker, groups)
        except NoAnswer as problem:
            problems |= dict.fromkeys(groups, str(problem))
            return
        for group in groups:
            if group not in said:
                problems[group] = f"{coordinator} does not say a word of it"
            elif said[group][0] in COORDINATOR_MOVING:
                problems[group] = name_of(said[group][0])
            else:
                answers[group] = Answered(coordinator, *said[group])

    def ask_anyone(self, api_key: int, version: int, request: object) -> Any:
        return self._first(lambda broker: broker.ask(api_key, version, request))

    def ask_once(self, api_key: int, version: int, request: object, timeout_seconds: float) -> Any:
        """What changes something, of one that has just answered: not of others as well because it takes its time."""
        self.brokers()
        try:
            with Conversation(self._known[0], timeout_seconds) as broker:
                return broker.ask(api_key, version, request)
        except NoAnswer as problem:
            if not isinstance(problem.__cause__, TimeoutError):
                # It did not wait for a decision: it went away, or says what nobody understands.
                raise
            raise Refused(f"{problem}; {NOT_DECIDED}") from problem

    def _first(self, question: Callable[[Conversation], T]) -> T:
        """The first that answers is asked first the next time."""
        address, answer = first_answer(self._known, ANSWER_SECONDS, question, self._note_silent)
        self._silent.discard(address)
        self._known.remove(address)
        self._known.insert(0, address)
        return answer

    def _note_silent(self, address: Address) -> None:
        self._silent.add(address)
        say_silent(address)


def cluster_of(options: argparse.Namespace) -> Cluster:
    bootstrap = bootstrap_of(options)
    return Cluster(
        addresses_of(bootstrap),
        undecided=partial(undecided, options.dir, bootstrap),
        gone=partial(gone, options.dir, bootstrap),
    )


def name_of(code: int) -> str:
    """Also of codes that are younger than we are."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return topics


def offsets_said(
    leader: Conversation, partitions: Sequence[TopicPartition], time_ms: int, isolation: int = READ_UNCOMMITTED
) -> dict[TopicPartition, OffsetSaid]:
    topics = [
        ListOffsetsTopic(name, [ListOffsetsPartition(index, timestamp=time_ms) for index in indexes])
        for name, indexes in by_topic(partitions).items()
    ]
    answer = leader.ask(LIST_OFFSETS, 7, ListOffsetsRequest(-1, isolation, topics))
    return {
        TopicPartition(topic.name, each.partition_index): OffsetSaid(each.error_code, each.offset)
        for topic in answer.topics
        for each in topic.partitions
    }


def _offsets_said_at(
    address: Address, partitions: Sequence[TopicPartition], time_ms: int, isolation: int
) -> dict[TopicPartition, OffsetSaid]:
    """A leader that does not answer is as good as none."""
    try:
        with Conversation(address, ANSWER_SECONDS) as leader:
            return offsets_said(leader, partitions, time_ms, isolation)
    except NoAnswer:
        return {}


def _no_coordinator(group: str, problem: str, seconds: float) -> str:
    return (
        f"group {group!r} has no coordinator that answers, after {seconds:.0f} s: {problem}; "
        "`klamm status` shows which brokers run"
    )
