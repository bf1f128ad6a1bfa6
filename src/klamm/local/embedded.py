"""`klamm.Cluster`: several nodes inside this process, on one loop in a thread of its own.

    with klamm.Cluster(brokers=3) as cluster:
        Producer({"bootstrap.servers": cluster.bootstrap_servers})

    async with klamm.Cluster(brokers=6, racks=2) as cluster: ...

They are real nodes: sockets on loopback, logs on disk, a quorum, replication. Because they have a thread to themselves
a client in the caller's thread may block, and may be synchronous. `kill`, `stop` and `start` do to one node what
`klamm node` does to a process. Without a directory the data is gone when the cluster is closed; with one, the cluster
is the same again when it is opened again, here or by `klamm up`.

What the nodes have to say goes to Python's logging, under `klamm`.
"""

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from random import SystemRandom

from klamm.config import BrokerConfig, ConfigError
from klamm.facts import Fact, Tell
from klamm.local.agreeing import Wish, known_cluster, new_cluster, properties_of, settings_text, with_ports
from klamm.local.asking import Address, NoAnswer
from klamm.local.loop_thread import LoopThread
from klamm.local.observing import into_logging
from klamm.local.ports import HeldPorts, ports_from
from klamm.local.problems import LocalError
from klamm.local.record import ClusterRecord, NodeRecord, locked, read_record, write_record
from klamm.local.topology import has_majority
from klamm.local.view import live_brokers
from klamm.runtime.descriptors import descriptor_limit
from klamm.runtime.dialer import Dialer, MakeDialer
from klamm.runtime.loop import Loop
from klamm.runtime.problems import CannotStart
from klamm.runtime.process import Running

START_SECONDS = 60.0
HAND_OVER_SECONDS = 0.5
ANSWER_SECONDS = 2.0
LOOK_AGAIN_SECONDS = 0.002


@dataclass(slots=True)
class _Open:
    """What an open cluster holds, to be let go in the end."""

    record: ClusterRecord
    directory: Path
    held: HeldPorts
    """For as long as the cluster is open: the port of a node that is down is nobody else's."""
    thread: LoopThread
    nodes: dict[int, Running] = field(default_factory=dict)
    """Those that run."""
    awaited: set[int] = field(default_factory=set)
    """Brokers that were started and not yet seen to serve: without a majority none does."""


