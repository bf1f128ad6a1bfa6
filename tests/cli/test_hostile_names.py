"""Whatever a broker says, a terminal shows it and does nothing else: every command that shows something of a cluster,
against one whose every text is an attack."""

import re
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.table import Table

from klamm.cli import main
from klamm.cli.cluster_view import Happened, Scene, live, summary
from klamm.cli.console import OwnConsole
from klamm.cli.consume_formats import format_of
from klamm.cli.group_asking import Cluster
from klamm.cli.produce_obstacles import obstacle_to
from klamm.cli.saying import failed, say, say_result, table
from klamm.cli.status import text
from klamm.errors import ErrorCode
from klamm.local.deciding import NodeState, WhoRuns
from klamm.local.happenings import happenings
from klamm.local.record import ClusterRecord
from klamm.local.view import BrokerSeen, ClusterSeen, PartitionSeen
from tests.cli.hostile_broker import EVIL, FORGED, LONG, HostileBroker
from tests.local.looks import NODES, healthy

WIDEST = 1_500
HARMFUL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
OUR_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
SOURCE = Path(__file__).parent.parent.parent / "src" / "klamm" / "cli"
OWN_PRINTS = {"saying.py", "progress.py", "completion.py"}
"""The door itself; a line of ours that is drawn over; names for a shell, one by one behind `one_line`."""

COMMANDS = (
    ("group", "list"),
    ("group", "describe", "--all", "--members"),
    ("group", "describe", EVIL[:-1], "--members"),
    ("group", "delete", EVIL[:-1]),
    ("group", "reset-offsets", EVIL[:-1], "--topic", "t", "--to-earliest"),
    ("group", "delete-offsets", EVIL[:-1], "--topic", "t"),
    ("topic", "list"),
    ("topic", "describe", "t"),
    ("topic", "describe", EVIL[:-1]),
    ("topic", "placement", "t"),
    ("topic", "moves"),
    ("config", "show", "topic", "t", "--all"),
    ("config", "show", "topic", "t", EVIL[:-1]),
    ("config", "set", "topic", "t", "retention.ms=5"),
)


def check_harmless(printed: str) -> None:
    found = HARMFUL.search(printed)
    assert found is None, f"{found[0]!r} in {printed[max(0, found.start() - 80) : found.end() + 20]!r}"
    lines = printed.split("\n")
    assert not [line[:80] for line in lines if line.startswith(FORGED)], "a name begins no line"
    assert max(map(len, lines)) <= WIDEST


