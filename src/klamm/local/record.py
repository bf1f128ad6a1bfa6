"""What is known of a cluster on this machine, kept in DIR/cluster.json: its nodes, their places and their processes.

The file is replaced as a whole and changed under a lock, so that two commands at once leave both their changes in it.
It says which directory it was written in, too: a copy of that directory knows the cluster, and none of its processes
are the copy's. Moved, the directory is the same.
"""

import fcntl
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from klamm.local.problems import LocalError
from klamm.local.processes import Process
from klamm.local.topology import PlannedNode
from klamm.runtime.locks import locked_file
from klamm.runtime.taking import LOCK as NODES_LOCK

FILE, LOCK = "cluster.json", ".cluster.lock"
FORMAT = 1
METRICS = "klamm.metrics.listener"
WRITTEN_IN = "written_in"
USUAL_REPLICATION = 3


@dataclass(frozen=True, slots=True)
class NodeRecord(PlannedNode):
    port: int
    process: Process | None = None
    """The last one that was started for it; it may have ended."""
    metrics_port: int | None = None
    """Where it was told to serve metrics; None if nobody has chosen a port yet."""
    usual_metrics_port: int | None = None
    """Where it is told to, whenever nobody else is there."""


@dataclass(frozen=True, slots=True)
class ClusterRecord:
    cluster_id: str
    host: str
    settings: Mapping[str, str]
    """As whoever made it wished."""
    nodes: tuple[NodeRecord, ...]
    was_stopped: bool = False
    """Somebody has stopped it as a whole, and nobody has started a node since. How each of them ended, by a signal or
    long before, does not matter."""

    @property
    def given_settings(self) -> Mapping[str, str]:
        """What every node is given. Two defaults are not Kafka's: nobody wants to wait for the first rebalance in every
        test, and a topic that says nothing should outlive the broker that somebody kills to see what happens."""
        ours = {
            "group.initial.rebalance.delay.ms": "0",
            "default.replication.factor": str(self.usual_replication),
        }
        return {**ours, **self.settings}

    @property
    def usual_replication(self) -> int:
        """Three, or as many as there are brokers."""
        return min(USUAL_REPLICATION, len(self.brokers))

    def node(self, node_id: int) -> NodeRecord:
        for node in self.nodes:
            if node.node_id == node_id:
                return node
        known = ", ".join(str(node.node_id) for node in self.nodes)
        raise LocalError(f"there is no node {node_id} in this cluster; its nodes are {known}")

    @property
    def brokers(self) -> list[NodeRecord]:
        return [node for node in self.nodes if node.is_broker]

    @property
    def racks(self) -> int:
        return len({node.rack for node in self.brokers})

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{self.host}:{node.port}" for node in self.brokers)

    @property
    def quorum(self) -> str:
        """The voters as `controller.quorum.voters` has them."""
        return ",".join(f"{node.node_id}@{self.host}:{node.port}" for node in self.nodes if node.is_voter)

    def metrics_place(self, node: NodeRecord) -> str | None:
        """Where this node was told to serve metrics, as host:port; None for nowhere."""
        if METRICS in self.settings:
            return self.settings[METRICS] or None
        return None if node.metrics_port is None else f"{self.host}:{node.metrics_port}"

    def metrics_url(self, node: NodeRecord) -> str | None:
        place = self.metrics_place(node)
        return None if place is None else f"http://{place}/metrics"

    def with_processes(self, processes: Mapping[int, Process]) -> "ClusterRecord":
        """Of nodes that were just started."""
        nodes = (replace(node, process=processes.get(node.node_id, node.process)) for node in self.nodes)
        return replace(self, nodes=tuple(nodes), was_stopped=self.was_stopped and not processes)

    def without_processes(self) -> "ClusterRecord":
        return replace(self, nodes=tuple(replace(node, process=None) for node in self.nodes))


