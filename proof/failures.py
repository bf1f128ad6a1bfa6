"""The failures under which records are counted. Each is a short story about a running cluster and a running stream.

A story begins with every replica in sync and the stream flowing, and does its harm. Healing comes afterwards and is the
same for all: whoever is paused goes on, whoever is dead is started. `behind` stories let the followers stand still for
a moment first, so that the leader holds records that nobody else has: this is how acks=0 and acks=1 lose them.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from proof.cluster import Klamm
from proof.stream import Stream

FLOWING = 150
"""Acknowledgements before the harm: the stream is under way, and no two runs are hit at the same point."""
BEHIND_SECONDS = 0.25
PATIENCE_SECONDS = 15.0


@dataclass(slots=True)
class Run:
    cluster: Klamm
    topic: str
    partition: int
    """Whose leader is harmed."""
    random: Random
    stream: Stream
    another: Callable[[], Stream]
    """Starts a second stream, of a client that never knew the old leader."""

    @property
    def leader(self) -> int:
        return self.cluster.leader(self.topic, self.partition)

    def replicas(self) -> list[int]:
        return list(self.cluster.partitions(self.topic)[self.partition].replica_nodes)

    def wait_flowing(self) -> None:
        self.stream.wait_acknowledged(FLOWING + self.random.randrange(FLOWING), PATIENCE_SECONDS)

    def wait_another_leader(self, old: int) -> None:
        self.cluster.wait_until(lambda: self.leader not in (old, -1), f"{old} still leads {self.topic}")


@dataclass(frozen=True, slots=True)
class Failure:
    name: str
    title: str
    happen: Callable[[Run], None]
    racks: int = 1
    """One: three nodes, each a broker and a voter. Two: six brokers and a witness."""
    partitions: int = 3
    replicas: int = 3
    assignment: tuple[int, ...] | None = None


def killed(run: Run) -> None:
    run.wait_flowing()
    run.cluster.kill([run.leader])
    run.wait_flowing()


def killed_behind(run: Run) -> None:
    run.wait_flowing()
    leader = run.leader
    followers = [each for each in run.replicas() if each != leader]
    run.cluster.local.pause(followers)
    time.sleep(BEHIND_SECONDS)
    run.cluster.kill([leader])
    run.cluster.local.resume(followers)
    run.wait_flowing()


def zombie(run: Run) -> None:
    """Its clients' requests lie in its sockets while another leads. When it goes on, it finds them, and believes."""
    run.wait_flowing()
    leader = run.leader
    run.cluster.local.pause([leader])
    run.wait_another_leader(leader)
    run.another().wait_acknowledged(FLOWING, PATIENCE_SECONDS)
    run.cluster.local.resume([leader])
    run.wait_flowing()


def rack_killed(run: Run) -> None:
    run.wait_flowing()
    run.cluster.kill(_rack_of(run, run.leader))
    run.wait_flowing()


def rack_killed_behind(run: Run) -> None:
    run.wait_flowing()
    lost = _rack_of(run, run.leader)
    others = [each for each in run.cluster.running if each not in lost]
    run.cluster.local.pause(others)
    time.sleep(BEHIND_SECONDS)
    run.cluster.kill(lost)
    run.cluster.local.resume(others)
    run.wait_flowing()


def shrunk_to_min(run: Run) -> None:
    """A follower dies, the ISR is at its minimum; then the leader does, and it is below."""
    leader = run.leader
    lost, stays = (each for each in run.replicas() if each != leader)
    run.cluster.kill([lost])
    run.cluster.wait_isr(run.topic, [leader, stays], run.partition)
    run.wait_flowing()
    run.cluster.kill([leader])
    time.sleep(1.0)


def below_min(run: Run) -> None:
    """Both followers stop cleanly, the leader goes on alone and dies. The followers come back without it."""
    run.wait_flowing()
    leader = run.leader
    followers = [each for each in run.replicas() if each != leader]
    run.cluster.local.stop(followers)
    run.cluster.wait_isr(run.topic, [leader], run.partition)
    time.sleep(0.5)
    run.cluster.kill([leader])
    run.cluster.start(followers)
    run.wait_flowing()


def below_min_unclean(run: Run) -> None:
    """The same with kill -9: the followers lost the right to lead, and the partition waits for its last leader."""
    run.wait_flowing()
    leader = run.leader
    followers = [each for each in run.replicas() if each != leader]
    run.cluster.kill(followers)
    run.cluster.wait_isr(run.topic, [leader], run.partition)
    time.sleep(0.5)
    run.cluster.kill([leader])
    run.cluster.start(followers)
    time.sleep(0.5)


NO_VOTERS = (1, 4, 2)
"""Of six brokers in two racks, 0, 3 and the witness vote: these three may all be harmed, and the quorum decides."""

FAILURES = (
    Failure("killed", "leader killed with kill -9", killed),
    Failure("killed-behind", "leader killed, followers 0.25 s behind", killed_behind),
    Failure("zombie", "leader paused until another leads, then resumed", zombie),
    Failure("rack", "whole rack killed", rack_killed, racks=2, replicas=4),
    Failure("rack-behind", "whole rack killed, the other 0.25 s behind", rack_killed_behind, racks=2, replicas=4),
    Failure("to-min", "ISR shrunk to min, then leader killed", shrunk_to_min, 2, 1, 3, NO_VOTERS),
    Failure("below-min", "followers stopped, leader alone, then killed", below_min, 2, 1, 3, NO_VOTERS),
    Failure("below-min-unclean", "followers killed, leader alone, then killed", below_min_unclean, 2, 1, 3, NO_VOTERS),
)
BY_NAME = {failure.name: failure for failure in FAILURES}


def _rack_of(run: Run, broker: int) -> list[int]:
    rack = run.cluster.record.node(broker).rack
    assert rack is not None
    return run.cluster.rack(rack)
