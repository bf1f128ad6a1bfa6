"""Who stands where: brokers in racks, and which nodes vote in the metadata quorum.

Brokers are numbered in blocks, rack after rack: of six brokers in two racks R1 has 0, 1, 2 and R2 has 3, 4, 5. Voters
are chosen so that a lost rack never takes the majority with it. With three racks or more, one broker in each of three
votes. Of two racks one always holds half of the votes or more, so a third vote stands outside: a witness, a small node
that is a controller and nothing else. In one rack three brokers vote; where there are fewer, one does: a second vote
would make a second node that cannot be spared.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from klamm.local.problems import BadLayout

BROKER, CONTROLLER = "broker", "controller"
VOTERS = 3

Block: TypeAlias = range
"""The brokers of one rack."""


@dataclass(frozen=True, slots=True)
class PlannedNode:
    node_id: int
    rack: str | None
    """None for a witness, which stands outside the racks."""
    roles: tuple[str, ...]

    @property
    def is_broker(self) -> bool:
        return BROKER in self.roles

    @property
    def is_voter(self) -> bool:
        return CONTROLLER in self.roles


def planned(brokers: int, racks: int) -> tuple[PlannedNode, ...]:
    """The nodes of such a cluster, by id. The witness, if there is one, comes last."""
    blocks = _blocks(brokers, racks)
    voters = _voting_brokers(blocks)
    nodes = [
        PlannedNode(node_id, f"R{number}", (BROKER, CONTROLLER) if node_id in voters else (BROKER,))
        for number, block in enumerate(blocks, start=1)
        for node_id in block
    ]
    if racks == 2:
        nodes.append(PlannedNode(brokers, None, (CONTROLLER,)))
    return tuple(nodes)


def has_majority(nodes: Sequence[PlannedNode], alive: set[int]) -> bool:
    """Whether these nodes, of them, are enough for the quorum to decide."""
    voters = [node.node_id for node in nodes if node.is_voter]
    return 2 * sum(voter in alive for voter in voters) > len(voters)


def brokers_gone(nodes: Sequence[PlannedNode], running: set[int], *, is_undecided: bool = False) -> list[int]:
    """Brokers that do not run, where the quorum has no majority to decide it, or had none and has not decided since.
    What the others say of them is from before. (Where none runs, and yet somebody answers, they run where we do not see
    them.)"""
    if not running or (has_majority(nodes, running) and not is_undecided):
        return []
    return [node.node_id for node in nodes if node.is_broker and node.node_id not in running]


def voters_that_run(nodes: Sequence[PlannedNode], alive: set[int]) -> str:
    """`1 of 3 voters runs`"""
    voters = [node.node_id for node in nodes if node.is_voter]
    running = sum(voter in alive for voter in voters)
    return f"{running} of {_counted(len(voters), 'voter')} {'runs' if running == 1 else 'run'}"


def listed(node_ids: Sequence[int]) -> str:
    """`node 1`, or `nodes 0, 2`"""
    return f"node{'' if len(node_ids) == 1 else 's'} {', '.join(map(str, node_ids))}"


def _blocks(brokers: int, racks: int) -> list[Block]:
    """As even as can be, the larger ones first."""
    if brokers < 1 or racks < 1:
        raise BadLayout("a cluster needs at least one broker and one rack")
    if racks > brokers:
        raise BadLayout(f"{racks} racks cannot be filled with {_counted(brokers, 'broker')}; a rack needs at least one")
    size, larger = divmod(brokers, racks)
    starts = [number * size + min(number, larger) for number in range(racks + 1)]
    return [range(start, end) for start, end in pairwise(starts)]


def _voting_brokers(blocks: Sequence[Block]) -> set[int]:
    if len(blocks) > 1:
        return {block[0] for block in blocks[:VOTERS]}
    (block,) = blocks
    return set(block[:VOTERS] if len(block) >= VOTERS else block[:1])


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
