"""Looking at a cluster again and again, without being felt: one kept connection a broker, some requests a look.

One broker tells of the cluster (Metadata, DescribeCluster, DescribeQuorum), every broker of its own logs and groups
(DescribeLogDirs, ListGroups, OffsetFetch), leaders of where their partitions begin and end (ListOffsets), and only of
those of which some copy has changed since. What consumers were given is on every broker's page of metrics. Who looks
waits in proportion to what a look costs: a cluster of many partitions is looked at less often.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

from klamm.errors import ErrorCode
from klamm.ids import Offset, TopicPartition
from klamm.local.asking import Address, Conversation, NoAnswer
from klamm.local.cluster import LocalCluster
from klamm.local.deciding import WhoRuns
from klamm.local.figures import Figures, figures_at
from klamm.local.look import Look, Offsets, Sizes, named, reached
from klamm.local.processes import State
from klamm.local.record import ClusterRecord, NodeRecord
from klamm.local.storage_seen import log_dirs, storage_in
from klamm.local.topology import brokers_gone
from klamm.local.view import ClusterSeen, PartitionSeen, UnknownTopic, controller_seen_by, placement_seen_by
from klamm.wire.messages.list_groups import ListGroupsRequest
from klamm.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from klamm.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

LIST_OFFSETS, OFFSET_FETCH, LIST_GROUPS = 2, 9, 16
LATEST, EARLIEST = -1, -2
ANSWER_SECONDS = 1.0
AGAIN_SECONDS = 2.0
"""Before a broker that did not answer is asked again: it stands still, and we would with it."""
LOOK_SECONDS = 0.5
SHARE = 20
"""We rest so many times as long as our own work took, which is about what it took the brokers together."""

T = TypeVar("T")


class Copies(NamedTuple):
    """What moves the end of a partition: who leads it, and who of the ISR tells of how large a copy. A record counts
    when its followers have it: the end moves also where the leader's log does not grow, as when they come back."""

    leader: int
    sizes: frozenset[tuple[int, int]]


