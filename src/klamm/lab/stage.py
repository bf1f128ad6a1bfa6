"""The stage of an experiment: a cluster of processes that is there for it alone, and what is done to its nodes.

Free ports, a directory of its own below the system's temporary one. However the experiment ends, the nodes are killed
and the directory is removed; only `keep` and an end without interruption leave them, all nodes running again.
"""

import contextlib
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from klamm.lab.leftovers import PREFIX, remove
from klamm.lab.problems import LabError
from klamm.local.agreeing import HOST, Wish
from klamm.local.asking import Address, NoAnswer
from klamm.local.cluster import LocalCluster
from klamm.local.owned import disown, own
from klamm.local.ports import HeldPorts, ports_from
from klamm.local.problems import LocalError
from klamm.local.record import ClusterRecord
from klamm.local.topology import planned
from klamm.local.view import ClusterSeen, PartitionSeen, UnknownTopic, cluster_seen
from klamm.records.batch import batches

ASK_SECONDS = 2.0
PATIENCE_SECONDS = 20.0
LOOK_AGAIN_SECONDS = 0.02
TRIES = 50


class Layout(NamedTuple):
    brokers: int
    racks: int = 1
    settings: Mapping[str, str] = {}


class Told(NamedTuple):
    """Something that was done or seen, and how many seconds after the cluster was up."""

    seconds: float
    text: str


