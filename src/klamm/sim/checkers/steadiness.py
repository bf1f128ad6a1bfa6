"""A quorum that is well keeps its leader, whatever somebody says who is no node (I35).

Looked at while nothing happens to anybody: all nodes run, all links and disks work, and all follow one leader. Only
forged requests come. If a machine ends all the same, or voters are changed, that is reason enough for another leader.
"""

from klamm.ids import BrokerId, Epoch
from klamm.sim.cluster import Cluster
from klamm.sim.machine import Machine
from klamm.sim.promise import broken


class SteadinessChecker:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._led: tuple[BrokerId, Epoch] | None = None
        self._reasons: object = None

    def begin(self) -> None:
        """From now on, if all follow the same leader."""
        led = {(each.broker.quorum.leader_id, each.broker.quorum.epoch) for each in self._cluster.running}
        self._led = led.pop() if len(led) == 1 else None
        self._reasons = self._good_reasons()

    def end(self) -> None:
        self._led = None

    def after_step(self, machine: Machine) -> None:
        if self._led is None:
            return
        raft = machine.broker.quorum
        if (raft.leader_id, raft.epoch) != self._led:
            if self._good_reasons() == self._reasons:
                leader, epoch = self._led
                found = f"node-{raft.leader_id} in {raft.epoch}" if raft.leader_id >= 0 else f"nobody in {raft.epoch}"
                broken("I35", f"{machine.name} followed node-{leader} in quorum epoch {epoch}, and now {found}")
            self._led = None

    def _good_reasons(self) -> object:
        machines = self._cluster.machines.values()
        return [(each.lives, each.is_running, each.is_paused) for each in machines], self._cluster.voter_sets()
