"""A cluster of node processes on this machine: brought up, taken down, and its nodes stopped, killed, paused, started.

What is done to a node is done to the process that DIR/cluster.json names, if that very process still lives. Nodes do
not depend on whoever started them; any later command finds them again.
"""

import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from random import SystemRandom
from typing import NamedTuple

from klamm.local import mending
from klamm.local.agreeing import (
    Wish,
    check_metrics,
    known_cluster,
    new_cluster,
    usual_metrics_port,
    with_metrics_ports,
    with_ports,
)
from klamm.local.deciding import NodeState, WhoRuns, who_runs
from klamm.local.ports import HeldPorts, ports_from
from klamm.local.problems import LocalError, NoCluster, PortsTaken
from klamm.local.processes import Process, State, Watch, process_of, signal_to, started, state_of, wait_ended
from klamm.local.record import METRICS, ClusterRecord, NodeRecord, locked, read_record, remove_record, write_record
from klamm.local.topology import listed

FIRST_PORT = 9092
START_SECONDS = 60.0
STOP_SECONDS = 30.0
HAND_OVER_SECONDS = 0.5
KILL_SECONDS = 10.0
WHIM_SECONDS = 5.0
"""Who ends a start after more than this wonders why it takes so long: the logs may say."""
LOOK_AGAIN_SECONDS = 0.003
LAST_LINE_BYTES = 200
SAID_STOPPED = re.compile(rb"\] stopped[^\n]*\n\Z")
"""`runtime.facts.Stopped` at the end of a log: a node that was killed said nothing, one that failed something else."""


def nobody_listens(node_id: int) -> None:
    """For who does not want to hear of every node."""


