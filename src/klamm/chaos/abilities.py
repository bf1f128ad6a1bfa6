"""What can be done to a cluster on this machine: which faults are possible, and why others are not."""

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from klamm.chaos.disks import Disks
from klamm.chaos.faults import DISKS, KINDS, LINKS
from klamm.chaos.network import MACHINE, Network
from klamm.chaos.problems import ChaosError
from klamm.chaos.scratch import NETWORK_PREFIX, PREFIX


@dataclass(frozen=True, slots=True)
class Abilities:
    has_network: bool
    has_disks: bool
    possible: frozenset[str]
    """Kinds of faults."""
    reasons: tuple[str, ...]
    """Why not all of them, a sentence each."""


def found_abilities(wants_loopback: bool = False) -> Abilities:
    """Everything is tried once, on nobody."""
    reasons: list[str] = []
    impossible: set[str] = set()
    has_network = False
    if wants_loopback:
        reasons.append("on loopback, as asked: links stay as they are")
    else:
        try:
            impossible |= _impossible_links()
            has_network = True
        except ChaosError as problem:
            reasons.append(f"on loopback, links stay as they are: {problem}")
    if not has_network:
        impossible |= LINKS
    elif impossible:
        reasons.append(f"this kernel cannot do: {', '.join(sorted(impossible))}")
    has_disks = True
    try:
        with tempfile.TemporaryDirectory(prefix=PREFIX) as directory, Disks([Path(directory) / "disk"]):
            pass
    except ChaosError as problem:
        reasons.append(f"disks are never full: {problem}")
        has_disks = False
        impossible |= DISKS
    return Abilities(has_network, has_disks, frozenset(KINDS) - impossible, tuple(reasons))


def _impossible_links() -> set[str]:
    impossible = set()
    with Network(1, NETWORK_PREFIX) as network:
        cut = [*network.deaf_to(MACHINE), *network.mute_to(MACHINE)]
        tried = {"cut": cut, "lossy": network.losing(MACHINE, 10), "reset": network.resetting(MACHINE)}
        for kind, rules in tried.items():
            try:
                network.add_rules(0, rules)
                network.remove_rules(0, rules)
            except subprocess.CalledProcessError:
                network.forget_rules(0)
                impossible.add(kind)
        try:
            network.narrow(0, 1_000)
        except subprocess.CalledProcessError:
            impossible.add("slow")
    return impossible | ({"oneway"} if "cut" in impossible else set())
