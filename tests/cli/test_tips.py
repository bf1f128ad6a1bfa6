"""What the live view says to type next."""

from dataclasses import replace
from pathlib import Path

from klamm.cli.options import DEFAULT_DIRECTORY
from klamm.cli.tips import directory_option, tips
from klamm.local.look import Look
from klamm.local.processes import State
from klamm.local.record import NodeRecord
from klamm.local.topology import planned
from tests.local.looks import healthy

HERE = Path(DEFAULT_DIRECTORY).absolute()


def said(look: Look, directory: Path = HERE) -> list[str]:
    return [f"{tip.what_for}: {tip.command}" for tip in tips(look, directory) if tip.what_for != "use it"]


def with_states(look: Look, state: State, *node_ids: int) -> Look:
    return replace(look, states={**look.states, **dict.fromkeys(node_ids, state)})


def test_how_to_break_what_is_well_and_where() -> None:
    assert said(healthy(), Path("/srv/my data")) == [
        "break it: klamm node kill 1 --dir '/srv/my data'",
        "or so: klamm node pause 1 --dir '/srv/my data' && sleep 20 && klamm node resume 1 --dir '/srv/my data'",
    ]
    assert directory_option(HERE) == ""


def test_all_that_are_dead_are_started_and_all_that_are_paused_go_on() -> None:
    assert said(with_states(healthy(), "dead", 3, 4, 5)) == ["mend it: klamm node start 3 4 5"]
    assert said(with_states(healthy(), "paused", 2)) == ["mend it: klamm node resume 2"]
    assert said(with_states(with_states(healthy(), "paused", 2), "dead", 6)) == [
        "mend it: klamm node start 6",
        "mend it: klamm node resume 2",
    ]


def test_nothing_is_offered_where_nothing_can_be_decided() -> None:
    """The voters are 0, 3 and 6."""
    assert [tip.what_for for tip in tips(with_states(healthy(), "dead", 3), HERE)] == ["use it", "mend it"]
    lost = with_states(with_states(healthy(), "dead", 3), "paused", 6)
    assert [tip.command for tip in tips(lost, HERE)] == ["klamm node start 3", "klamm node resume 6"]
    assert next(tips(replace(healthy(), is_answered=False), HERE)).what_for != "use it"


def test_nothing_is_broken_that_would_cost_the_majority() -> None:
    """Three brokers vote; one of them has been started again and takes no part yet."""
    nodes = tuple(NodeRecord(each.node_id, each.rack, each.roles, 19092) for each in planned(3, 1))
    running = Look(0.0, nodes, dict.fromkeys(range(3), "running"), True, 0, 1, frozenset(range(3)))
    assert said(running)[0] == "break it: klamm node kill 1"
    assert said(replace(running, live=frozenset({0, 1}))) == []
    assert said(with_states(running, "paused", 0)) == ["mend it: klamm node resume 0"]


def test_a_broker_alone_is_all_there_is() -> None:
    look = Look(1.0, healthy().nodes[:1], {0: "running"}, True, 0, 1, frozenset({0}))
    assert said(look)[0] == "break it: klamm node kill 0"
    assert next(tips(look, HERE)).command.endswith("--replication 1")