class Cluster:
    """A Kafka cluster inside this process, for any client: real brokers, reached over sockets on loopback.

        with klamm.Cluster(brokers=3) as cluster:
            Producer({"bootstrap.servers": cluster.bootstrap_servers})

    `async with` works as well, and so do `open()` and `close()`. Of an open one:

        bootstrap_servers           for clients: 127.0.0.1:40001,127.0.0.1:40002,…
        brokers, running, nodes     ids of all brokers; ids of the nodes that run; all nodes with racks, roles and ports
        kill(id), stop(id)          end a node as kill -9 would, or cleanly
        start(*ids)                 start these again, together; all that are down unless some are named

    Topics are made by any client's admin calls. For tests `klamm.testing` has clusters that make topics, wait for
    leaders, pause brokers and cut links: the fixtures `klamm_embedded` and `klamm_cluster`, and without pytest
    `embedded_cluster` and `process_cluster` (docs/testing.md).
    """

    def __init__(
        self,
        brokers: int | None = None,
        racks: int | None = None,
        *,
        directory: str | Path | None = None,
        port: int = 0,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        """Three brokers in one rack unless told otherwise, at ports from `port` upwards, or any; settings by Kafka's
        names, for every node."""
        self._wish = Wish(brokers, racks, port, None if settings is None else settings_text(settings))
        self._directory = None if directory is None else Path(directory).absolute()
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._open: _Open | None = None
        self._is_closing = False

    @property
    def bootstrap_servers(self) -> str:
        """As clients want it: `127.0.0.1:40001,127.0.0.1:40002`."""
        return self._opened.record.bootstrap_servers

    @property
    def brokers(self) -> list[int]:
        """The ids of all brokers, running or not. A cluster in two racks has a witness beside them, which is none."""
        return [node.node_id for node in self._opened.record.brokers]

    @property
    def nodes(self) -> tuple[NodeRecord, ...]:
        """All nodes, running or not: their ids, racks, roles and ports."""
        return self._opened.record.nodes

    @property
    def running(self) -> list[int]:
        """The ids of the nodes that run, also of a witness."""
        return sorted(self._opened.nodes)

    # The whole cluster.

    def open(self) -> "Cluster":
        """Start all nodes; returns when every broker serves clients."""
        if self._open is not None:
            raise RuntimeError("this cluster is open already")
        self._is_closing = False
        if self._directory is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="klamm-")
        try:
            self._open = self._begun()
            self._start([node.node_id for node in self._open.record.nodes])
        except BaseException:
            self._let_go(_abandon)
            raise
        return self

    def close(self) -> None:
        """Stop all nodes cleanly, and remove the data if it had no directory of its own."""
        self._let_go(_stop)

    def abandon(self) -> None:
        """Let go of everything at once, as if the process were killed."""
        self._let_go(_abandon)

    def __enter__(self) -> "Cluster":
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> "Cluster":
        from asyncio import to_thread

        return await to_thread(self.open)

    async def __aexit__(self, *_: object) -> None:
        from asyncio import to_thread

        await to_thread(self.close)

    # Single nodes.

    def kill(self, node_id: int) -> None:
        """End a node as kill -9 would."""
        self._end(node_id, _abandon)

    def stop(self, node_id: int) -> None:
        """End a node cleanly: it hands its partitions over first."""
        self._end(node_id, _stop)

    def start(self, *node_ids: int) -> None:
        """Start nodes that were killed or stopped, together; all of them unless some are named. Returns when they
        serve, if a majority of the quorum is there."""
        wanted = node_ids or [node.node_id for node in self.nodes]
        self._start([node_id for node_id in dict.fromkeys(wanted) if node_id not in self._opened.nodes])

    # For who wants to know or do more with its nodes: `klamm.testing` does.

    def told_by(self, node_id: int) -> Tell:
        """Who hears what a node has to say."""
        log = into_logging(node_id)

        def tell(fact: Fact) -> None:
            # That nodes miss one another when all of them end is no news.
            if not self._is_closing:
                log(fact)

        return tell

    def loop_of(self, node_id: int, loop: Loop) -> Loop:
        """A node's view of the loop that all share."""
        return loop

    def dialer_of(self, node_id: int) -> MakeDialer:
        """How a node reaches the others."""
        return Dialer

    # Helpers.

    @property
    def _opened(self) -> _Open:
        if self._open is None:
            raise RuntimeError("this cluster is not open; use it as `with klamm.Cluster() as cluster:`")
        return self._open

    def _begun(self) -> _Open:
        directory = self._directory or Path(self._temporary.name if self._temporary else "")
        with locked(directory):
            known = read_record(directory)
            if known is None:
                record = new_cluster(self._wish, SystemRandom())
                wanted = ports_from(self._wish.first_port or 0, len(record.nodes))
            else:
                record = known_cluster(known, self._wish)
                wanted = [node.port for node in record.nodes]
            held = HeldPorts(record.host, wanted)
            record = with_ports(record, held.ports)
            write_record(directory, record)
        return _Open(record, directory, held, LoopThread("klamm-cluster"))

    def _start(self, node_ids: Sequence[int]) -> None:
        opened = self._opened
        configs = [self._config(opened.record.node(node_id)) for node_id in node_ids]
        open_files = descriptor_limit() // len(opened.record.nodes)
        starting = [opened.thread.asked(self._starting(config, opened, open_files)) for config in configs]
        wait(starting)
        for future in starting:
            try:
                future.result()
            except CannotStart as problem:
                raise LocalError(str(problem)) from problem
        opened.awaited |= {node_id for node_id in node_ids if opened.record.node(node_id).is_broker}
        if has_majority(opened.record.nodes, set(opened.nodes)):
            self._wait_serving(opened.awaited & set(opened.nodes))
            opened.awaited.clear()

    def _starting(
        self, config: BrokerConfig, opened: _Open, open_files: int
    ) -> Callable[[Callable[[None], None]], None]:
        node_id = config.node_id
        tell, make_dialer = self.told_by(node_id), self.dialer_of(node_id)
        loop = self.loop_of(node_id, opened.thread.loop)

        def start(done: Callable[[None], None]) -> None:
            node = Running(config, loop, tell, opened.record.cluster_id, open_files, make_dialer)
            try:
                node.start(on_serve=lambda: None, on_end=lambda clean: _forget(opened, node_id))
            except BaseException:
                node.abandon()
                raise
            opened.nodes[node_id] = node
            done(None)

        return start

    def _config(self, node: NodeRecord) -> BrokerConfig:
        try:
            return BrokerConfig.from_properties((), properties_of(self._opened.record, node, self._opened.directory))
        except ConfigError as problem:
            raise LocalError(str(problem)) from problem

    def _wait_serving(self, brokers: set[int]) -> None:
        """Until each of them names all of them to a client."""
        record, thread = self._opened.record, self._opened.thread
        deadline = time.monotonic() + START_SECONDS
        for broker in sorted(brokers):
            address = Address(record.host, record.node(broker).port)
            while not brokers <= _named_at(address):
                if thread.ended.wait(LOOK_AGAIN_SECONDS):
                    thread.end()
                if time.monotonic() > deadline:
                    raise LocalError(f"broker {broker} does not serve clients after {START_SECONDS:.0f} s")

    def _end(self, node_id: int, end: "_Ending") -> None:
        opened = self._opened
        opened.record.node(node_id)
        node = opened.nodes.pop(node_id, None)
        if node is not None:
            _asked_to_end(opened, node, end).result()

    def _let_go(self, end: "_Ending") -> None:
        """End all nodes, all at once, then everything else; also after a start that failed half way."""
        self._is_closing = True
        opened, self._open = self._open, None
        try:
            if opened is not None:
                _let_go_of(opened, end)
        finally:
            if self._temporary is not None:
                self._temporary.cleanup()
                self._temporary = None

    def __repr__(self) -> str:
        if self._open is None:
            return "<Cluster not open>"
        return f"<Cluster {self.bootstrap_servers} running={','.join(map(str, self.running))}>"


