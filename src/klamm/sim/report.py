"""The story of a run with the state of every node beside it: one line an event, one narrow column a node.

An election fits on a screen: who asks, who leads in which epoch, who is off, how far each has followed the metadata.
"""

from klamm.quorum.roles import Role
from klamm.sim.cluster import Cluster
from klamm.sim.machine import Machine

WIDTH = 12
TIME_WIDTH = 11

LETTERS = {
    Role.LEADER: "L",
    Role.FOLLOWER: "f",
    Role.CANDIDATE: "C",
    Role.PROSPECTIVE: "p",
    Role.RESIGNED: "r",
    Role.UNATTACHED: "u",
}

LEGEND = """\
A column a node: its part in the metadata quorum and the epoch of it, how many partitions it leads, and up to where it
knows the metadata. L leads the quorum, f follows, p asks whether it may stand, C stands, r has resigned, u knows no
leader, o follows without a vote. ~ is a node that does not serve yet; off: no process, dark: no power."""


class Report:
    def __init__(self, cluster: Cluster) -> None:
        self._machines = list(cluster.machines.values())

    def columns(self) -> str:
        return "".join(f"{state_of(machine):<{WIDTH}} " for machine in self._machines)

    def header(self) -> str:
        names = "".join(f"{machine.name:<{WIDTH}} " for machine in self._machines)
        return f"{LEGEND}\n\n{'seconds':>{TIME_WIDTH - 1}} {names}"


def state_of(machine: Machine) -> str:
    if not machine.is_on:
        return "dark"
    if not machine.is_running:
        return "off"
    if machine.is_paused:
        return "paused"
    broker = machine.broker
    quorum = getattr(broker, "quorum", None)
    if quorum is None:
        return "~"
    letter = LETTERS[quorum.role] if quorum.is_voter else "o"
    led = sum(partition.leading is not None for partition in broker.partitions) if broker.is_open else 0
    return f"{'' if machine.is_serving else '~'}{letter}{quorum.epoch} {led} @{broker.image.offset}"
