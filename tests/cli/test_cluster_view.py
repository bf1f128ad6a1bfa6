"""The live view of a cluster, as text."""

from dataclasses import replace
from pathlib import Path

from rich.console import Console

from klamm.cli.cluster_view import Happened, Scene, live, summary
from klamm.cli.options import DEFAULT_DIRECTORY
from klamm.local.figures import Figures
from klamm.local.look import Look
from klamm.local.rates import Rates
from klamm.local.storage_seen import sized
from klamm.local.view import PartitionSeen
from tests.local.looks import grown, healthy, place, without

SERVERS = "127.0.0.1:19092,127.0.0.1:19093,127.0.0.1:19094"
HERE = Path(DEFAULT_DIRECTORY).absolute()


def drawn(scene: Scene, lines: int = 40, width: int = 140) -> list[str]:
    console = Console(width=width, height=lines, force_terminal=False, no_color=True)
    with console.capture() as captured:
        console.print(live(scene, lines, width))
    return [line.rstrip() for line in captured.get().splitlines()]


def row(scene: Scene, broker: int) -> list[str]:
    """The cells of one broker, without its rack."""
    rows = [line.split() for line in drawn(scene)[4:12]]
    (found,) = [cells for cells in rows if cells[:1] == [str(broker)] or cells[1:2] == [str(broker)]]
    return found[found.index(str(broker)) :]


def scene(look: Look) -> Scene:
    return Scene(HERE, SERVERS, look)


def test_a_healthy_cluster_by_rack_with_roles_and_sizes() -> None:
    shown = drawn(scene(healthy()))
    assert shown[0] == f"bootstrap servers  {SERVERS}"
    assert shown[1].split() == ["cluster", "1", "topic,", "10", "partitions", "everything", "in", "sync"]
    table = [line.split() for line in shown[3:12]]
    assert [cells[0] for cells in table if cells[0] in ("R1", "R2", "-")] == ["R1", "R2", "-"]
    assert table[1] == ["R1", "0", "controller", "2", "4", "of", "4", "-", "-", "-", "-", "400.0", "kB"]
    assert row(scene(healthy()), 3)[:2] == ["3", "voter"]
    assert row(scene(healthy()), 6) == ["6", "witness"]


def test_a_broker_that_is_dead_lags_and_how_to_mend_it() -> None:
    look = grown(without(healthy(), 0), 310)
    assert row(scene(look), 0)[:8] == ["0", "dead", "0", "0", "of", "4", "4", "(-1,240)"]
    shown = "\n".join(drawn(scene(look)))
    assert "4 partitions not in sync everywhere" in shown
    assert "mend it  klamm node start 0\n" in shown and "klamm node kill" not in shown


def test_what_brokers_say_of_one_that_has_just_died_is_from_before() -> None:
    """Until they say otherwise: that it is fenced, or at least that it is in sync nowhere."""
    killed = replace(healthy(), states={**healthy().states, 0: "dead"})
    assert row(scene(killed), 0)[:5] == ["0", "dead", "-", "-", "-"]
    assert row(scene(replace(killed, live=killed.live - {0})), 0)[:6] == ["0", "dead", "2", "4", "of", "4"]
    without_majority = replace(without(healthy(), 0), live=healthy().live)
    assert row(scene(without_majority), 0)[:6] == ["0", "dead", "0", "0", "of", "4"]


def test_partitions_that_refuse_acks_all_are_named() -> None:
    look = healthy()
    short = {place(each): PartitionSeen("invoice", each, 3, (3, 1, 4), (3,), False, 2) for each in (1, 7)}
    shown = "\n".join(drawn(scene(replace(look, partitions={**look.partitions, **short}))))
    assert "below min.insync.replicas: invoice-1 and invoice-7\n" in shown


def test_what_flows() -> None:
    flowing = replace(scene(healthy()), rates={0: Rates(1_200, 340_000, 255_000), 3: Rates(800, 160_000)})
    assert row(flowing, 0)[7:14] == ["1,200", "340.0", "kB", "255.0", "kB", "400.0", "kB"]
    (everything,) = [line.split() for line in drawn(flowing) if line.split()[:1] == ["all"]]
    assert everything == ["all", "2,000", "500.0", "kB", "255.0", "kB"]


def test_where_no_broker_serves_metrics_nobody_says_what_goes_out() -> None:
    silent = scene(replace(healthy(), figures={}))
    assert row(silent, 0)[6:] == ["-", "-", "-", "?", "400.0", "kB"]


