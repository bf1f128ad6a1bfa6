"""Lines of results: a proof that was interrupted goes on, a new one begins, and figures are what they say."""

from pathlib import Path

import pytest
from proof.store import Store, percentile, table

from proof import losses


def test_a_proof_goes_on_where_it_stopped(tmp_path: Path) -> None:
    Store(tmp_path, "example").append("run", number=0)
    again = Store(tmp_path, "example")
    again.append("run", number=1)
    assert [line["number"] for line in Store(tmp_path, "example").of("run")] == [0, 1]


def test_a_fresh_one_leaves_the_old_lines_and_does_not_count_them(tmp_path: Path) -> None:
    Store(tmp_path, "example").append("run", number=0)
    fresh = Store(tmp_path, "example", fresh=True)
    assert fresh.of("run") == []
    assert (tmp_path / "example.jsonl").read_text().count('"run"') == 1


def test_a_line_that_was_cut_off_does_not_count(tmp_path: Path) -> None:
    Store(tmp_path, "example").append("run", number=0)
    with (tmp_path / "example.jsonl").open("a") as file:
        file.write('{"kind": "run", "numb')
    again = Store(tmp_path, "example")
    again.append("run", number=1)
    assert [line["number"] for line in Store(tmp_path, "example").of("run")] == [0, 1]


@pytest.mark.parametrize(("share", "expected"), [(0.5, 50), (0.99, 99), (1.0, 100), (0.001, 1)])
def test_percentiles_of_a_hundred(share: float, expected: int) -> None:
    assert percentile(list(range(100, 0, -1)), share) == expected


def test_a_table_is_markdown() -> None:
    assert table(["a", "b"], [[1, "x"]]) == "| a | b |\n| --- | --- |\n| 1 | x |"


# What must not be, among the runs of `losses`.

WELL = {"failure": "killed", "acks": "all", "run": 0, "sent": 5, "acknowledged": 5, "stored": 5, "lost": 0}
WELL |= {"doubled": 0, "out_of_order": 0, "strange": 0, "unchanged": True, "errors": {}}


@pytest.mark.parametrize(
    ("wrong", "is_violation"),
    [
        ({}, False),
        ({"lost": 1}, True),
        ({"lost": 1, "acks": "1"}, False),
        ({"doubled": 1}, False),
        ({"doubled": 1, "acks": "all, idempotent"}, True),
        ({"out_of_order": 1, "acks": "all, idempotent"}, True),
        ({"unchanged": False, "acks": "1"}, True),
        ({"strange": 1}, True),
        ({"errors": {"_MSG_TIMED_OUT": 1}}, True),
    ],
)
def test_losses_knows_what_must_not_be(tmp_path: Path, wrong: dict[str, object], is_violation: bool) -> None:
    store = Store(tmp_path, "losses")
    store.append("run", **{**WELL, **wrong})
    assert bool(losses.violations(store)) is is_violation
    assert ("Nothing that must not be" in losses.summary(store)) is not is_violation


def test_replicas_that_differ_are_a_violation(tmp_path: Path) -> None:
    store = Store(tmp_path, "losses")
    store.append("replicas", failure="killed", acks="all", topic="t", same=False)
    assert losses.violations(store) == ["t: the replicas differ"]
