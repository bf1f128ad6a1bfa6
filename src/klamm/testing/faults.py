"""Which links between nodes are cut and which are slow: kept for the whole cluster, told to each node from its side."""

from collections.abc import Collection, Mapping

from klamm.testing.links import GOOD, Address, Link


class Links:
    def __init__(self, addresses: Mapping[int, Address]) -> None:
        """Every node of the cluster, where it listens."""
        self._addresses = dict(addresses)
        self._cut: set[frozenset[int]] = set()
        self._delays_ms: dict[int, float] = {}

    @property
    def are_well(self) -> bool:
        return not self._cut and not self._delays_ms

    def cut_off(self, nodes: Collection[int]) -> None:
        """These from all others, in both directions. Among themselves they stay connected."""
        others = self._addresses.keys() - set(nodes)
        self._cut |= {frozenset((node, other)) for node in nodes for other in others}

    def slow_down(self, node: int, delay_ms: float) -> None:
        """All that goes to a node and comes from it takes so much longer, each way."""
        self._delays_ms[node] = delay_ms

    def heal(self, nodes: Collection[int]) -> None:
        """All links of these nodes."""
        self._cut = {pair for pair in self._cut if not pair & set(nodes)}
        for node in nodes:
            self._delays_ms.pop(node, None)

    def unreachable_from(self, node: int) -> set[int]:
        return {other for other in self._addresses if frozenset((node, other)) in self._cut}

    def seen_from(self, node: int) -> dict[Address, Link]:
        """Those of its links that are not well, by where they lead."""
        links = {self._addresses[other]: self._link(node, other) for other in self._addresses if other != node}
        return {address: link for address, link in links.items() if link != GOOD}

    def _link(self, node: int, other: int) -> Link:
        delay_ms = self._delays_ms.get(node, 0.0) + self._delays_ms.get(other, 0.0)
        return Link(frozenset((node, other)) in self._cut, delay_ms)