class Stage:
    """`with Stage("acks", layout, keep=False, listen=print) as stage: ...`"""

    def __init__(self, name: str, layout: Layout, keep: bool, listen: Callable[[Told], None]) -> None:
        self._name, self._layout, self._keep, self._listen = name, layout, keep, listen
        self._began = time.monotonic()
        self.is_kept = False

    def __enter__(self) -> "Stage":
        self.directory = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{self._name}-"))
        own(self.directory)
        self._cluster = LocalCluster(self.directory)
        try:
            self._ports = _held_ports(len(planned(self._layout.brokers, self._layout.racks)))
            wish = Wish(self._layout.brokers, self._layout.racks, self._ports.ports[0], self._layout.settings)
            self.record: ClusterRecord = self._cluster.up(wish)
            took, self._began = time.monotonic() - self._began, time.monotonic()
            self.tell(f"{len(self.record.brokers)} brokers are up; starting them took {took:.1f} s")
        except BaseException:
            remove(self._cluster)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        try:
            if self._keep and (kind is None or issubclass(kind, LabError)):
                self._leave()
            else:
                remove(self._cluster)
        finally:
            self._ports.let_go()

    # The story.

    def seconds(self) -> float:
        """Since the cluster was up."""
        return time.monotonic() - self._began

    def tell(self, text: str) -> Told:
        told = Told(self.seconds(), text)
        self._listen(told)
        return told

    # What is done to nodes.

    def kill(self, *nodes: int) -> None:
        self._cluster.kill(nodes)

    def start(self, *nodes: int) -> None:
        if not self._cluster.start(nodes):
            raise LabError(f"{nodes} were started and serve nobody: the quorum has no majority")

    def pause(self, *nodes: int) -> None:
        self._cluster.pause(nodes)

    def resume(self, *nodes: int) -> None:
        self._cluster.resume(nodes)

    # Topics.

    def bootstrap(self, brokers: Collection[int] | None = None) -> str:
        """Of these brokers, or of all. A client that begins with a broker that is paused later may wait for it."""
        nodes = [node for node in self.record.brokers if brokers is None or node.node_id in brokers]
        return ",".join(f"{self.record.host}:{node.port}" for node in nodes)

    def create(
        self,
        topic: str,
        *,
        replicas: Sequence[int] | None = None,
        partitions: int = 1,
        replication: int = 3,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """One partition on just these brokers, the first of which leads; or so many, placed by the cluster."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

        if replicas is None:
            new = NewTopic(topic, partitions, replication, config=dict(config or {}))
        else:
            new = NewTopic(topic, 1, replica_assignment=[list(replicas)], config=dict(config or {}))
        admin = AdminClient({"bootstrap.servers": self.record.bootstrap_servers, "log_level": 0})
        try:
            admin.create_topics([new], request_timeout=PATIENCE_SECONDS)[topic].result(PATIENCE_SECONDS)
        except KafkaException as problem:
            raise LabError(f"the topic {topic} could not be created: {problem.args[0].str()}") from problem
        for address in self._running():
            self._wait_known(address, topic)

    def _wait_known(self, address: Address, topic: str) -> None:
        def is_known() -> bool:
            partitions = _partitions([address], topic)
            return bool(partitions) and not any(each.is_offline for each in partitions)

        wait_until(is_known, f"{address} knows the topic {topic}")

    # What is seen.

    def seen(self) -> ClusterSeen:
        return cluster_seen(self._running(), ASK_SECONDS)

    def controller(self) -> int:
        """The node that decides on metadata; there is one soon after a start."""
        wait_until(lambda: self.seen().controller is not None, "the cluster has a controller")
        found = self.seen().controller
        assert found is not None
        return found

    def places(self, topic: str) -> tuple[PartitionSeen, ...]:
        """All partitions of a topic, as the first broker sees them that answers; none if nobody does just now."""
        return _partitions(self._running(), topic)

    def wait_places(
        self, topic: str, holds: Callable[[PartitionSeen], bool], what: str, seconds: float = PATIENCE_SECONDS
    ) -> tuple[PartitionSeen, ...]:
        """Until this is so of every partition; how they stand then."""
        found: list[tuple[PartitionSeen, ...]] = [()]

        def is_so() -> bool:
            found[0] = self.places(topic)
            return bool(found[0]) and all(map(holds, found[0]))

        wait_until(is_so, what, seconds)
        return found[0]

    def wait_in_sync(self, topic: str, brokers: Collection[int]) -> None:
        """Until everybody who runs has heard that just these are: the leader may be the last to hear of it."""
        wanted = set(brokers)

        def is_known_to(address: Address) -> bool:
            places = _partitions([address], topic)
            return bool(places) and all(set(place.in_sync) == wanted for place in places)

        wait_until(lambda: all(map(is_known_to, self._running())), f"just {_listed(brokers)} in sync for {topic}")

    def wait_led(self, topic: str, among: Collection[int]) -> int:
        """Until one of these leads the topic's only partition; which."""
        (place,) = self.wait_places(topic, lambda place: place.leader in among, f"{_listed(among)} lead {topic}")
        return place.leader

    def log_end(self, broker: int, topic: str) -> int:
        """Where the log of partition 0 ends on a broker's disk, whether or not the broker lives."""
        data = memoryview(self.log_bytes(broker, topic))
        return max((batch.next_offset for _, batch in batches(data)), default=0)

    def wait_log_end(self, broker: int, topic: str, end: int) -> None:
        wait_until(lambda: self.log_end(broker, topic) == end, f"the log of {topic} ends at {end} on broker {broker}")

    def log_bytes(self, broker: int, topic: str) -> bytes:
        directory = self.directory / f"node-{broker}" / f"{topic}-0"
        return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))

    # Helpers.

    def _running(self) -> list[Address]:
        states = self._cluster.states()
        return [Address(self.record.host, node.port) for node, state in states if node.is_broker and state == "running"]

    def _leave(self) -> None:
        """To whoever asked for it. What cannot be made well again is of no use to anybody."""
        try:
            self._heal()
            disown(self.directory)
            self.is_kept = True
        except BaseException:
            self.is_kept = False
            remove(self._cluster)
            raise

    def _heal(self) -> None:
        for node, state in self._cluster.states():
            if state == "paused":
                self.resume(node.node_id)
        self.start(*(node.node_id for node in self.record.nodes))


def _held_ports(count: int) -> HeldPorts:
    """Free ports in a row, held while the experiment lasts: the port of a node that is down is nobody else's."""
    for _ in range(TRIES):
        with HeldPorts(HOST, [0]) as any_port:
            first = any_port.ports[0]
        with contextlib.suppress(LocalError):
            return HeldPorts(HOST, ports_from(first, count))
    raise LabError(f"there are no {count} free ports in a row")


def wait_until(holds: Callable[[], bool], what: str, seconds: float = PATIENCE_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise LabError(f"not within {seconds:.0f} s: {what}")
        time.sleep(LOOK_AGAIN_SECONDS)


def _partitions(addresses: Sequence[Address], topic: str) -> tuple[PartitionSeen, ...]:
    try:
        return cluster_seen(addresses, ASK_SECONDS, [topic]).partitions
    except (NoAnswer, UnknownTopic):
        return ()


def _listed(brokers: Collection[int]) -> str:
    return ", ".join(map(str, sorted(brokers)))
