"""A cluster on this machine as a person watches it: brokers by rack, what flows, what happened, and how to break it.

A function from what was seen to something that can be printed; `watching.py` looks and shows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from klamm.cli.saying import counted
from klamm.cli.tips import tips
from klamm.local.happenings import roughly
from klamm.local.look import Look, named
from klamm.local.rates import Rates, total
from klamm.local.record import NodeRecord
from klamm.local.words import BELOW_MIN_IN_SYNC, listed, state_word, undecided

UNITS = ("B", "kB", "MB", "GB", "TB")
FEWEST_HAPPENINGS, WANTED_HAPPENINGS = 3, 6
"""Where fewer have room than are wanted, some tips are left out."""
MOST_GROUPS, FEWEST_GROUP_LINES = 5, 3
WIDE = 110
"""Columns of a terminal on which everything has room. On fewer, bytes that come in are left out."""


@dataclass(frozen=True, slots=True)
class Happened:
    at: str
    """The time of day."""
    what: str


@dataclass(frozen=True, slots=True)
class Scene:
    """All there is to show."""

    directory: Path
    bootstrap_servers: str
    look: Look
    rates: Mapping[int, Rates] = field(default_factory=dict)
    reading: Mapping[str, float] = field(default_factory=dict)
    """By consumer group: records a second."""
    happened: Sequence[Happened] = ()
    """The latest last."""
    ending: str = "Ctrl-C stops the cluster; its data stays"


def live(scene: Scene, lines: int, columns: int = WIDE) -> RenderableType:
    """On a terminal of this size."""
    above = Group(_head(scene), Text(), _nodes(scene, columns >= WIDE), Text())
    below = _footer(scene)
    # One line is left free: a screen that is full to the last line scrolls.
    room = lines - 1 - _height(above, columns) - _height(below, columns)
    if room < WANTED_HAPPENINGS + (FEWEST_GROUP_LINES if scene.look.committed else 0):
        below = _footer(scene, brief=True)
        room = lines - 1 - _height(above, columns) - _height(below, columns)
    groups = Group(*_groups(scene, room - WANTED_HAPPENINGS))
    happened = _happened(scene, max(FEWEST_HAPPENINGS, room - _height(groups, columns)))
    return Group(above, groups, happened, below)


def _height(what: RenderableType, columns: int) -> int:
    """In lines: what is there to be copied is folded where it is long."""
    return len(Console(width=columns).render_lines(what))


def summary(look: Look) -> str:
    """The cluster in a line, for who cannot be shown more."""
    running = sum(look.state(node.node_id) == "running" for node in look.nodes)
    told = f"{_contents(look)}, {_trouble(look)}" if look.is_answered else "no broker answers"
    majority = "" if look.can_decide else ", no majority"
    return f"{running} of {counted(len(look.nodes), 'node')} running{majority}; {told}"


def _contents(look: Look) -> str:
    topics, internal = {each.topic for each in look.own}, len(look.partitions) - len(look.own)
    facts = [counted(len(topics), "topic"), counted(len(look.own), "partition")]
    return ", ".join([*facts, f"{internal} internal"] if internal else facts)


def _head(scene: Scene) -> RenderableType:
    look = scene.look
    lines = [
        Text.assemble(("bootstrap servers  ", "dim"), (scene.bootstrap_servers, "bold green")),
        Text.assemble(("cluster            ", "dim"), f"{_contents(look)}   ", _trouble(look)),
    ]
    if not look.can_decide:
        lines.append(Text(undecided(look.nodes, look.running), style="bold red"))
    if not look.is_answered:
        lines.append(Text("no broker answers; what is shown is what was known before", style="bold red"))
    # What is there to be copied must not be cut, however narrow the terminal.
    lines[0].overflow = "fold"
    return Group(*lines)


def _trouble(look: Look) -> Text:
    offline = sum(each.is_offline for each in look.partitions.values())
    behind = sum(each.is_under_replicated for each in look.partitions.values())
    below = [each for each in look.partitions.values() if each.is_below_min_in_sync]
    if offline:
        return Text(f"{counted(offline, 'partition')} without a leader", style="bold red")
    if below:
        return Text(f"{BELOW_MIN_IN_SYNC}: {listed(below)}", style="bold yellow")
    if behind:
        return Text(f"{counted(behind, 'partition')} not in sync everywhere", style="yellow")
    return Text("everything in sync" if look.partitions else "nothing in it yet", style="green")


def _nodes(scene: Scene, is_wide: bool) -> Table:
    grid = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2 if is_wide else 1, 0, 0))
    for heading in ("rack", "broker", "role"):
        grid.add_column(heading, no_wrap=True)
    flow = ("in rec/s", "in B/s", "out B/s") if is_wide else ("in rec/s", "out B/s")
    for heading in ("leads", "in sync", "lagging", *flow, "log"):
        grid.add_column(heading, justify="right", no_wrap=True)
    rack: str | None = ""
    for node in sorted(scene.look.nodes, key=lambda node: (node.rack is None, node.rack or "", node.node_id)):
        shown_rack = "" if node.rack == rack else node.rack or "-"
        rack = node.rack
        grid.add_row(shown_rack, *_node(scene, node, is_wide))
    if len(scene.look.nodes) > 1:
        everything = _flow(total(dict(scene.rates)), is_wide, bool(scene.look.figures))
        grid.add_row("", "all", "", "", "", "", *everything, "", style="dim")
    return grid


def _node(scene: Scene, node: NodeRecord, is_wide: bool) -> list[RenderableType]:
    look, state = scene.look, scene.look.state(node.node_id)
    name = Text(str(node.node_id), style="bold" if state == "running" else "red")
    if not node.is_broker:
        return [name, _role(look, node)]
    held = [each for each in look.own if node.node_id in each.replicas]
    leads = sum(each.leader == node.node_id for each in held)
    in_sync = sum(node.node_id in each.in_sync for each in held)
    size = sum(look.sizes.get(node.node_id, {}).values())
    return [
        name,
        _role(look, node),
        str(leads),
        f"{in_sync} of {len(held)}" if held else "-",
        _lagging(look, node.node_id),
        *_flow(scene.rates.get(node.node_id, Rates()), is_wide, node.node_id in look.figures),
        sized(size),
    ]


def _role(look: Look, node: NodeRecord) -> Text:
    state = look.state(node.node_id)
    if state != "running":
        style = "bold red" if state == "dead" else "bold yellow"
        return Text(state_word(state, node.node_id in look.stopped), style=style)
    if node.is_broker and look.is_answered and node.node_id not in look.live:
        return Text("starting", style="yellow")
    if look.controller == node.node_id and look.can_decide:
        return Text("controller", style="cyan")
    if node.is_voter:
        return Text("voter" if node.is_broker else "witness")
    return Text("-", style="dim")


def _lagging(look: Look, broker_id: int) -> Text:
    """How many replicas, and how many records they lack together."""
    lagging = [each for each in look.out_of_sync(broker_id) if not each.is_internal]
    if not lagging:
        return Text("-", style="dim")
    behind = sum(look.behind(broker_id, named(each)) for each in lagging)
    return Text(f"{len(lagging)} (-{roughly(behind)})" if behind else str(len(lagging)), "yellow")


def _flow(rates: Rates, is_wide: bool, knows_out: bool) -> list[str]:
    """A broker without metrics does not tell what it gives to consumers."""
    bytes_in, bytes_out = (sized(each) if each >= 0.5 else "-" for each in (rates.bytes_in, rates.bytes_out))
    return [_a_second(rates.records_in), *([bytes_in] if is_wide else []), bytes_out if knows_out else "?"]


def _a_second(records: float) -> str:
    return f"{records:,.0f}" if records >= 0.5 else "-"


def _groups(scene: Scene, most_lines: int) -> list[RenderableType]:
    """What consumer groups have read, as far as they have said so: those that lag most, and a blank line."""
    look = scene.look
    groups = sorted(look.committed, key=lambda group: (-(look.lag(group) or 0), group))
    most = min(MOST_GROUPS, most_lines - 2)
    if not groups or most < min(2, len(groups)):
        return []
    grid = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    grid.add_column("group", no_wrap=True, overflow="ellipsis")
    for heading in ("members", "lag", "committed rec/s"):
        grid.add_column(heading, justify="right", no_wrap=True)
    shown = groups if len(groups) <= most else groups[: most - 1]
    for group in shown:
        members, lag = look.members(group), look.lag(group)
        grid.add_row(
            Text(group),
            "-" if members is None else str(members),
            "-" if lag is None else f"{lag:,}",
            _a_second(scene.reading.get(group, 0.0)),
        )
    if len(shown) < len(groups):
        grid.add_row(f"{len(groups) - len(shown)} more", style="dim")
    return [grid, Text()]


def _happened(scene: Scene, most: int) -> RenderableType:
    if not scene.happened:
        return Text("nothing has happened yet", style="dim")
    # Lines and not a table, which would take room from the times for the longest sentence.
    lines = [Text.assemble((each.at, "dim"), "  ", each.what) for each in scene.happened[-most:]]
    for line in lines:
        line.no_wrap, line.overflow = True, "ellipsis"
    return Group(*lines)


def _footer(scene: Scene, *, brief: bool = False) -> RenderableType:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for tip in tips(scene.look, scene.directory):
        if not brief or tip.is_needed:
            grid.add_row(tip.what_for, tip.command)
    grid.add_row("end it", scene.ending)
    return Group(Text(), grid)


def sized(size: float) -> str:
    """`970 B`, `1.4 MB`."""
    for unit in UNITS:
        if size < 1_000 or unit == UNITS[-1]:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1_000
    raise AssertionError("the last unit takes everything")