class LocalCluster:
    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()
        self._children: list[subprocess.Popen[bytes]] = []

    # What is there.

    def record(self) -> ClusterRecord:
        found = read_record(self.directory)
        if found is None:
            raise NoCluster(mending.nothing_here(self.directory, FIRST_PORT))
        return found

    def states(self) -> list[NodeState]:
        return self.states_of(self.record())

    def states_of(self, record: ClusterRecord) -> list[NodeState]:
        """Of the nodes of this record: for who needs both, of the same moment."""
        for child in self._children:
            child.poll()  # Else those that ended would stay in the system's table for as long as we live.
        return [NodeState(node, _state(node)) for node in record.nodes]

    def who_runs(self, record: ClusterRecord) -> WhoRuns:
        """Of the nodes of this record, and whether they can decide anything."""
        return who_runs(record, self.states_of(record))

    def stopped(self, states: Iterable[NodeState]) -> frozenset[int]:
        """Of the nodes that do not run, those that ended because somebody asked them to: they said so at last."""
        dead = (node.node_id for node, state in states if state == "dead")
        return frozenset(node_id for node_id in dead if _says_stopped(self.log_of(node_id)))

    @property
    def was_started_here(self) -> bool:
        """Whether nodes were started through this object, and not ended again because others did not start."""
        return bool(self._children)

    def log_of(self, node_id: int) -> Path:
        return self.directory / f"node-{node_id}.log"

    # The whole cluster.

    def up(
        self,
        wish: Wish,
        timeout_seconds: float = START_SECONDS,
        on_ready: Callable[[int], None] = nobody_listens,
        *,
        fresh: bool = False,
    ) -> ClusterRecord:
        """Start all nodes at once and return when every broker serves clients. All or nothing: when one does not
        start, the others are ended, a known cluster is as it was, and a new one leaves nothing but its logs; not even
        these when somebody thought better of it at once. A known one moves to other ports if it is told to. A fresh
        one deletes what an earlier one left here, once nothing else stands in the way."""
        mending.check_kind(self.directory)
        with locked(self.directory), ExitStack() as stack:
            known = None if fresh else read_record(self.directory)
            self._check_way_is_clear(known, wish, fresh)
            if known is None:
                record = new_cluster(wish, SystemRandom())
                ports = ports_from(FIRST_PORT if wish.first_port is None else wish.first_port, len(record.nodes))
            else:
                record = known_cluster(known, wish, may_move=True)
                ports = [node.port for node in record.nodes]
            check_metrics(wish, len(record.nodes))
            wished = {node.node_id: port for node, port in zip(record.nodes, ports, strict=True)}
            held = self._ports_held(stack, record.host, ports, or_any=wish.first_port == 0)
            record = _with_metrics_held(stack, with_ports(record, held.ports), wished)
            if fresh or wish.settings:
                mending.check_settings(self.directory, record)
            if fresh:
                mending.delete_data(self.directory)
            logs = [log for node in record.nodes if not (log := self.log_of(node.node_id)).exists()]
            began = time.monotonic()
            try:
                begun = self._begin(record, record.nodes)
                begun.wait_ready(timeout_seconds, on_ready)
            except BaseException as reason:
                self._undo(record, known)
                is_whim = isinstance(reason, KeyboardInterrupt) and time.monotonic() - began < WHIM_SECONDS
                if known is None and is_whim:
                    for log in logs:
                        log.unlink(missing_ok=True)
                raise
        return begun.record

    def down(self, timeout_seconds: float = STOP_SECONDS) -> list[int]:
        """Stop all nodes, at once; those that had to be killed because they did not stop in time. Also where some, or
        all, were dead before: it is noted, and whoever watches need not wait for them any more."""
        everybody = [node.node_id for node in self.record().nodes]
        # Before the last one ends: else whoever watches would see them all dead, and not yet why.
        self._note_stopped()
        late = self.stop(everybody, min(HAND_OVER_SECONDS, timeout_seconds))
        # Where all go, there is nobody to hand over to, and soon no controller to ask: a second signal says so.
        late = self.stop(late, timeout_seconds)
        self.kill(late)
        return late

    # Single nodes.

    def start(
        self,
        node_ids: Sequence[int],
        timeout_seconds: float = START_SECONDS,
        on_ready: Callable[[int], None] = nobody_listens,
    ) -> bool:
        """Start these nodes, those that do not run, and return when they are up. Whether they serve clients: not
        where the quorum has no majority even with them."""
        self.record()
        with ExitStack() as stack:
            with locked(self.directory):
                record = self.record()
                nodes = [node for node in map(record.node, dict.fromkeys(node_ids)) if _state(node) == "dead"]
                self._ports_held(stack, record.host, [node.port for node in nodes], may_move=False)
                record = _with_metrics_held(stack, record, {node.node_id: node.port for node in nodes})
                begun = self._begin(record, [record.node(node.node_id) for node in nodes])
            begun.wait_ready(timeout_seconds, on_ready)
        return begun.can_decide

    def stop(self, node_ids: Iterable[int], timeout_seconds: float = STOP_SECONDS) -> list[int]:
        """Ask these nodes to end cleanly, all at once, and wait; those that did not end in time."""
        alive = self._alive(node_ids)
        for process in alive.values():
            signal_to(process, signal.SIGTERM)
            # One that is paused hears of it only when it goes on.
            signal_to(process, signal.SIGCONT)
        deadline = time.monotonic() + timeout_seconds
        return [node_id for node_id, process in alive.items() if not wait_ended(process, deadline - time.monotonic())]

    def kill(self, node_ids: Iterable[int]) -> None:
        """End these nodes without a goodbye."""
        alive = self._alive(node_ids)
        for process in alive.values():
            signal_to(process, signal.SIGKILL)
        for node_id, process in alive.items():
            if not wait_ended(process, KILL_SECONDS):
                raise LocalError(f"node {node_id} (process {process.pid}) does not end; is its disk stuck?")

    def pause(self, node_ids: Sequence[int]) -> None:
        """Let these nodes stand still: connected, and deaf and dumb."""
        self._signal_until(node_ids, signal.SIGSTOP, "paused")

    def resume(self, node_ids: Sequence[int]) -> None:
        self._signal_until(node_ids, signal.SIGCONT, "running")

    def wait_change(self, timeout_seconds: float) -> None:
        """Until a node ends that runs now, at most so long."""
        with Watch(self._alive(node.node_id for node in self.record().nodes).values()) as watch:
            watch.wait_ended(timeout_seconds)

    # For who starts its nodes in another way: `klamm.testing` does.

    def launched(self, record: ClusterRecord, node: NodeRecord) -> "subprocess.Popen[bytes]":
        """A node's process, just started."""
        return started(self._command(record, node), self.log_of(node.node_id))

    def held_ports(self, host: str, ports: Sequence[int]) -> AbstractContextManager[HeldPorts]:
        """The nodes' ports, held until they have taken them, or longer."""
        return HeldPorts(host, ports)

    # Helpers.

    def _begin(self, record: ClusterRecord, nodes: Sequence[NodeRecord]) -> "Begun":
        """Start these nodes' processes and note them. Nobody waits yet."""
        logs = {node.node_id: _size(self.log_of(node.node_id)) for node in nodes}
        processes = {}
        try:
            for node in nodes:
                child = self.launched(record, node)
                self._children.append(child)
                processes[node.node_id] = process_of(child.pid)
        finally:
            # Also when the second one could not be started, or somebody lost patience: the first one is there.
            noted = record.with_processes(processes)
            write_record(self.directory, noted)
        return Begun(self, noted, logs, self.who_runs(noted).can_decide)

    def _command(self, record: ClusterRecord, node: NodeRecord) -> list[str]:
        # -P: what lies in the directory we are called from is no module of ours.
        command = [sys.executable, "-P", "-m", "klamm", "broker", "--id", str(node.node_id)]
        command += ["--listen", f"{record.host}:{node.port}", "--dir", str(self.directory / f"node-{node.node_id}")]
        if node.rack is not None:
            command += ["--rack", node.rack]
        command += ["--roles", ",".join(node.roles), "--quorum", record.quorum, "--cluster-id", record.cluster_id]
        for name, value in sorted(record.given_settings.items()):
            command += ["--set", f"{name}={value}"]
        if METRICS not in record.given_settings and (place := record.metrics_place(node)) is not None:
            command += ["--set", f"{METRICS}={place}"]
        return command

    def _note_stopped(self) -> None:
        # Whoever holds the record starts nodes: theirs is the last word. And a full disk keeps no cluster running.
        with suppress(LocalError, OSError), locked(self.directory, waits=False):
            write_record(self.directory, replace(self.record(), was_stopped=True))

    def _undo(self, record: ClusterRecord, known: ClusterRecord | None) -> None:
        """All of them are our own children, and nobody was told of this cluster yet, nor where it has moved."""
        for child in self._children:
            child.kill()
            child.wait()
        self._children.clear()
        if known is not None:
            write_record(self.directory, known)
        else:
            remove_record(self.directory)
            for node in record.nodes:
                shutil.rmtree(self.directory / f"node-{node.node_id}", ignore_errors=True)

    def _alive(self, node_ids: Iterable[int]) -> dict[int, Process]:
        record = self.record()
        nodes = [record.node(node_id) for node_id in dict.fromkeys(node_ids)]
        return {node.node_id: node.process for node in nodes if node.process and _state(node) != "dead"}

    def _signal_until(self, node_ids: Sequence[int], number: signal.Signals, wanted: State) -> None:
        alive = self._alive(node_ids)
        if dead := sorted(set(node_ids) - set(alive)):
            raise LocalError(self._why_deaf(dead))
        for node_id, process in alive.items():
            signal_to(process, number)
            while state_of(process) != wanted:
                # Between the signal and its effect there is a moment.
                if wait_ended(process, LOOK_AGAIN_SECONDS):
                    raise LocalError(f"node {node_id} ended meanwhile")

    def _why_deaf(self, dead: Sequence[int]) -> str:
        stopped = self.stopped(self.states()).intersection(dead)
        ways = {"stopped": sorted(stopped), "dead": sorted(set(dead) - stopped)}
        ended = ", ".join(f"{listed(who)} {'is' if len(who) == 1 else 'are'} {how}" for how, who in ways.items() if who)
        start = f"`klamm node start {' '.join(map(str, dead))} --dir {shlex.quote(str(self.directory))}`"
        return f"{ended}; {start} starts {'it' if len(dead) == 1 else 'them'}"

    def _check_way_is_clear(self, known: ClusterRecord | None, wish: Wish, fresh: bool) -> None:
        if fresh:
            mending.check_may_be_deleted(self.directory)
        elif known is None:
            mending.check_nothing_lies_there(self.directory)
        else:
            mending.check_nobody_runs(self.directory, known, wish)
            mending.check_data(self.directory, known)

    def _ports_held(
        self, stack: ExitStack, host: str, ports: Sequence[int], *, or_any: bool = False, may_move: bool = True
    ) -> HeldPorts:
        try:
            return stack.enter_context(self.held_ports(host, ports))
        except PortsTaken as problem:
            if or_any:
                free = [0 if port in problem.ports else port for port in ports]
                return self._ports_held(stack, host, free, may_move=may_move)
            raise mending.explained(problem, host, self.directory, may_move) from None