_Ending = Callable[[Running, Callable[[None], None]], None]
"""How to end a node, and whom to tell when it has."""


def _forget(opened: _Open, node_id: int) -> None:
    """It ended by itself."""
    opened.nodes.pop(node_id, None)


def _abandon(node: Running, done: Callable[[None], None]) -> None:
    node.abandon()
    done(None)


def _stop(node: Running, done: Callable[[None], None]) -> None:
    node.stop(lambda clean: done(None))


def _hurry(node: Running, done: Callable[[None], None]) -> None:
    """Who is asked a second time does not wait any longer."""
    if not node.driver.is_down:
        node.stop(lambda clean: None)
    done(None)


def _asked_to_end(opened: _Open, node: Running, end: _Ending) -> "Future[None]":
    return opened.thread.asked(lambda done: end(node, done))


def _let_go_of(opened: _Open, end: _Ending) -> None:
    try:
        ending = {_asked_to_end(opened, node, end): node for node in opened.nodes.values()}
        late = wait(ending, HAND_OVER_SECONDS).not_done
        # Where all go, there is nobody to hand over to, and soon no controller to ask.
        hurried = [_asked_to_end(opened, ending[future], _hurry) for future in late]
        for future in [*ending, *hurried]:
            future.result()
    finally:
        opened.held.let_go()
        opened.thread.end()


def _named_at(address: Address) -> set[int]:
    try:
        return live_brokers(address, ANSWER_SECONDS)
    except NoAnswer:
        return set()