def test_what_groups_have_read_where_there_is_room() -> None:
    """Those that lag most come first."""
    look = replace(
        healthy(),
        committed={"audit": {place(0): 990}, "billing": {place(0): 0, place(1): 900}, "new": {}},
        figures={0: Figures({}, {"audit": 2, "new": 1})},
    )
    shown = drawn(replace(scene(look), reading={"billing": 1_200.0}))
    assert [line.split() for line in shown if line[:5] in ("group", "audit", "billi", "new  ")] == [
        ["group", "members", "lag", "committed", "rec/s"],
        ["billing", "-", "1,100", "1,200"],
        ["audit", "2", "10", "-"],
        ["new", "1", "-", "-"],
    ]
    many = replace(look, committed={f"group-{number}": {place(0): number} for number in range(9)})
    shown = drawn(scene(many))
    assert any("group-3" in line for line in shown) and not any("group-4" in line for line in shown)
    assert "5 more" in shown
    low = drawn(scene(many), lines=20)
    assert len(low) <= 20 and "9 groups: `klamm group list`" in low and not any("group-0" in line for line in low)


def test_on_eighty_columns_nothing_to_copy_is_cut() -> None:
    far = Path("/a/long/way/from/here/to/where/the/clusters/data/is/kept/on/this/machine")
    narrow = replace(scene(grown(without(healthy(), 0), 31_000)), directory=far, rates={3: Rates(1_200, 9, 8_000)})
    shown = drawn(narrow, width=80)
    assert all(len(line) <= 80 for line in shown) and not any("…" in line for line in shown)
    assert "".join(shown).replace(" ", "").count(f"klammnodestart0--dir{far}") == 1
    (leader,) = [line.split() for line in shown if line.split()[:2] == ["R2", "3"]]
    assert leader[-5:] == ["1,200", "8.0", "kB", "16.0", "MB"]


def test_beside_the_last_line_there_is_room_for_ctrl_c() -> None:
    """The terminal writes it there. Where a command above filled all columns, the last line had as many, of blanks:
    the view was drawn once more a line too low, and its first line stood twice."""
    for width in range(30, 121):
        wide = replace(scene(healthy()), directory=Path("/" + "x" * (width - 38)))
        console = Console(width=width, height=40, force_terminal=False, no_color=True)
        with console.capture() as captured:
            console.print(live(wide, 40, width))
        last = captured.get().splitlines()[-1]
        assert len(last) <= width - len("^C"), (width, last)


def test_where_it_is_narrow_columns_go_and_figures_stay_whole() -> None:
    look = replace(grown(without(healthy(), 0), 31_000), committed={"billing": {place(0): 990}})
    busy = replace(scene(look), rates={3: Rates(123_400, 9, 8_000_000)})
    for width, last in ((80, "log"), (70, "out B/s"), (60, "in rec/s"), (50, "lagging"), (40, "in sync")):
        shown = drawn(busy, width=width)
        (headings,) = [line.split("  ")[-1] for line in shown if line.startswith("rack") or "role" in line]
        assert headings.endswith(last), (width, headings)
        table = shown[shown.index("") :]
        assert all(len(line) <= width and "…" not in line for line in table), "\n".join(table)
    assert any(line.startswith("billing") for line in drawn(busy, width=40))


def test_a_pause_a_start_and_nobody_who_answers() -> None:
    paused = replace(healthy(), states={**healthy().states, 1: "paused"})
    assert row(scene(paused), 1)[1] == "paused"
    stopped = replace(without(healthy(), 1), stopped=frozenset({1}))
    assert row(scene(stopped), 1)[1] == "stopped"
    starting = replace(healthy(), live=healthy().live - {5})
    assert row(scene(starting), 5)[1] == "starting"


def test_where_no_broker_answers_nobody_says_that_all_is_well() -> None:
    """All are paused. The line above said that everything was in sync, and so was each broker, in all it holds."""
    states = dict.fromkeys(healthy().states, "paused")
    paused = replace(healthy(), states=states, is_answered=False, sizes={0: {place(0): 2_000}})
    shown = drawn(scene(paused))
    assert shown[1:4] == [
        "cluster            1 topic, 10 partitions",
        "0 of 3 voters run: no majority, so nothing can be decided",
        "no broker answers; what is shown is what was known before",
    ]
    (first,) = [line.split() for line in shown if line.startswith("R1 ")]
    assert first[1:] == ["0", "paused", "-", "-", "-", "-", "-", "-", "2.0", "kB"]
    assert not any(line.startswith("use it") for line in shown)
    unheard = drawn(scene(Look(1.0, healthy().nodes, dict.fromkeys(states, "dead"))))
    assert unheard[1] == "cluster            unknown" and unheard[3] == "no broker answers"


def test_the_last_picture_of_a_cluster_that_was_stopped_offers_nothing() -> None:
    """Below it stands what starts the cluster again, and nobody hears Ctrl-C."""
    dead = replace(healthy(), states=dict.fromkeys(healthy().states, "dead"), is_answered=False)
    assert any(line.startswith("mend it") for line in drawn(scene(dead)))
    shown = drawn(scene(replace(dead, stopped=frozenset(dead.states))))
    assert not any(line.startswith(("mend it", "end it")) for line in shown)


