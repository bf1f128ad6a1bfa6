"""Hosts on one switch, made of network namespaces: every link between two of them can be made worse, and well again.

Each host is a namespace with one interface, plugged into a bridge that stands in a namespace of its own, so that no
rule of the machine's firewall sees what they say to each other. The machine itself is plugged in too: clients on it
reach every host. Slow links are the bridge's (tc, tbf); cut, lossy and resetting ones are rules of a host (nft). All
of it goes when the namespaces go.

Needs root, and of Debian the packages iproute2 and nftables.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from itertools import pairwise

from klamm.chaos.commands import attempt, run
from klamm.chaos.problems import NoNetwork

PACKAGES = {"ip": "iproute2", "tc": "iproute2", "nft": "nftables"}
MACHINE = -1
"""The machine itself, as one of the hosts on the switch: where clients are."""

INPUT, OUTPUT = "saddr", "daddr"
HOOKS = {"input": INPUT, "output": OUTPUT}


class Network:
    def __init__(self, hosts: int, prefix: str = "klamm") -> None:
        # An interface's name has fifteen characters at most.
        self._name = f"{prefix}{os.getpid()}"
        assert len(self._name) <= 15, self._name
        self._hosts = range(hosts)
        self._subnet = ""
        self._rules: dict[int, list[str]] = {host: [] for host in self._hosts}

    def __enter__(self) -> "Network":
        missing = sorted({package for tool, package in PACKAGES.items() if shutil.which(tool) is None})
        if missing or os.geteuid() != 0:
            raise NoNetwork(f"needs root, and `apt-get install {' '.join(missing or ['iproute2', 'nftables'])}`")
        try:
            run("ip", "netns", "add", self._switch)
        except subprocess.CalledProcessError as problem:
            raise NoNetwork(f"no network namespaces here: {problem.stderr.strip()}") from problem
        try:
            self._make()
        except subprocess.CalledProcessError as problem:
            self._remove()
            raise NoNetwork(f"no switch here: {' '.join(problem.cmd)}: {problem.stderr.strip()}") from problem
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._remove()

    def address(self, host: int) -> str:
        return f"{self._subnet}.{10 + host}"

    def command_in(self, host: int, command: list[str]) -> list[str]:
        """This command, on that host. `ip netns exec` becomes the command: its process is the command's."""
        return ["ip", "netns", "exec", self._namespace(host), *command]

    # Links, made worse and well again.

    def add_rules(self, host: int, rules: Iterable[str]) -> None:
        self._rules[host] += rules
        self._apply(host)

    def remove_rules(self, host: int, rules: Iterable[str]) -> None:
        for rule in rules:
            self._rules[host].remove(rule)
        self._apply(host)

    def forget_rules(self, host: int) -> None:
        self._rules[host].clear()
        self._apply(host)

    def narrow(self, host: int, kilobits: int) -> None:
        """What others send to a host comes through a narrow place, with a queue before it of a third of a second."""
        shape = ["tbf", "rate", f"{kilobits}kbit", "burst", "16kb", "latency", "300ms"]
        run("tc", "-n", self._switch, "qdisc", "replace", "dev", _port(host), "root", *shape)

    def widen(self, host: int) -> None:
        # Two that made it narrow make it wide twice.
        attempt("tc", "-n", self._switch, "qdisc", "del", "dev", _port(host), "root")

    def dropped(self, host: int) -> int:
        """How many packets its rules have met since they were last changed."""
        said = run(*self.command_in(host, ["nft", "list", "ruleset"])).split()
        return sum(int(count) for word, count in pairwise(said) if word == "packets")

    # Rules: what a host does with packets from another, and to it.

    def deaf_to(self, other: int) -> list[str]:
        return [f"{INPUT} {self.address(other)} counter drop"]

    def mute_to(self, other: int) -> list[str]:
        return [f"{OUTPUT} {self.address(other)} counter drop"]

    def losing(self, other: int, percent: int) -> list[str]:
        chance = f"numgen random mod 100 < {percent} counter drop"
        return [f"{side} {self.address(other)} {chance}" for side in (INPUT, OUTPUT)]

    def resetting(self, other: int) -> list[str]:
        """Whatever the other says next on a connection, it is told that there is none."""
        return [f"{INPUT} {self.address(other)} meta l4proto tcp counter reject with tcp reset"]

    # Helpers.

    def _apply(self, host: int) -> None:
        lines = ["flush ruleset", "table ip links {"]
        for hook, side in HOOKS.items():
            rules = [f"ip {rule}" for rule in self._rules[host] if rule.startswith(side)]
            lines += [f"chain {hook} {{ type filter hook {hook} priority 0;", *rules, "}"]
        run(*self.command_in(host, ["nft", "-f", "-"]), text="\n".join([*lines, "}"]) + "\n")

    def _make(self) -> None:
        self._subnet = _free_subnet()
        run("ip", "-n", self._switch, "link", "add", "br0", "type", "bridge")
        run("ip", "-n", self._switch, "link", "set", "br0", "up")
        for host in self._hosts:
            run("ip", "netns", "add", self._namespace(host))
            self._plug_in(_port(host), "eth0", ["netns", self._namespace(host)])
            inside = ["ip", "-n", self._namespace(host)]
            run(*inside, "address", "add", f"{self.address(host)}/24", "dev", "eth0")
            run(*inside, "link", "set", "eth0", "up")
            run(*inside, "link", "set", "lo", "up")
        self._plug_in("port-out", self._name, ["netns", str(os.getpid())])
        run("ip", "address", "add", f"{self.address(MACHINE)}/24", "dev", self._name)
        run("ip", "link", "set", self._name, "up")

    def _plug_in(self, port: str, other_end: str, where: list[str]) -> None:
        inside = ["ip", "-n", self._switch, "link"]
        run(*inside, "add", port, "type", "veth", "peer", "name", other_end, *where)
        run(*inside, "set", port, "master", "br0", "up")

    def _remove(self) -> None:
        # With a namespace go its interfaces and their other ends, but a moment later: the next run may be there before.
        attempt("ip", "link", "delete", self._name)
        for namespace in (self._switch, *map(self._namespace, self._hosts)):
            attempt("ip", "netns", "delete", namespace)

    @property
    def _switch(self) -> str:
        return f"{self._name}-switch"

    def _namespace(self, host: int) -> str:
        return f"{self._name}-{host}"


def remove_leftovers(prefix: str) -> list[str]:
    """Namespaces of processes that are no more; their names."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        return []
    names = [line.split()[0] for line in run("ip", "netns", "list").splitlines() if line.strip()]
    owned = [(name, re.fullmatch(rf"{prefix}(\d+)-(switch|\d+)", name)) for name in names]
    left = [name for name, match in owned if match and not _is_there(int(match[1]))]
    for name in left:
        attempt("ip", "netns", "delete", name)
    return left


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _free_subnet() -> str:
    """Of the range that is kept for tests of networks (RFC 2544), one that no interface of the machine has."""
    taken = run("ip", "-o", "-4", "address")
    for step in range(512):
        number = (os.getpid() + step) % 512
        subnet = f"198.{18 + number // 256}.{number % 256}"
        if f" {subnet}." not in taken:
            return subnet
    raise NoNetwork("every address of 198.18.0.0/15 is taken")


def _port(host: int) -> str:
    return f"port{host}"
