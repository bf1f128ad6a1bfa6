"""A cluster on this machine as a person watches it: brokers by rack, what flows, what happened, and how to break it.

A function from what was seen to something that can be printed; `watching.py` looks and shows.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from klamm.cli.console import OwnConsole
from klamm.cli.saying import counted
from klamm.cli.tips import directory_option, tips
from klamm.escaping import one_line
from klamm.local.happenings import roughly
from klamm.local.look import Look, named
from klamm.local.rates import Rates, total
from klamm.local.record import NodeRecord
from klamm.local.storage_seen import sized
from klamm.local.words import BELOW_MIN_IN_SYNC, listed, state_word, undecided

FEWEST_HAPPENINGS, WANTED_HAPPENINGS = 3, 6
"""Where fewer have room than are wanted, some tips are left out."""
MOST_GROUPS, FEWEST_GROUP_LINES = 5, 3
LABEL = 19
"""Columns of what stands before the bootstrap servers."""
WIDE = 110
"""Columns of a terminal on which everything has room. On fewer, bytes that come in are left out."""
TEXTS = ("rack", "broker", "role")
NUMBERS = ("leads", "in sync", "lagging", "in rec/s", "in B/s", "out B/s", "log")
LEFT_OUT = ("in B/s", "log", "out B/s", "in rec/s", "lagging", "rack", "leads")
"""In this order, until the rest has room: a figure without its unit says less than none."""
LONGEST_SENTENCE = 1_000
END_IT, CTRL_C_ECHOED = "end it", "^C"
COMMITTED_RATE, FEWEST_FOR_IT = "committed rec/s", 60


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
    above = Group(_head(scene, columns), Text(), _nodes(scene, columns), Text())
    below = _footer(scene, columns)
    # One line is left free: a screen that is full to the last line scrolls.
    room = lines - 1 - _height(above, columns) - _height(below, columns)
    if room < WANTED_HAPPENINGS + (FEWEST_GROUP_LINES if scene.look.committed else 0):
        below = _footer(scene, columns, brief=True)
        room = lines - 1 - _height(above, columns) - _height(below, columns)
    groups = Group(*_groups(scene, room, columns))
    happened = _happened(scene, max(FEWEST_HAPPENINGS, room - _height(groups, columns)))
    return Group(above, groups, happened, below)


def _height(what: RenderableType, columns: int) -> int:
    """In lines: what is there to be copied is folded where it is long."""
    return len(OwnConsole(width=columns).render_lines(what))


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


def _head(scene: Scene, columns: int) -> RenderableType:
    look = scene.look
    servers = Text.assemble((f"{'bootstrap servers':{LABEL}}", "dim"), (scene.bootstrap_servers, "bold green"))
    # What is there to be copied must not be cut, however narrow the terminal.
    servers.overflow = "fold"
    lines: list[RenderableType] = [servers, _cluster(look, columns)]
    if not look.can_decide:
        lines.append(Text(undecided(look.nodes, look.running), style="bold red"))
    if not look.is_answered:
        before = "; what is shown is what was known before" if look.is_known else ""
        lines.append(Text(f"no broker answers{before}", style="bold red"))
    return Group(*lines)


def _cluster(look: Look, columns: int) -> RenderableType:
    """What is in it, and how it is: beside that, or below where there is no room. How it is now, nobody knows where no
    broker answers."""
    contents = Text(_contents(look) if look.is_known else "unknown")
    trouble = _trouble(look) if look.is_answered else Text()
    between = "" if not trouble else "   " if LABEL + len(contents) + 3 + len(trouble) <= columns else "\n"
    grid = Table.grid()
    grid.add_column(style="dim", width=LABEL, no_wrap=True)
    grid.add_column()
    grid.add_row("cluster", Text.assemble(contents, between, trouble))
    return grid


def _trouble(look: Look) -> Text:
    offline = sum(each.is_offline for each in look.partitions.values())
    behind = sum(each.is_under_replicated for each in look.partitions.values())
    below = [each for each in look.partitions.values() if each.is_below_min_in_sync]
    if offline:
        return Text(f"{counted(offline, 'partition')} without a leader", style="bold red")
    if disks := look.troubled_disks:
        told = [f"broker {broker_id} {trouble}" for broker_id, trouble in disks.items()]
        return Text("; ".join(told), style="bold red")
    if below:
        return Text(f"{BELOW_MIN_IN_SYNC}: {listed(below)}", style="bold yellow")
    if behind:
        return Text(f"{counted(behind, 'partition')} not in sync everywhere", style="yellow")
    return Text("everything in sync" if look.partitions else "nothing in it yet", style="green")


def _nodes(scene: Scene, columns: int) -> Table:
    is_wide = columns >= WIDE
    for fewer in range(0 if is_wide else 1, len(LEFT_OUT) + 1):
        grid = _table(scene, LEFT_OUT[:fewer], gap=2 if is_wide else 1)
        if OwnConsole(width=columns * 10).measure(grid).maximum <= columns:
            break
    return grid


def _table(scene: Scene, left_out: Collection[str], gap: int) -> Table:
    grid = Table(box=None, pad_edge=False, header_style="dim", padding=(0, gap, 0, 0))
    headings = [each for each in (*TEXTS, *NUMBERS) if each not in left_out]
    for heading in headings:
        grid.add_column(heading, justify="left" if heading in TEXTS else "right", no_wrap=True)
    rack: str | None = ""
    for node in sorted(scene.look.nodes, key=lambda node: (node.rack is None, node.rack or "", node.node_id)):
        cells = {"rack": "" if node.rack == rack else one_line(node.rack or "-"), **_node(scene, node)}
        rack = node.rack
        grid.add_row(*(cells.get(each, "") for each in headings))
    if len(scene.look.nodes) > 1:
        everything = {"broker": "all", **_flow(total(dict(scene.rates)), bool(scene.look.figures))}
        grid.add_row(*(everything.get(each, "") for each in headings), style="dim")
    return grid


def _node(scene: Scene, node: NodeRecord) -> dict[str, RenderableType]:
    """Cells, by their headings."""
    look, state = scene.look, scene.look.state(node.node_id)
    name = Text(str(node.node_id), style="bold" if state == "running" else "red")
    if not node.is_broker:
        return {"broker": name, "role": _role(look, node)}
    held = [each for each in look.own if node.node_id in each.replicas]
    in_sync = sum(node.node_id in each.in_sync for each in held)
    is_known = look.is_answered and not look.is_unnoticed(node.node_id)
    return {
        "broker": name,
        "role": _role(look, node),
        "leads": str(sum(each.leader == node.node_id for each in held)) if is_known else "-",
        "in sync": f"{in_sync} of {len(held)}" if held and is_known else "-",
        "lagging": _lagging(look, node.node_id) if look.is_answered else Text("-", style="dim"),
        **_flow(scene.rates.get(node.node_id, Rates()), node.node_id in look.figures),
        "log": sized(sum(look.sizes[node.node_id].values())) if node.node_id in look.sizes else "-",
    }


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


def _flow(rates: Rates, knows_out: bool) -> dict[str, str]:
    """A broker without metrics does not tell what it gives to consumers."""
    bytes_in, bytes_out = (sized(each) if each >= 0.5 else "-" for each in (rates.bytes_in, rates.bytes_out))
    return {"in rec/s": _a_second(rates.records_in), "in B/s": bytes_in, "out B/s": bytes_out if knows_out else "?"}


def _a_second(records: float) -> str:
    return f"{records:,.0f}" if records >= 0.5 else "-"


def _groups(scene: Scene, room: int, columns: int) -> list[RenderableType]:
    """What consumer groups have read, as far as they have said so: those that lag most, and a blank line. Where what
    happened leaves no room for that, how many there are."""
    look = scene.look
    groups = sorted(look.committed, key=lambda group: (-(look.lag(group) or 0), group))
    to_tell = max(1, len(scene.happened))
    most = min(MOST_GROUPS, room - min(WANTED_HAPPENINGS, to_tell) - 2)
    if not groups:
        return []
    if most < min(2, len(groups)):
        hint = Text(f"{counted(len(groups), 'group')}: `klamm group list{directory_option(scene.directory)}`")
        fits = _height(hint, columns) + 1 + min(FEWEST_HAPPENINGS, to_tell) <= room
        return [hint, Text()] if fits else []
    grid = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    grid.add_column("group", no_wrap=True, overflow="ellipsis")
    knows_rate = columns >= FEWEST_FOR_IT
    for heading in ("members", "lag", *((COMMITTED_RATE,) if knows_rate else ())):
        grid.add_column(heading, justify="right", no_wrap=True)
    shown = groups if len(groups) <= most else groups[: most - 1]
    for group in shown:
        members, lag = look.members(group), look.lag(group)
        grid.add_row(
            Text(one_line(group)),
            "-" if members is None else str(members),
            "-" if lag is None else f"{lag:,}",
            *((_a_second(scene.reading.get(group, 0.0)),) if knows_rate else ()),
        )
    if len(shown) < len(groups):
        grid.add_row(f"{len(groups) - len(shown)} more", style="dim")
    return [grid, Text()]


def _happened(scene: Scene, most: int) -> RenderableType:
    if not scene.happened:
        return Text("nothing has happened yet", style="dim")
    # Lines and not a table, which would take room from the times for the longest sentence.
    lines = [
        Text.assemble((each.at, "dim"), "  ", one_line(each.what, LONGEST_SENTENCE)) for each in scene.happened[-most:]
    ]
    for line in lines:
        line.no_wrap, line.overflow = True, "ellipsis"
    return Group(*lines)


def _footer(scene: Scene, columns: int, *, brief: bool = False) -> RenderableType:
    if scene.look.was_stopped:
        return Group()  # It is the last picture: nobody watches what is typed next, and nothing is there to be ended.
    shown = [tip for tip in tips(scene.look, scene.directory) if not brief or tip.is_needed]
    label = max(len(each) for each in (END_IT, *(tip.what_for for tip in shown)))
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for tip in shown:
        grid.add_row(tip.what_for, tip.command)
    return Group(Text(), *([grid] if shown else []), *_ending(scene, label + 2, columns))


def _ending(scene: Scene, before: int, columns: int) -> list[Text]:
    """Beside the last line there is room for what the terminal writes there when somebody presses Ctrl-C. Else that
    begins a line of its own, and the picture which is drawn over this one begins a line too low."""
    lines = Text(scene.ending).wrap(OwnConsole(width=columns), max(1, columns - before - len(CTRL_C_ECHOED)))
    return [Text.assemble((f"{'' if number else END_IT:{before}}", "dim"), line) for number, line in enumerate(lines)]