def read_record(directory: Path) -> ClusterRecord | None:
    """The cluster of this directory, or None where there is none."""
    path = directory / FILE
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise LocalError(f"{path} cannot be read: {error.strerror}") from error
    mend = f"`klamm up --fresh --dir {shlex.quote(str(directory))}` deletes that cluster and starts empty"
    try:
        document = json.loads(text)
        if document["format"] != FORMAT:
            raise LocalError(
                f"{path} is of format {document['format']}, and this version of Klamm knows {FORMAT}. Use the version "
                f"that wrote it; or {mend}"
            )
        record = _record_of(document)
    except (ValueError, TypeError, KeyError) as error:
        raise LocalError(
            f"{path} is damaged ({error!r}); the nodes' data beside it is not touched. Put the file back; or {mend}"
        ) from error
    return record.without_processes() if _is_copied(directory, document, record) else record


def write_record(directory: Path, record: ClusterRecord) -> None:
    path = directory / FILE
    temporary = path.with_name(f"{FILE}.tmp")
    document = {**_document(record), WRITTEN_IN: _identity(directory)}
    temporary.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    temporary.replace(path)


def remove_record(directory: Path) -> None:
    (directory / FILE).unlink(missing_ok=True)


@contextmanager
def locked(directory: Path, *, waits: bool = True) -> Iterator[None]:
    """While this is held, nobody else changes the record. A directory that was made for it, and in which nothing was
    left, is removed again. LocalError if somebody else holds it and nobody waits for them."""
    try:
        made = [each for each in (directory, *directory.parents) if not each.exists()]
        lock = locked_file(directory / LOCK, waits=waits)
    except OSError as error:
        raise LocalError(f"the directory {directory} cannot be used: {error.strerror}") from error
    with lock:
        try:
            yield
        finally:
            if made:
                _remove_unused(directory, made)


def _remove_unused(directory: Path, made: Sequence[Path]) -> None:
    """These directories, the innermost first, as far as nothing is in them but the lock, which we hold."""
    # Somebody may put something into one of them meanwhile: then it stays.
    with suppress(OSError):
        if [path.name for path in directory.iterdir()] == [LOCK]:
            (directory / LOCK).unlink()
            for path in made:
                path.rmdir()


def is_in_use(path: Path) -> bool:
    """Whether a process has this directory of a node."""
    try:
        with (path / NODES_LOCK).open("r") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    except OSError as error:
        # Another user's, perhaps. Nobody is accused, and nothing deleted.
        raise LocalError(f"{path} cannot be looked into: {error.strerror}") from error
    return False


def _is_copied(directory: Path, document: Any, record: ClusterRecord) -> bool:
    """Records of the time before this was noted are taken as they are."""
    written_in = document.get(WRITTEN_IN)
    if written_in is None or written_in == _identity(directory):
        return False
    # Some file systems, as those that a virtual machine is lent, give a directory another number now and then.
    return not any(is_in_use(directory / f"node-{node.node_id}") for node in record.nodes)


def _identity(directory: Path) -> dict[str, int]:
    found = directory.stat()
    return {"device": found.st_dev, "inode": found.st_ino}


def _document(record: ClusterRecord) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "cluster_id": record.cluster_id,
        "host": record.host,
        "settings": dict(record.settings),
        "was_stopped": record.was_stopped,
        "nodes": [
            {
                "id": node.node_id,
                "rack": node.rack,
                "roles": list(node.roles),
                "port": node.port,
                "metrics_port": node.metrics_port,
                "usual_metrics_port": node.usual_metrics_port,
                "process": None if node.process is None else node.process._asdict(),
            }
            for node in record.nodes
        ],
    }


def _record_of(document: Any) -> ClusterRecord:
    nodes = tuple(
        NodeRecord(
            node_id=int(node["id"]),
            rack=node["rack"],
            roles=tuple(node["roles"]),
            port=int(node["port"]),
            process=None if node["process"] is None else Process(**node["process"]),
            # Clusters of the time before there were metrics, or a way back, do not name them.
            metrics_port=_port_or_none(node.get("metrics_port")),
            usual_metrics_port=_port_or_none(node.get("usual_metrics_port")),
        )
        for node in document["nodes"]
    )
    was_stopped = bool(document.get("was_stopped", False))
    return ClusterRecord(document["cluster_id"], document["host"], document["settings"], nodes, was_stopped)


def _port_or_none(value: Any) -> int | None:
    return None if value is None else int(value)
