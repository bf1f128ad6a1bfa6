"""The hosts of `klamm chaos` on one switch (`klamm.chaos.network`), and links that are worse while a block lasts."""

from collections.abc import Iterator
from contextlib import contextmanager

from klamm.chaos import network
from klamm.chaos.problems import NoNetwork

__all__ = ["Network", "NoNetwork"]


class Network(network.Network):
    def __enter__(self) -> "Network":
        super().__enter__()
        return self

    @contextmanager
    def slow(self, host: int, kilobits: int) -> Iterator[None]:
        """What others send to a host comes through a narrow place."""
        self.narrow(host, kilobits)
        try:
            yield
        finally:
            self.widen(host)

    @contextmanager
    def lossy(self, host: int, other: int, percent: int) -> Iterator[None]:
        """So many of a hundred packets between the two are lost, in both directions."""
        with self._ruled(host, self.losing(other, percent)):
            yield

    @contextmanager
    def cut(self, host: int, other: int) -> Iterator[None]:
        """Neither hears the other."""
        with self.deaf(host, other), self.deaf(other, host):
            yield

    @contextmanager
    def deaf(self, host: int, other: int) -> Iterator[None]:
        """A host hears nothing of the other, which hears it."""
        with self._ruled(host, self.deaf_to(other)):
            yield

    @contextmanager
    def _ruled(self, host: int, rules: list[str]) -> Iterator[None]:
        self.add_rules(host, rules)
        try:
            yield
        finally:
            self.remove_rules(host, rules)