class Looker:
    """`with Looker(cluster) as looker: look = looker.look()`"""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self._lines: dict[int, _Line] = {}
        self._told: dict[TopicPartition, tuple[Copies, Offset]] = {}
        """The end of each partition when it was last asked for."""
        self._settled: dict[TopicPartition, Copies] = {}
        """Of those whose end and copies were the same two times: a follower that had to say something has said it."""
        self._last: Look | None = None
        self._is_undecided = False
        """The quorum has lost its majority, and nobody has led it since: what brokers say is from before."""
        self._spent_seconds = 0.0

    def __enter__(self) -> "Looker":
        return self

    def __exit__(self, *_: object) -> None:
        for line in self._lines.values():
            line.close()

    @property
    def pause_seconds(self) -> float:
        """How long to wait before the next look."""
        return max(LOOK_SECONDS, SHARE * self._spent_seconds)

    def look(self) -> Look:
        began = time.process_time()
        record = self._cluster.record()
        states = self._cluster.states_of(record)
        known = {node.node_id: state for node, state in states}
        running = [node for node, state in states if node.is_broker and state == "running"]
        for node in running:
            line = self._lines.get(node.node_id)
            if line is None or line.node.process != node.process:
                # Also when it is another process than before: nobody waits for one that has just come back.
                if line is not None:
                    line.close()
                self._lines[node.node_id] = _Line(node, Address(record.host, node.port), record.metrics_place(node))
        # By their processes alone: of who was started elsewhere we could not tell when it ends.
        who = WhoRuns(tuple(states))
        self._is_undecided |= not who.can_decide
        gone = brokers_gone(who.nodes, who.running, is_undecided=self._is_undecided)
        seen = self._asked_anyone(running, gone, who_leads=who.can_decide)
        if who.can_decide and seen is not None and seen.controller in who.running:
            self._is_undecided = False
        before = self._last or Look(0.0, record.nodes, known)
        made = self._made(record, known, seen, before, [node.node_id for node in running])
        self._last = replace(made, stopped=self._cluster.stopped(states), was_taken_down=record.was_stopped)
        self._spent_seconds = time.process_time() - began
        return self._last

    def _asked_anyone(
        self, running: Iterable[NodeRecord], gone: Collection[int], *, who_leads: bool
    ) -> ClusterSeen | None:
        """Whoever answered best last time is asked first."""
        for node in sorted(running, key=lambda node: self._lines[node.node_id].not_before_seconds):
            line = self._lines[node.node_id]
            try:
                seen = placement_seen_by(line.opened(), gone=gone)
            except (NoAnswer, UnknownTopic):
                line.spoilt()
                continue
            controller, epoch = (line.controller() if who_leads else None) or (None, None)
            return replace(seen, controller=controller, quorum_epoch=epoch)
        return None

    def _made(
        self,
        record: ClusterRecord,
        states: Mapping[int, State],
        seen: ClusterSeen | None,
        before: Look,
        running: list[int],
    ) -> Look:
        now = time.monotonic()
        if seen is None:
            return replace(before, at_seconds=now, nodes=record.nodes, states=states, is_answered=False)
        partitions = {named(each): each for each in seen.partitions}
        sizes: dict[int, Sizes] = dict(before.sizes)
        committed, figures = dict[str, Offsets](), dict(before.figures)
        storage = {broker_id: seen for broker_id, seen in before.storage.items() if broker_id in running}
        is_told_all = all(node.node_id in running for node in record.brokers)
        telling = set[int]()
        for broker_id in running:
            line = self._lines[broker_id]
            if (directories := line.asked(log_dirs, otherwise=None)) is not None:
                sizes[broker_id], storage[broker_id] = _sizes(directories), storage_in(directories)
                telling.add(broker_id)
            groups = line.asked(_committed, otherwise=None)
            committed |= groups or {}
            is_told_all = is_told_all and groups is not None
            if (told := line.figures()) is not None:
                figures[broker_id] = told
        moved_starts, moved_ends = self._moved(seen.partitions, sizes, telling)
        starts = {place: start for place, start in before.starts.items() if place in partitions} | moved_starts
        ends = {place: end for place, end in before.ends.items() if place in partitions} | moved_ends
        return Look(
            at_seconds=now,
            nodes=record.nodes,
            states=states,
            is_answered=True,
            controller=before.controller if seen.controller is None else seen.controller,
            quorum_epoch=before.quorum_epoch if seen.quorum_epoch is None else seen.quorum_epoch,
            live=frozenset(each.broker_id for each in seen.brokers if not each.is_fenced),
            partitions=partitions,
            sizes=sizes,
            storage=storage,
            reached=_reached(partitions, sizes, starts, ends, before, set(running)),
            ends=ends,
            starts=starts,
            # Groups that nobody tells of are deleted, unless they belong to who is silent.
            committed=committed if is_told_all else {**before.committed, **committed},
            figures=figures,
        )

    def _moved(
        self, partitions: Iterable[PartitionSeen], sizes: Mapping[int, Sizes], telling: set[int]
    ) -> tuple[dict[TopicPartition, Offset], dict[TopicPartition, Offset]]:
        """The starts and ends of those partitions of which a copy has changed since they were asked for."""
        wanted: dict[int, list[TopicPartition]] = {}
        copies = {named(each): _copies(each, sizes, telling) for each in partitions}
        for each in partitions:
            place = named(each)
            if each.leader in self._lines and (each.is_under_replicated or self._settled.get(place) != copies[place]):
                wanted.setdefault(each.leader, []).append(place)
        starts, ends = dict[TopicPartition, Offset](), dict[TopicPartition, Offset]()
        nothing = dict[TopicPartition, Offset]()
        for leader, places in wanted.items():
            line = self._lines[leader]
            starts |= line.asked(partial(_offsets, partitions=places, at=EARLIEST), otherwise=nothing)
            ends |= line.asked(partial(_offsets, partitions=places, at=LATEST), otherwise=nothing)
        for place, end in ends.items():
            now = (copies[place], end)
            if self._told.get(place) == now:
                self._settled[place] = copies[place]
            else:
                self._settled.pop(place, None)
            self._told[place] = now
        return starts, ends


