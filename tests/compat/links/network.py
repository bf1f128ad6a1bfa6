"""Hosts on one switch, made of network namespaces: every link between two of them can be made worse, and well again.

Each host is a namespace with one interface, plugged into a bridge that stands in a namespace of its own, so that no
rule of the machine's firewall sees what they say to each other. The machine itself is plugged in too: tests and their
clients reach every host. Slow links are the bridge's (tc, tbf), lossy and cut ones are a host's rules (nft). All of it
goes when the namespaces go.

Needs root, and of Debian the packages iproute2 and nftables.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

PACKAGES = {"ip": "iproute2", "tc": "iproute2", "nft": "nftables"}
SECONDS = 20
MACHINE = 1
"""The machine's own number on the switch."""


class NoNetwork(Exception):  # noqa: N818
    """There can be no namespaces here, and why."""


class Network:
    def __init__(self, hosts: int) -> None:
        self._name = f"klamm{os.getpid()}"
        self._subnet = f"198.18.{os.getpid() % 256}"  # Of the range that is kept for tests of networks (RFC 2544).
        self._hosts = range(hosts)
        self._drops: dict[int, list[str]] = {host: [] for host in self._hosts}

    def __enter__(self) -> "Network":
        missing = sorted({package for tool, package in PACKAGES.items() if shutil.which(tool) is None})
        if missing or os.geteuid() != 0:
            raise NoNetwork(f"needs root, and `apt-get install {' '.join(missing or ['iproute2', 'nftables'])}`")
        try:
            _run("ip", "netns", "add", self._switch)
        except subprocess.CalledProcessError as problem:
            raise NoNetwork(f"no network namespaces here: {problem.stderr.strip()}") from problem
        try:
            self._make()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._remove()

    def address(self, host: int) -> str:
        return f"{self._subnet}.{10 + host}"

    def command_in(self, host: int, command: list[str]) -> list[str]:
        """This command, on that host."""
        return ["ip", "netns", "exec", self._namespace(host), *command]

    # Links, worse for as long as the block lasts.

    @contextmanager
    def slow(self, host: int, kilobits: int) -> Iterator[None]:
        """What others send to a host comes through a narrow place, with a queue before it of a third of a second."""
        port = ["-n", self._switch, "qdisc"]
        shape = ["root", "tbf", "rate", f"{kilobits}kbit", "burst", "16kb", "latency", "300ms"]
        _run("tc", *port, "add", "dev", _port(host), *shape)
        try:
            yield
        finally:
            _run("tc", *port, "del", "dev", _port(host), "root")

    @contextmanager
    def lossy(self, host: int, other: int, percent: int) -> Iterator[None]:
        """So many of a hundred packets between the two are lost, in both directions."""
        chance = f"numgen random mod 100 < {percent}"
        with self._dropping(host, f"saddr {self.address(other)} {chance}", f"daddr {self.address(other)} {chance}"):
            yield

    @contextmanager
    def cut(self, host: int, other: int) -> Iterator[None]:
        """Neither hears the other."""
        with self.deaf(host, other), self.deaf(other, host):
            yield

    @contextmanager
    def deaf(self, host: int, other: int) -> Iterator[None]:
        """A host hears nothing of the other, which hears it."""
        with self._dropping(host, f"saddr {self.address(other)}"):
            yield

    def dropped(self, host: int) -> int:
        """How many packets its rules have dropped since they were last changed."""
        said = _run(*self.command_in(host, ["nft", "list", "ruleset"])).split()
        return sum(int(count) for word, count in pairwise(said) if word == "packets")

    # Helpers.

    @contextmanager
    def _dropping(self, host: int, *rules: str) -> Iterator[None]:
        self._drops[host] += rules
        self._apply(host)
        try:
            yield
        finally:
            for rule in rules:
                self._drops[host].remove(rule)
            self._apply(host)

    def _apply(self, host: int) -> None:
        lines = ["flush ruleset", "table ip links {"]
        for hook, side in (("input", "saddr"), ("output", "daddr")):
            rules = [f"ip {rule} counter drop" for rule in self._drops[host] if rule.startswith(side)]
            lines += [f"chain {hook} {{ type filter hook {hook} priority 0;", *rules, "}"]
        _run(*self.command_in(host, ["nft", "-f", "-"]), text="\n".join([*lines, "}"]) + "\n")

    def _make(self) -> None:
        _run("ip", "-n", self._switch, "link", "add", "br0", "type", "bridge")
        _run("ip", "-n", self._switch, "link", "set", "br0", "up")
        for host in self._hosts:
            _run("ip", "netns", "add", self._namespace(host))
            self._plug_in(_port(host), "eth0", ["netns", self._namespace(host)])
            inside = ["ip", "-n", self._namespace(host)]
            _run(*inside, "address", "add", f"{self.address(host)}/24", "dev", "eth0")
            _run(*inside, "link", "set", "eth0", "up")
            _run(*inside, "link", "set", "lo", "up")
        # An interface's name has fifteen characters at most.
        self._plug_in("port-out", self._name, ["netns", str(os.getpid())])
        _run("ip", "address", "add", f"{self._subnet}.{MACHINE}/24", "dev", self._name)
        _run("ip", "link", "set", self._name, "up")

    def _plug_in(self, port: str, other_end: str, where: list[str]) -> None:
        inside = ["ip", "-n", self._switch, "link"]
        _run(*inside, "add", port, "type", "veth", "peer", "name", other_end, *where)
        _run(*inside, "set", port, "master", "br0", "up")

    def _remove(self) -> None:
        """With a namespace go its interfaces, and with them their other ends."""
        for namespace in (self._switch, *map(self._namespace, self._hosts)):
            subprocess.run(["ip", "netns", "delete", namespace], capture_output=True, timeout=SECONDS, check=False)

    @property
    def _switch(self) -> str:
        return f"{self._name}-switch"

    def _namespace(self, host: int) -> str:
        return f"{self._name}-{host}"


def _port(host: int) -> str:
    return f"port{host}"


def _run(*command: str, text: str | None = None) -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr or done.stdout)
    return done.stdout
