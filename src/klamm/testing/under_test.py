"""A cluster that a test uses and breaks: what every kind of it can be asked.

A fault takes effect before the call returns. What the cluster makes of it takes its time: `wait_for_leader` and
`wait_for_in_sync` wait until every broker that runs knows of it. One alone is not enough: the leader itself may be the
last to hear that a replica is gone, and would answer a producer differently.
"""

import sys
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from numbers import Real

from klamm.local.asking import Address, NoAnswer
from klamm.local.processes import State
from klamm.local.record import ClusterRecord
from klamm.local.topology import has_majority
from klamm.local.view import PartitionSeen, live_brokers
from klamm.testing import topics
from klamm.testing.faults import Links
from klamm.testing.problems import NotInTime, NotPossible

__tracebackhide__ = True
"""For pytest: the report of a test that fails ends in the test's own line."""

WAIT_SECONDS = 30.0
LOOK_AGAIN_SECONDS = 0.01
ANSWER_SECONDS = 2.0


class ClusterUnderTest(ABC):
    """What `klamm_embedded` and `klamm_cluster` give to a test."""

    def __init__(self, record: ClusterRecord) -> None:
        self._record = record
        self._links = Links({node.node_id: (record.host, node.port) for node in record.nodes})
        self._joining: set[int] = set()
        """Started, and not yet known: without a majority nobody gets to know them."""

    # What is there.

    @property
    def bootstrap_servers(self) -> str:
        """As clients want it: `127.0.0.1:40001,127.0.0.1:40002`."""
        return self._record.bootstrap_servers

    @property
    def brokers(self) -> list[int]:
        """The ids of all brokers, running or not."""
        return [node.node_id for node in self._record.brokers]

    @property
    def running(self) -> list[int]:
        """The ids of those that run, and are not paused."""
        return [broker for broker, state in self.states().items() if state == "running"]

    @abstractmethod
    def states(self) -> dict[int, State]:
        """Every broker: running, paused or dead."""

    def log(self, broker: int, lines: int) -> list[str]:
        """The last lines of what a broker had to say."""
        self._check_known(broker)
        if not isinstance(lines, int) or lines < 0:
            raise NotPossible(f"lines is a number from 0 upwards, not {lines!r}")
        return list(deque(self._said(broker), min(lines, sys.maxsize)))

    # Topics.

    def create_topic(self, name: str, partitions: int = 1, replication: int | None = None, **configs: object) -> str:
        """Make a topic, and return its name when every running broker knows it with its leaders. Three replicas, or
        as many as there are brokers, unless told otherwise. Configs with underscores: `min_insync_replicas=2`."""
        if replication is None:
            replication = self._record.usual_replication
        topics.create(self._addresses(), name, partitions, replication, configs)
        self._wait(lambda: all(self._is_led_at(at, name) for at in self._addresses()), f"topic {name} has leaders")
        return name

    def leader_of(self, topic: str, partition: int = 0) -> int | None:
        """Who leads a partition; None while nobody does."""
        return _leader(self._found(topic, partition))

    def in_sync(self, topic: str, partition: int = 0) -> list[int]:
        """The in-sync replicas of a partition."""
        found = self._found(topic, partition)
        return [] if found is None else sorted(found.in_sync)

    def wait_for_leader(
        self, topic: str, partition: int = 0, *, other_than: int | None = None, timeout: float = WAIT_SECONDS
    ) -> int:
        """Until somebody leads a partition, or somebody else; who."""
        leaders: set[int | None] = set()

        def is_led() -> bool:
            leaders.clear()
            leaders.update(_leader(each) for each in self._seen_everywhere(topic, partition))
            return len(leaders) == 1 and not leaders & {None, other_than}

        what = f"{topic}-{partition} has a leader" + ("" if other_than is None else f" other than {other_than}")
        self._wait_for(topic, partition, is_led, what, timeout)
        (leader,) = leaders
        assert leader is not None
        return leader

    def wait_for_in_sync(
        self,
        topic: str,
        partition: int = 0,
        brokers: Collection[int] | None = None,
        *,
        timeout: float = WAIT_SECONDS,
    ) -> None:
        """Until exactly these are the in-sync replicas of a partition; all replicas, unless told otherwise."""
        self._check_known(*(brokers or ()))

        def is_as_wanted(found: PartitionSeen | None) -> bool:
            if found is None:
                return False
            wanted = set(found.replicas if brokers is None else brokers)
            # The others may not have noticed yet what was just done to a broker.
            return set(found.in_sync) == wanted and wanted <= set(self.running)

        def are_in_sync() -> bool:
            return all(is_as_wanted(found) for found in self._seen_everywhere(topic, partition))

        whom = "all replicas" if brokers is None else f"brokers {', '.join(map(str, sorted(brokers)))}"
        what = f"{whom} of {topic}-{partition} are in sync"
        self._wait_for(topic, partition, are_in_sync, what, timeout)

    # Faults of brokers.

    def kill(self, broker: int) -> None:
        """End it without a goodbye, as kill -9 does."""
        self._check_known(broker)
        self._kill(broker)

    def stop(self, broker: int) -> None:
        """End it cleanly: it hands over what it leads first."""
        self._check_known(broker)
        self._stop(broker)

    def start(self, *brokers: int) -> None:
        """Start those that were killed or stopped, together; all of them unless some are named. Returns when they serve
        clients and those they reach know them, if a majority of the quorum is there."""
        dead = [broker for broker, state in self.states().items() if state == "dead"]
        self._check_can_join(*(brokers or dead))
        starting = [broker for broker in dead if broker in brokers or not brokers]
        if starting:
            self._start(starting)
        self._joining |= set(starting)
        if self._can_decide(without=self._down()):
            self._wait(self._are_known, f"all brokers that they reach know {_listed(sorted(self._joining))}")
            self._joining.clear()

    def restart(self, broker: int) -> None:
        """Stop it cleanly and start it again."""
        self._check_can_join(broker)
        self.stop(broker)
        self.start(broker)

    def pause(self, broker: int) -> None:
        """Let it stand still: connected, and deaf and dumb."""
        self._check_known(broker)
        if self.states()[broker] == "dead":
            raise NotPossible(f"broker {broker} is dead and cannot be paused; start() it first")
        self._pause(broker)

    def resume(self, broker: int) -> None:
        """Let one that was paused go on."""
        self._check_known(broker)
        if self.states()[broker] == "dead":
            raise NotPossible(f"broker {broker} is dead and cannot go on; start() it")
        self._resume(broker)

    # Faults of links. Clients are not touched: they reach every broker.

    def partition(self, *brokers: int) -> None:
        """Cut these off from all others, silently and in both directions."""
        self._check_known(*brokers)
        self._links.cut_off(brokers)
        self._apply_links()

    def slow(self, broker: int, delay_ms: float) -> None:
        """All that other brokers send to this one, and it to them, arrives so much later."""
        self._check_known(broker)
        if not isinstance(delay_ms, Real) or not 0 <= delay_ms <= sys.float_info.max:
            raise NotPossible(f"delay_ms is a number of milliseconds from 0 upwards, not {delay_ms!r}")
        self._links.slow_down(broker, float(delay_ms))
        self._apply_links()

    def heal(self, *brokers: int) -> None:
        """Make the links of these brokers well again, of all unless some are named. What was under way arrives."""
        self._check_known(*brokers)
        self._links.heal(brokers or [node.node_id for node in self._record.nodes])
        self._apply_links()

    def restore(self) -> None:
        """Make everything well again: links healed, paused brokers resumed, dead ones started."""
        if not self._links.are_well:
            self.heal()
        for broker in [broker for broker, state in self.states().items() if state == "paused"]:
            self.resume(broker)
        self.start()

    # How each kind does it.

    @abstractmethod
    def _said(self, broker: int) -> Iterator[str]:
        """The lines that are kept of what it had to say."""

    @abstractmethod
    def _kill(self, broker: int) -> None: ...
    @abstractmethod
    def _stop(self, broker: int) -> None: ...
    @abstractmethod
    def _start(self, brokers: Sequence[int]) -> None: ...
    @abstractmethod
    def _pause(self, broker: int) -> None: ...
    @abstractmethod
    def _resume(self, broker: int) -> None: ...
    @abstractmethod
    def _apply_links(self) -> None:
        """Every node that runs does from now on what the links say."""

    # Helpers.

    def _check_known(self, *brokers: int) -> None:
        unknown = [broker for broker in brokers if broker not in self.brokers]
        if unknown:
            known = ", ".join(map(str, self.brokers))
            raise NotPossible(f"there is no broker {unknown[0]!r} in this cluster; its brokers are {known}")

    def _check_can_join(self, *brokers: int) -> None:
        """Where links are cut, those that each of them reaches have to be enough, with it, for the quorum to decide."""
        self._check_known(*brokers)
        down = self._down() - set(brokers)
        for broker in brokers:
            cut = self._links.unreachable_from(broker)
            if cut and not self._can_decide(without=cut | down):
                raise NotPossible(f"broker {broker} is cut off and could not join the others; heal() the links first")

    def _can_decide(self, without: set[int]) -> bool:
        """Whether the quorum has a majority without these."""
        return has_majority(self._record.nodes, {node.node_id for node in self._record.nodes} - without)

    def _down(self) -> set[int]:
        return set(self.brokers) - set(self.running)

    def _addresses(self) -> list[Address]:
        """Of those that run, on the larger side of a cut first."""
        cut = {broker: len(self._links.unreachable_from(broker)) for broker in self.running}
        fewest = min(cut.values(), default=0)
        return [self._address(broker) for broker in cut if cut[broker] == fewest]

    def _address(self, broker: int) -> Address:
        return Address(self._record.host, self._record.node(broker).port)

    def _found(self, topic: str, partition: int) -> PartitionSeen | None:
        """As the first sees it who has heard of it; None if nobody has yet. NotPossible if there is none."""
        addresses = self._addresses()
        for address in addresses:
            found = self._partition_at(address, topic, partition)
            if found is not None:
                return found
        why = topics.why_not_there(addresses, topic, partition)
        if why is not None:
            raise NotPossible(why)
        return None

    def _seen_everywhere(self, topic: str, partition: int) -> list[PartitionSeen | None]:
        """As each of them sees it, and at least one."""
        return [self._partition_at(address, topic, partition) for address in self._addresses()] or [None]

    def _partition_at(self, address: Address, topic: str, partition: int) -> PartitionSeen | None:
        seen = topics.seen_by(address, [topic])
        found = () if seen is None else seen.partitions
        return next((each for each in found if each.partition == partition), None)

    def _is_led_at(self, address: Address, topic: str) -> bool:
        seen = topics.seen_by(address, [topic])
        return seen is not None and not any(each.is_offline for each in seen.partitions)

    def _are_known(self) -> bool:
        return all(self._is_known_where_it_reaches(broker) for broker in self._joining & set(self.running))

    def _is_known_where_it_reaches(self, broker: int) -> bool:
        reached = [other for other in self.running if other not in self._links.unreachable_from(broker)]
        try:
            return all(broker in live_brokers(self._address(other), ANSWER_SECONDS) for other in reached)
        except NoAnswer:
            return False

    def _wait_for(self, topic: str, partition: int, holds: Callable[[], bool], what: str, timeout: float) -> None:
        """It need not be there yet, a producer may make it. If it never was, its name may be misspelt."""
        try:
            self._wait(holds, what, timeout)
        except NotInTime as late:
            try:
                self._found(topic, partition)
            except NotPossible as why:
                raise NotInTime(f"{why}; {late}") from None
            raise

    def _wait(self, holds: Callable[[], bool], what: str, timeout: float = WAIT_SECONDS) -> None:
        deadline = time.monotonic() + timeout
        while not holds():
            if time.monotonic() > deadline:
                raise NotInTime(f"not within {timeout:g} s: {what} ({self!r})")
            time.sleep(LOOK_AGAIN_SECONDS)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.bootstrap_servers} running={_listed(self.running)}>"


def _leader(found: PartitionSeen | None) -> int | None:
    return None if found is None or found.is_offline else found.leader


def _listed(brokers: Sequence[int]) -> str:
    return ",".join(map(str, brokers)) or "nobody"
