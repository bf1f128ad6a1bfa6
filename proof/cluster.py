"""The cluster under proof: Klamm's nodes as processes in a scratch directory, and what a proof waits for.

Leaving the context kills what still runs. With `keep`, the directory stays for whoever wants to look.
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from klamm.errors import ErrorCode
from klamm.local.agreeing import Wish
from klamm.local.cluster import LocalCluster
from klamm.local.record import ClusterRecord
from klamm.wire.messages.metadata import MetadataRequest
from proof import raw
from proof.raw import Line

LOOK_AGAIN_SECONDS = 0.005
GIVE_UP_SECONDS = 60.0
MARK = b"everything before this is decided"


class ProofError(Exception):
    """Something that a proof waited for did not come."""


class Waits:
    """What proofs wait for and read, the same whichever system it is."""

    @property
    def running(self) -> list[int]:
        """Brokers that run, neither dead nor paused."""
        raise NotImplementedError

    def port(self, node_id: int) -> int:
        raise NotImplementedError

    def line(self, node_id: int | None = None, timeout_seconds: float = 10.0) -> Line:
        """A connection to this broker, or to any that runs."""
        return Line(self.port(self.running[0] if node_id is None else node_id), timeout_seconds)

    def known_brokers(self, node_id: int) -> set[int]:
        """The brokers that this one tells its clients of."""
        with self.line(node_id) as line:
            return {each.node_id for each in line.ask("Metadata", MetadataRequest(topics=[])).brokers}

    def create(self, topic: str, partitions: int, replicas: int, **options: Any) -> None:
        with self.line() as line:
            code = raw.create_topic(line, topic, partitions, replicas, **options)
        if code:
            raise ProofError(f"{topic} could not be created: {ErrorCode(code).name}")
        self.wait_full_isr(topic)

    def partitions(self, topic: str, node_id: int | None = None) -> list[Any]:
        with self.line(node_id) as line:
            return sorted(raw.metadata(line, topic).partitions, key=lambda each: int(each.partition_index))

    def leader(self, topic: str, partition: int = 0) -> int:
        self.wait_until(lambda: self.partitions(topic)[partition].leader_id >= 0, f"{topic} has no leader")
        return int(self.partitions(topic)[partition].leader_id)

    def wait_full_isr(self, topic: str, timeout_seconds: float = GIVE_UP_SECONDS) -> float:
        """Until every running broker says that all replicas are in sync; how long that took."""

        def full() -> bool:
            seen = [part for node_id in self.running for part in self.partitions(topic, node_id)]
            return bool(seen) and all(len(part.isr_nodes) == len(part.replica_nodes) for part in seen)

        return self.wait_until(full, f"{topic} is not in sync everywhere", timeout_seconds)

    def wait_isr(self, topic: str, members: Iterable[int], partition: int = 0) -> float:
        wanted = sorted(members)
        return self.wait_until(
            lambda: sorted(self.partitions(topic)[partition].isr_nodes) == wanted, f"{topic} has not {wanted} in sync"
        )

    def wait_until(self, holds: Callable[[], bool], otherwise: str, timeout_seconds: float = GIVE_UP_SECONDS) -> float:
        began = time.monotonic()
        while True:
            try:
                if holds():
                    return time.monotonic() - began
            except (OSError, LookupError):
                pass  # Nobody there at the moment, or nobody who knows yet.
            if time.monotonic() - began > timeout_seconds:
                raise ProofError(f"{otherwise} after {timeout_seconds:.0f} s")
            time.sleep(LOOK_AGAIN_SECONDS)

    # What is there to read.

    def stored(self, topic: str, partitions: int) -> list[list[bytes]]:
        """Everything in the topic, by partition, each read from its leader. It ends with a mark of ours: a write with
        acks=all, behind which nothing is undecided."""
        return [self._stored(topic, partition) for partition in range(partitions)]

    def _stored(self, topic: str, partition: int) -> list[bytes]:
        deadline = time.monotonic() + GIVE_UP_SECONDS
        while True:
            try:
                with self.line(self.leader(topic, partition)) as line:
                    if code := raw.produce(line, topic, partition, MARK):
                        raise ConnectionError(f"mark in {topic}-{partition}: {ErrorCode(code).name}")
                    return raw.read_all(line, topic, partition)
            except OSError:
                # Leadership moved in between, or was not taken up yet.
                if time.monotonic() > deadline:
                    raise
                time.sleep(LOOK_AGAIN_SECONDS)


class Klamm(Waits):
    name = "klamm"

    def __init__(
        self, brokers: int = 3, racks: int = 1, settings: dict[str, str] | None = None, keep: bool = False
    ) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="klamm-proof-"))
        self.local = LocalCluster(self.directory)
        self._wish = Wish(brokers, racks, 0, settings)
        self._keep = keep

    def __enter__(self) -> "Klamm":
        self.local.up(self._wish)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.local.kill(node.node_id for node in self.record.nodes)
        if self._keep or kind is not None:
            print(f"the nodes' directories and logs stay in {self.directory}", flush=True)
        else:
            shutil.rmtree(self.directory, ignore_errors=True)

    # Who is there.

    @property
    def record(self) -> ClusterRecord:
        return self.local.record()

    @property
    def servers(self) -> str:
        return self.record.bootstrap_servers

    @property
    def running(self) -> list[int]:
        return [each.node.node_id for each in self.local.states() if each.state == "running" and each.node.is_broker]

    def port(self, node_id: int) -> int:
        return self.record.node(node_id).port

    def rack(self, name: str) -> list[int]:
        return [node.node_id for node in self.record.nodes if node.rack == name]

    # What is done to nodes.

    def kill(self, node_ids: Iterable[int]) -> None:
        self.local.kill(node_ids)

    def start(self, node_ids: Iterable[int]) -> None:
        self.local.start(list(node_ids))

    def log(self, node_id: int) -> str:
        return self.local.log_of(node_id).read_text(errors="replace")

    def complaints(self) -> list[str]:
        """What the nodes said that nobody should have to read: errors and tracebacks."""
        lines = [line for node in self.record.nodes for line in self.log(node.node_id).splitlines()]
        return [line for line in lines if " ERROR " in line or "Traceback" in line]
