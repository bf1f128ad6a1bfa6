"""What can go wrong with a cluster on this machine, each in words for the person who asked."""

from collections.abc import Sequence


class LocalError(Exception):
    """A sentence or a few lines that say what is wrong and what to do about it. No stack trace is needed."""


class BadLayout(LocalError):  # noqa: N818
    """A cluster that cannot be."""


class NoCluster(LocalError):  # noqa: N818
    """There is no cluster in the directory."""


class PortsTaken(LocalError):  # noqa: N818
    def __init__(self, ports: Sequence[int], text: str) -> None:
        super().__init__(text)
        self.ports = list(ports)


class NodeDidNotStart(LocalError):  # noqa: N818
    """A node ended, or went on for too long, before it was ready; with the end of what it said."""

    def __init__(self, node_id: int, what_happened: str, log: object, said: str) -> None:
        last_words = "\n".join(f"  | {line}" for line in said.splitlines()) or "  | (nothing)"
        super().__init__(f"node {node_id} {what_happened}. The end of {log}:\n{last_words}")
        self.node_id = node_id