class Begun(NamedTuple):
    """Nodes whose processes were just started."""

    cluster: LocalCluster
    record: ClusterRecord
    said_before: dict[int, int]
    can_decide: bool

    def wait_ready(self, timeout_seconds: float, on_ready: Callable[[int], None]) -> None:
        # Imported while the nodes start, not before.
        from klamm.local.asking import Address
        from klamm.local.readiness import Starting, wait_ready

        starting = []
        for node_id, said_before in self.said_before.items():
            node = self.record.node(node_id)
            assert node.process is not None
            address, log = Address(self.record.host, node.port), self.cluster.log_of(node_id)
            will_serve = node.is_broker and self.can_decide
            starting.append(Starting(node_id, node.process, address, log, said_before, will_serve))
        wait_ready(starting, timeout_seconds, on_ready)


def _with_metrics_held(stack: ExitStack, record: ClusterRecord, ports: Mapping[int, int]) -> ClusterRecord:
    """With a port for the metrics of each of these nodes, held; beside each its own port, 0 if that may be any."""
    nodes = [record.node(node_id) for node_id in ports]
    usual = [usual_metrics_port(node, ports[node.node_id]) for node in nodes]
    last = [node.metrics_port or 0 for node in nodes]
    held = stack.enter_context(HeldPorts.preferred(record.host, usual, last))
    return with_metrics_ports(record, dict(zip(ports, zip(usual, held.ports, strict=True), strict=True)))


def _state(node: NodeRecord) -> State:
    return "dead" if node.process is None else state_of(node.process)


def _says_stopped(log: Path) -> bool:
    try:
        with log.open("rb") as lines:
            lines.seek(max(0, _size(log) - LAST_LINE_BYTES))
            return bool(SAID_STOPPED.search(lines.read()))
    except OSError:
        return False


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