def test_where_too_few_voters_run_nobody_is_controller_and_it_is_said() -> None:
    """The voters are 0, 3 and 6; the controller, 0, still runs."""
    lost = replace(healthy(), states={**healthy().states, 3: "dead", 6: "paused"})
    assert "1 of 3 voters runs: no majority, so nothing can be decided" in drawn(scene(lost))
    assert row(scene(lost), 0)[1] == "voter"
    assert summary(lost).startswith("5 of 7 nodes running, no majority; ")


def test_the_latest_happenings_that_there_is_room_for() -> None:
    happened = tuple(Happened(f"12:00:{second:02}", f"event {second}") for second in range(30))
    full = replace(scene(healthy()), happened=happened)
    low, high = drawn(full, lines=24), drawn(full, lines=50)
    assert len(low) <= 24 and len(high) <= 50
    assert any("event 29" in line for line in low) and not any("event 20" in line for line in low)
    assert any("event 1" in line for line in high)
    assert any("nothing has happened yet" in line for line in drawn(scene(healthy())))


def test_on_a_small_screen_what_happened_matters_more_than_every_tip() -> None:
    """Six brokers and a witness on 24 lines of 80 columns: one line folded, six that say what happened."""
    happened = tuple(Happened(f"12:00:{second:02}", f"event {second}") for second in range(30))
    small = drawn(replace(scene(healthy()), happened=happened), lines=24, width=80)
    assert len(small) <= 24 and sum("event" in line for line in small) >= 5
    assert any(line.startswith("break it") for line in small) and not any("or so" in line for line in small)


def test_groups_do_not_push_out_what_happened() -> None:
    """Three brokers on 24 lines: one died, and the six sentences about it stay beside a group."""
    alone, happened = healthy().nodes[:3], tuple(Happened("12:00:00", f"event {number}") for number in range(9))
    look = replace(without(healthy(), 1), nodes=alone, committed={"billing": {place(0): 9}})
    small = drawn(replace(scene(look), happened=happened), lines=24, width=80)
    assert len(small) <= 24 and sum("event" in line for line in small) >= 6
    assert any(line.startswith("billing") for line in small)


def test_where_groups_have_no_room_beside_what_happened_it_is_said_how_many_there_are() -> None:
    """Three brokers on 24 lines, and four groups. Who is told little leaves the room to the groups."""
    alone, happened = healthy().nodes[:3], tuple(Happened("12:00:00", f"event {number}") for number in range(9))
    groups = {f"group-{number}": {place(0): number} for number in range(4)}
    look = replace(without(healthy(), 1), nodes=alone, committed=groups)
    full = drawn(replace(scene(look), happened=happened), lines=21, width=80)
    assert len(full) <= 21 and "4 groups: `klamm group list`" in full and sum("event" in line for line in full) >= 3
    quiet = drawn(replace(scene(look), happened=happened[:2]), lines=21, width=80)
    assert len(quiet) <= 21 and sum(line.startswith("group-") for line in quiet) == 4
    assert sum("event" in line for line in quiet) == 2


def test_a_head_that_is_too_long_is_broken_between_what_there_is_and_how_it_is() -> None:
    behind = {place(each, "orders"): PartitionSeen("orders", each, 0, (0, 1), (0,), True) for each in range(50)}
    look = without(replace(healthy(), partitions={**healthy().partitions, **behind}), 2)
    assert drawn(scene(look), width=80)[1:4] == [
        "cluster            1 topic, 10 partitions, 50 internal",
        "                   55 partitions not in sync everywhere",
        "",
    ]
    whole = "cluster            1 topic, 10 partitions, 50 internal   55 partitions not in sync everywhere"
    assert drawn(scene(look), width=len(whole))[1] == whole


def test_however_long_a_happening_is_its_time_is_whole() -> None:
    happened = (Happened("12:00:01", "broker 1 is dead"), Happened("12:00:02", "broker 0 leads " + "invoice-0, " * 30))
    for width in (80, 120):
        short, long = [
            line for line in drawn(replace(scene(healthy()), happened=happened), width=width) if "12:" in line
        ]
        assert short == "12:00:01  broker 1 is dead"
        assert long.startswith("12:00:02  broker 0 leads invoice-0") and long.endswith("…") and len(long) <= width


def test_an_empty_cluster_and_one_broker() -> None:
    alone = healthy().nodes[:1]
    look = Look(1.0, alone, {0: "running"}, True, 0, 1, frozenset({0}))
    shown = "\n".join(drawn(scene(look)))
    assert "nothing in it yet" in shown and "--replication 1" in shown and "klamm node kill 0" in shown


def test_the_cluster_in_a_line() -> None:
    assert summary(healthy()) == "7 of 7 nodes running; 1 topic, 10 partitions, everything in sync"
    assert summary(without(healthy(), 0)) == (
        "6 of 7 nodes running; 1 topic, 10 partitions, 4 partitions not in sync everywhere"
    )
    assert summary(replace(healthy(), is_answered=False)) == "7 of 7 nodes running; no broker answers"


def test_sizes() -> None:
    assert [sized(each) for each in (0, 999, 1_400_000, 3.2e15)] == ["0 B", "999 B", "1.4 MB", "3200.0 TB"]