class _Line:
    """A connection to one process of a broker, opened when it is needed and again when it broke."""

    def __init__(self, node: NodeRecord, address: Address, metrics: str | None) -> None:
        self.node = node
        self.not_before_seconds = 0.0
        self._address = address
        self._metrics, self._metrics_not_before_seconds = metrics, 0.0
        self._controller_not_before_seconds = 0.0
        self._conversation: Conversation | None = None

    def opened(self) -> Conversation:
        if time.monotonic() < self.not_before_seconds:
            raise NoAnswer(f"{self._address} did not answer a moment ago")
        if self._conversation is None:
            self._conversation = Conversation(self._address, ANSWER_SECONDS)
        self._conversation.be_patient_for(ANSWER_SECONDS)
        return self._conversation

    def asked(self, question: Callable[[Conversation], T], otherwise: T) -> T:
        try:
            return question(self.opened())
        except NoAnswer:
            self.spoilt()
            return otherwise

    def controller(self) -> tuple[int, int] | None:
        """Who leads the quorum, and its epoch. While nobody does, the question waits; the broker is well."""
        if time.monotonic() < self._controller_not_before_seconds:
            return None
        found = controller_seen_by(self.opened())
        if found is None:
            self._controller_not_before_seconds = time.monotonic() + AGAIN_SECONDS
            self.close()
        return found

    def figures(self) -> Figures | None:
        """From its page of metrics, if it serves one: somebody else may have the port, and the broker is well."""
        now = time.monotonic()
        if self._metrics is None or now < max(self.not_before_seconds, self._metrics_not_before_seconds):
            return None
        try:
            return figures_at(self._metrics, ANSWER_SECONDS)
        except NoAnswer:
            self._metrics_not_before_seconds = now + AGAIN_SECONDS
            return None

    def spoilt(self) -> None:
        """An answer that is late would be taken for that to the next question."""
        if time.monotonic() >= self.not_before_seconds:
            self.not_before_seconds = time.monotonic() + AGAIN_SECONDS
        self.close()

    def close(self) -> None:
        if self._conversation is not None:
            self._conversation.__exit__()
            self._conversation = None


def _copies(partition: PartitionSeen, sizes: Mapping[int, Sizes], telling: set[int]) -> Copies:
    place, told = named(partition), telling.intersection(partition.in_sync)
    return Copies(partition.leader, frozenset((each, sizes[each].get(place, 0)) for each in told))


def _sizes(answer: Any) -> Sizes:
    return {
        TopicPartition(topic.name, each.partition_index): each.partition_size
        for directory in answer.results
        for topic in directory.topics
        for each in topic.partitions
    }


def _offsets(broker: Conversation, partitions: Iterable[TopicPartition], at: int) -> dict[TopicPartition, Offset]:
    topics: dict[str, ListOffsetsTopic] = {}
    for name, index in partitions:
        topic = topics.setdefault(name, ListOffsetsTopic(name, []))
        topic.partitions.append(ListOffsetsPartition(index, timestamp=at))
    answer = broker.ask(LIST_OFFSETS, 7, ListOffsetsRequest(replica_id=-1, topics=list(topics.values())))
    return {
        TopicPartition(topic.name, each.partition_index): each.offset
        for topic in answer.topics
        for each in topic.partitions
        if not each.error_code
    }


def _committed(broker: Conversation) -> dict[str, Offsets] | None:
    """What the groups that this broker coordinates have read, as far as they say. None while it does not know."""
    listed = broker.ask(LIST_GROUPS, 4, ListGroupsRequest())
    if listed.error_code:
        return None
    groups = [OffsetFetchRequestGroup(each.group_id, topics=None) for each in listed.groups]
    if not groups:
        return {}
    answer = broker.ask(OFFSET_FETCH, 8, OffsetFetchRequest(groups=groups))
    return {
        group.group_id: {
            TopicPartition(topic.name, each.partition_index): each.committed_offset
            for topic in group.topics
            for each in topic.partitions
            if not each.error_code and each.committed_offset >= 0
        }
        for group in answer.groups
        if group.error_code == ErrorCode.NONE
    }


def _reached(
    partitions: Mapping[TopicPartition, PartitionSeen],
    sizes: Mapping[int, Sizes],
    starts: Offsets,
    ends: Offsets,
    before: Look,
    running: set[int],
) -> Mapping[int, Offsets]:
    """Of who runs, by the size of its logs; of who does not, as it was."""
    found: dict[int, dict[TopicPartition, Offset]] = {}
    for place, each in partitions.items():
        leaders_size = sizes.get(each.leader, {}).get(place, 0)
        start, end = starts.get(place, 0), ends.get(place, 0)
        for replica in each.replicas:
            last = before.reached.get(replica, {}).get(place)
            if replica in running and place in sizes.get(replica, {}):
                size = sizes[replica][place]
                found.setdefault(replica, {})[place] = reached(size, leaders_size, start, end)
            elif last is not None:
                found.setdefault(replica, {})[place] = last
    return found