@pytest.fixture(params=[0, ErrorCode.POLICY_VIOLATION], ids=["granted", "refused"])
def broker(request: pytest.FixtureRequest) -> Iterator[HostileBroker]:
    with HostileBroker(request.param) as broker:
        yield broker


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(word for word in words if word.isascii())[:40])
def test_a_command_shows_no_control_character(
    broker: HostileBroker, words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("klamm.cli.group_asking.PATIENCE_SECONDS", 0.5)
    monkeypatch.setattr("klamm.cli.group_asking.LEADER_SECONDS", 0.5)
    main([*words, "--bootstrap", str(broker.address)])
    printed = capsys.readouterr()
    assert printed.out or printed.err
    check_harmless(printed.out)
    check_harmless(printed.err)


def test_what_is_in_the_way_of_a_producer(broker: HostileBroker) -> None:
    told = obstacle_to(Cluster([broker.address]), "t", None, needs_all=True)
    assert told is not None
    failed("produce", told)


def test_the_door(capsys: pytest.CaptureFixture[str]) -> None:
    say(EVIL.replace("\n", " "))
    say_result(table(("name", "other"), [(EVIL, LONG)]))
    failed("any", f"refused: {EVIL}")
    failed("any", f"refused: {LONG}")
    printed = capsys.readouterr()
    for stream in (printed.out, printed.err):
        lines = [line for line in stream.splitlines() if len(line) < WIDEST]
        check_harmless("\n".join(lines))
    assert "\\x1b[31mred" in printed.err and "\\x1b[31mred" in printed.out


def test_nothing_is_printed_past_the_door() -> None:
    prints = [
        f"{path.name}: {line.strip()}"
        for path in sorted(SOURCE.glob("*.py"))
        if path.name not in OWN_PRINTS
        for line in path.read_text().splitlines()
        if re.search(r"(?<![\w.])print\(|(?<!Own)Console\(", line) and not line.strip().startswith("class ")
    ]
    assert not prints, "say and say_result escape what others wrote; OwnConsole does for rich"


RECORD = ClusterRecord("an-id", "127.0.0.1", {}, NODES)


def hostile_seen() -> ClusterSeen:
    brokers = tuple(BrokerSeen(node.node_id, EVIL, EVIL, node.port, True) for node in NODES)
    partitions = tuple(PartitionSeen(name, 0, -1, (0, 1), (0,), False, 2) for name in (EVIL, LONG[:249]))
    return ClusterSeen(EVIL, 0, brokers, partitions)


def test_status(capsys: pytest.CaptureFixture[str]) -> None:
    nodes = tuple(replace(node, rack=EVIL) for node in NODES)
    who = WhoRuns(tuple(NodeState(node, "running") for node in nodes))
    say_result(text(Path("here"), RECORD, who, hostile_seen()))
    check_harmless(capsys.readouterr().out)


def hostile_look() -> Any:
    seen = {(each.topic, 0): each for each in hostile_seen().partitions}
    nodes = tuple(replace(node, rack=EVIL) for node in NODES)
    return replace(
        healthy(), nodes=nodes, partitions=seen, committed={EVIL: {}, LONG: {}, "[red]g[/red]": {}, ":smile:": {}}
    )


@pytest.mark.parametrize("columns", [60, 100, 160])
def test_the_live_view(columns: int) -> None:
    drawn = StringIO()
    console = OwnConsole(file=drawn, width=columns, height=50, force_terminal=True)
    happened = [Happened("12:00:00", what) for what in (EVIL, LONG, *happenings(healthy(), hostile_look()))]
    console.print(live(Scene(Path("here"), "b:1", hostile_look(), happened=happened), 50, columns))
    shown = OUR_COLOURS.sub("", drawn.getvalue())
    check_harmless(shown)
    assert max(map(len, shown.splitlines())) <= columns
    assert columns < 100 or "[red]g[/red]" in shown, "the name of a group is no markup"


def test_lines_for_what_happens(capsys: pytest.CaptureFixture[str]) -> None:
    for told in (summary(hostile_look()), *happenings(healthy(), hostile_look())):
        say_result(f"12:00:00 {told}")
    check_harmless(capsys.readouterr().out)


def test_the_console_takes_no_markup_and_lets_no_control_character_through() -> None:
    drawn = StringIO()
    console = OwnConsole(file=drawn, width=200, force_terminal=True)
    grid = Table(f"head {EVIL}")
    grid.add_row(EVIL)
    console.print(grid)
    console.print(EVIL, style="red")
    shown = drawn.getvalue()
    assert "[bold]no markup[/bold] :smile:" in shown
    assert OUR_COLOURS.search(shown), "ours are there"
    assert HARMFUL.search(OUR_COLOURS.sub("", shown)) is None


# Records.

BYTES = b"\x1b[2Jv\x9b\xc2\x9b\xe2\x80\xae\ttab\nline\xff"


def record() -> Any:
    return SimpleNamespace(
        key=lambda: b"\x1bk",
        value=lambda: BYTES,
        headers=lambda: [("\x1bh", b"\x07")],
        partition=lambda: 0,
        offset=lambda: 1,
        timestamp=lambda: (1, 2),
    )


@pytest.mark.parametrize(("pattern", "prefix"), [("value", ()), ("value", ("%h", "%k")), ("%h %k %v\\n", ())])
def test_records_on_a_terminal_are_shown_and_in_a_file_are_what_they_are(pattern: str, prefix: Any) -> None:
    kept = format_of(pattern, "t", b"", prefix, "|")([record()])
    shown = format_of(pattern, "t", b"", prefix, "|", for_terminal=True)([record()]).decode()
    assert BYTES in kept
    assert HARMFUL.search(shown.replace("\t", "")) is None
    assert "\\x1b[2Jv\\x9b\\x9b\\u202e\ttab\nline\\xff" in shown
    assert not prefix or "\\x1bh=\\x07|\\x1bk|" in shown


def test_a_patterns_own_escapes_are_its_writers_wish() -> None:
    shown = format_of(r"\x1b[1m%k\x1b[0m\n", "t", b"", (), "|", for_terminal=True)([record()])
    assert shown == b"\x1b[1m\\x1bk\x1b[0m\n"


def test_json_on_a_terminal_is_the_same_json() -> None:
    import json

    (shown, kept) = (format_of("json", "t", b"", (), "|", for_terminal=it)([record()]) for it in (True, False))
    assert json.loads(shown) == json.loads(kept)
    assert HARMFUL.search(shown.decode().rstrip("\n")) is None
