"""One run: a cluster is brought up, clients begin, things go wrong for a while, all is mended, and the verdict follows.

Whatever happens, also an interrupt, the processes are ended, disks unmounted and namespaces removed. If a promise was
broken the directories stay, with what every node said and what happened to it.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from klamm.chaos.abilities import Abilities
from klamm.chaos.clients import QUIET, Acknowledgements, Consuming, Producing
from klamm.chaos.converging import NotBack, different_replicas, out_of_sync, stamps_of, wait_until
from klamm.chaos.disks import Disks
from klamm.chaos.nemesis import Nemesis
from klamm.chaos.network import Network
from klamm.chaos.places import Hosts, Loopback, bootstrap_of
from klamm.chaos.plan import REPLICAS, SETTINGS, Plan, Topic
from klamm.chaos.problems import ChaosError
from klamm.chaos.processes import Nodes
from klamm.chaos.scratch import NETWORK_PREFIX, Scratch
from klamm.chaos.verdict import Broken, Place, Reader, Sender, broken_promises, copies_of_plain

UP_SECONDS = 60.0
BACK_SECONDS = 60.0
"""So long after everything was mended, all has to be back."""
ADMIN_SECONDS = 20.0
THROUGH = 2
"""Consumers that read from the first moment on."""
FULL = "No space left"
"""What a node may say whose disk is full."""


@dataclass(slots=True)
class Outcome:
    plan: Plan
    where: str
    faults: Counter[str] = field(default_factory=Counter)
    sent: int = 0
    acknowledged: int = 0
    read: int = 0
    doubled_plain: int = 0
    """Copies too many of producers that are not idempotent. Allowed."""
    gave_up: Counter[str] = field(default_factory=Counter)
    """Records that the client gave up, by why."""
    longest_seconds: float = 0.0
    """The longest that one partition acknowledged nothing."""
    back_seconds: float = 0.0
    """From mended to all replicas in sync."""
    broken: list[Broken] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    story: list[str] = field(default_factory=list)
    directory: Path | None = None
    """Where it all lies, if it was kept."""


def run_once(plan: Plan, abilities: Abilities, keep: bool, show: Callable[[str], None]) -> Outcome:
    outcome = Outcome(plan, "namespaces" if abilities.has_network else "loopback")
    with ExitStack() as stack:
        scratch = stack.enter_context(Scratch(f"seed{plan.seed}"))
        network = stack.enter_context(Network(plan.brokers, NETWORK_PREFIX)) if abilities.has_network else None
        places = Hosts(network, plan.brokers) if network else stack.enter_context(Loopback(plan.brokers))
        nodes = Nodes(scratch.directory, places, SETTINGS)
        disks = None
        if abilities.has_disks:
            disks = stack.enter_context(Disks(map(nodes.directory_of, nodes.numbers)))
        run = _Run(plan, outcome, nodes, places, network, disks, show)
        stack.callback(run.end)
        try:
            run.run()
        except BaseException as problem:
            run.tell(f"the run ended: {problem!r}")
            if not isinstance(problem, KeyboardInterrupt):
                scratch.is_kept = True
                show(f"the nodes' directories and logs stay in {scratch.directory}")
            raise
        finally:
            run.end()
            scratch.is_kept = scratch.is_kept or keep or bool(outcome.broken)
            if scratch.is_kept:
                outcome.directory = scratch.directory
                (scratch.directory / "story.txt").write_text("\n".join(outcome.story) + "\n", encoding="utf-8")
                if disks is not None:
                    disks.keep()
    return outcome


class _Run:
    def __init__(
        self,
        plan: Plan,
        outcome: Outcome,
        nodes: Nodes,
        places: Hosts | Loopback,
        network: Network | None,
        disks: Disks | None,
        show: Callable[[str], None],
    ) -> None:
        self._plan, self._outcome, self._nodes, self._show = plan, outcome, nodes, show
        self._addresses = places.addresses
        self._bootstrap = bootstrap_of(places.addresses)
        self._topics = [topic.name for topic in plan.topics]
        self._nemesis = Nemesis(nodes, self._addresses, self._topics, network, disks, self.tell)
        self._acknowledgements = Acknowledgements()
        self._producing: list[Producing] = []
        self._consuming: list[Consuming] = []
        self._directories = [nodes.directory_of(number) / "data" for number in nodes.numbers]
        self._began = time.monotonic()

    def run(self) -> None:
        self._up()
        self.tell("clients begin")
        for planned in self._plan.producers:
            sender = Sender(planned.name, planned.is_idempotent)
            producing = Producing(
                sender, self._bootstrap, self._plan.places, planned.per_second, planned.settings, self._acknowledgements
            )
            self._producing.append(producing.start())
        for number in range(THROUGH):
            self._begin_reader(f"through-{number}")
        late = (self._plan.late_reader_at, lambda: self._begin_reader("late"))
        self._nemesis.run(self._plan.faults, self._plan.seconds, [late])
        self.tell("all is mended")
        self._nemesis.heal()
        problem = self._come_back()
        self._stop_clients()
        self._judge(problem)

    def end(self) -> None:
        """Nobody runs any more."""
        self._stop_clients()
        self._nodes.kill(self._nodes.numbers)

    def tell(self, text: str) -> None:
        line = f"{time.monotonic() - self._began:8.3f}  {text}"
        self._outcome.story.append(line)
        self._show(line)

    # Up.

    def _up(self) -> None:
        self._nodes.start(self._nodes.numbers)
        try:
            wait_until(self._not_up, time.monotonic() + UP_SECONDS)
            self._create(self._plan.topics)
            wait_until(lambda: out_of_sync(self._addresses, self._topics), time.monotonic() + UP_SECONDS)
        except NotBack as problem:
            raise ChaosError(f"the cluster did not come up: {problem}") from problem

    def _not_up(self) -> str | None:
        self._nodes.note_ends()
        if self._nodes.ended_by_themselves:
            raise ChaosError("; ".join(self._nodes.ended_by_themselves))
        return out_of_sync(self._addresses, [])

    def _create(self, topics: Sequence[Topic]) -> None:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient
        from confluent_kafka.cimpl import NewTopic

        admin = AdminClient({"bootstrap.servers": self._bootstrap, **QUIET})
        new = [NewTopic(each.name, each.partitions, REPLICAS, config=dict(each.settings)) for each in topics]
        try:
            for created in admin.create_topics(new, request_timeout=ADMIN_SECONDS).values():
                created.result(ADMIN_SECONDS)
        except KafkaException as problem:
            raise ChaosError(f"topics could not be created: {problem}") from problem

    def _begin_reader(self, name: str) -> None:
        self.tell(f"reader {name} begins")
        settings = {"reconnect.backoff.max.ms": 1_000, "socket.timeout.ms": 10_000}
        consuming = Consuming(Reader(name), self._bootstrap, self._plan.places, settings)
        self._consuming.append(consuming.start())

    # Back.

    def _come_back(self) -> str | None:
        """What did not come back in time, or None."""
        mended = time.monotonic()
        deadline = mended + BACK_SECONDS
        try:
            wait_until(lambda: out_of_sync(self._addresses, self._topics), deadline)
            in_sync = time.monotonic()
            self._outcome.back_seconds = in_sync - mended
            self.tell(f"all replicas are in sync, {in_sync - mended:.1f} s after")
            wait_until(lambda: self._silent_since(in_sync), deadline)
            for producing in self._producing:
                producing.ask_to_stop(max(1.0, deadline - time.monotonic()))
            for producing in self._producing:
                producing.wait_stopped()
            self.tell("every record has its answer")
            self._wait_read(deadline)
            wait_until(lambda: different_replicas(self._directories, self._addresses, self._topics), deadline)
        except NotBack as problem:
            self.tell(f"not back after {BACK_SECONDS:.0f} s: {problem}")
            return str(problem)
        return None

    def _silent_since(self, moment: float) -> str | None:
        is_heard = self._acknowledgements.have_come_since(moment, self._plan.places)
        return None if is_heard else "new writes are not acknowledged in every partition"

    def _wait_read(self, deadline: float) -> None:
        self._begin_reader("after")
        ends = self._ends(deadline)
        self.tell(f"there are {sum(ends.values())} records")
        problem = None
        for consuming in self._consuming:
            try:
                wait_until(lambda each=consuming: each.missing(ends) or None, deadline)  # type: ignore[misc]
                consuming.reader.reached_end = True
            except NotBack as lacks:
                problem = NotBack(f"reader {consuming.reader.name} is not at the end: {lacks}")
        if problem is not None:
            raise problem

    def _ends(self, deadline: float) -> dict[Place, int]:
        """Up to where consumers may read. Nobody writes any more."""
        from confluent_kafka import Consumer, KafkaException, TopicPartition

        asking = Consumer({"bootstrap.servers": self._bootstrap, "group.id": "none-is-used", **QUIET})
        ends: dict[Place, int] = {}

        def ask() -> str | None:
            try:
                for place in self._plan.places:
                    ends[place] = asking.get_watermark_offsets(TopicPartition(*place), timeout=5)[1]
            except KafkaException as problem:
                return f"the ends are not told: {problem}"
            return None

        try:
            wait_until(ask, deadline)
        finally:
            asking.close()
        return ends

    def _stop_clients(self) -> None:
        for producing in self._producing:
            producing.ask_to_stop(0.0)
        for consuming in self._consuming:
            consuming.ask_to_stop()
        for producing in self._producing:
            producing.wait_stopped()
        for consuming in self._consuming:
            consuming.wait_stopped()

    # The verdict.

    def _judge(self, not_back: str | None) -> None:
        outcome, nodes = self._outcome, self._nodes
        nodes.note_ends()
        senders = [each.sender for each in self._producing]
        readers = [each.reader for each in self._consuming]
        stamps = stamps_of(self._directories, self._plan.places)
        outcome.broken = broken_promises(senders, readers, stamps)
        if not_back is not None:
            outcome.broken.append(Broken("not back", 1, (not_back,)))
        unanswered = {each.sender.name: each.unanswered for each in self._producing if each.unanswered}
        if unanswered:
            texts = tuple(f"{count} records of {name}" for name, count in unanswered.items())
            outcome.broken.append(Broken("unanswered", len(texts), texts))
        outcome.faults = self._nemesis.happened
        outcome.sent = sum(len(values) for sender in senders for values in sender.sent.values())
        outcome.acknowledged = sum(len(told) for sender in senders for told in sender.acknowledged.values())
        outcome.read = sum(len(reader.reads) for reader in readers)
        outcome.doubled_plain = copies_of_plain(senders, readers)
        outcome.gave_up = sum((each.errors for each in self._producing), Counter())
        outcome.longest_seconds = self._acknowledgements.longest_seconds
        outcome.complaints = [*nodes.ended_by_themselves, *filter(self._is_news, nodes.complaints())]
        for broken in outcome.broken:
            self.tell(f"BROKEN {broken}")
        for complaint in outcome.complaints:
            self.tell(f"complaint: {complaint}")

    def _is_news(self, complaint: str) -> bool:
        was_full = any(complaint.startswith(f"node {number}:") for number in self._nemesis.filled)
        return not (was_full and FULL in complaint)
