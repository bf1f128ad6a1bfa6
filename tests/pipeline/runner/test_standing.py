"""Spark's reports added up, and what a person, a program and Prometheus get to see of them."""

import io
import urllib.request
from collections import Counter
from typing import Any

import pytest
from rich.console import Console, RenderableType

from klamm.cli.pipeline_run import _Shown
from klamm.pipeline import view
from klamm.pipeline.metrics import Page, exposition, served
from klamm.pipeline.progress import QueryStanding, Standing, UnderWay, document, note, offsets_of
from klamm.pipeline.writing import Done


def report(batch: int, start: int, end: int, latest: int, late: int = 0) -> dict[str, Any]:
    return {
        "batchId": batch,
        "numInputRows": 2 * (end - start),
        "durationMs": {"triggerExecution": 500},
        "eventTime": {"watermark": "2026-01-01T10:00:00.000Z"},
        "stateOperators": [{"numRowsDroppedByWatermark": late, "numRowsTotal": 12}],
        "sources": [
            {
                "startOffset": {"orders": {"0": start, "1": start}, "_klamm": {"format": 1, "topics": {"orders": "x"}}},
                "endOffset": {"orders": {"0": end, "1": end}},
                "latestOffset": {"orders": {"0": latest, "1": latest + 10}},
            }
        ],
    }


def half_way() -> Standing:
    standing = Standing(
        "shop",
        {"orders": QueryStanding("orders", ("orders",)), "revenue": QueryStanding("revenue", ("orders",))},
        ("table orders", "topic revenue"),
        ("table orders_quarantine", "topic orders.quarantine"),
    )
    done = Done(
        Counter({"table orders": 190, "table orders_quarantine": 10, "topic orders.quarantine": 10}),
        Counter({"table orders": 3}),
        quarantined=Counter({"is not JSON": 7, "has a [bold] total": 3}),
    )
    note(standing, "orders", report(0, 0, 100, 195), done)
    note(standing, "revenue", report(0, 0, 50, 195, late=4), Done(Counter({"topic revenue": 5})))
    standing.seconds = 2.0
    return standing


def shown(thing: RenderableType) -> str:
    console = Console(file=io.StringIO(), width=120)
    console.print(thing)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_reports_add_up() -> None:
    standing = half_way()
    orders = standing.queries["orders"]
    assert (orders.records, orders.batch_seconds, orders.records_per_second) == (200, 0.5, 400.0)
    assert orders.lag == {("orders", 0): 95, ("orders", 1): 105}
    assert orders.share == 0.5
    assert standing.queries["revenue"].share == 0.25
    note(standing, "orders", report(1, 100, 195, 195), Done(Counter({"table orders": 10})))
    assert standing.done.added["table orders"] == 200
    assert (orders.batches, orders.last_batch, orders.records) == (2, 1, 390)
    assert orders.lag == {("orders", 0): 0, ("orders", 1): 10}


def test_a_topic_that_two_queries_read_counts_once() -> None:
    assert half_way().records == 200
    assert half_way().records_per_second == 100.0


def test_a_trigger_without_records_is_no_batch() -> None:
    standing = half_way()
    note(standing, "orders", report(1, 100, 100, 300), None)
    assert standing.queries["orders"].batches == 1
    assert standing.queries["orders"].lag[("orders", 0)] == 200


def test_nothing_known_yet() -> None:
    empty = QueryStanding("orders", ("orders",))
    assert empty.share == 0.0 and empty.lag == {}
    assert offsets_of(None) == offsets_of("junk") == offsets_of(3) == {}
    assert offsets_of('{"a": {"0": 5}}') == {("a", 0): 5}
    note_nothing = Standing("shop", {"orders": empty}, ("table orders",))
    note(note_nothing, "orders", {"batchId": 0, "sources": [{"startOffset": None, "endOffset": None}]}, None)
    assert note_nothing.queries["orders"].batches == 0


def test_an_empty_topic_is_done() -> None:
    query = QueryStanding("orders", ("orders",))
    note(Standing("shop", {"orders": query}, ()), "orders", report(0, 5, 5, 5) | {"numInputRows": 0}, None)
    query.ends = {("orders", 0): 5, ("orders", 1): 5}
    assert query.share == 1.0


def test_the_live_view() -> None:
    text = shown(view.live(half_way(), once=False))
    assert "pipeline shop" in text and "400" in text and "orders-1 105, orders-0 95" in text
    assert "table orders" in text and "190" in text
    assert "quarantine" in text and "10" in text
    assert "50%" in shown(view.live(half_way(), once=True)) and "25%" in shown(view.live(half_way(), once=True))
    waiting = Standing("shop", {"orders": QueryStanding("orders", ("orders",))}, ("table orders",))
    assert "0%" in shown(view.live(waiting, once=True))


def test_a_first_batch_that_takes_long_is_told_of_before_it_is_done() -> None:
    """Spark reports a batch when it is written, which may be a minute after it was begun."""
    query = QueryStanding("orders", ("orders",))
    standing = Standing("shop", {"orders": query}, ("table orders",), seconds=12.0)
    assert "starts" in shown(view.live(standing, once=True))
    assert view.line(standing, once=True) == "shop, 12.0 s: orders starts"
    query.under_way = UnderWay(0, 8.2)
    assert "8 s so far" in shown(view.live(standing, once=True))
    assert view.line(standing, once=True) == "shop, 12.0 s: orders in batch 0 for 8 s"


def test_a_query_that_is_called_as_its_pipeline_is_called_a_query() -> None:
    standing = Standing("orders", {"orders": QueryStanding("orders", ("orders",), under_way=UnderWay(0, 12.0))}, ())
    standing.seconds = 14.2
    assert view.line(standing, once=True) == "orders, 14.2 s: query orders in batch 0 for 12 s"


def test_a_batch_does_not_look_older_than_its_run() -> None:
    """Rounded it would: `9.7 s: orders in batch 0 for 10 s`."""
    query = QueryStanding("orders", ("orders",), under_way=UnderWay(0, 9.6))
    standing = Standing("shop", {"orders": query}, (), seconds=9.7)
    assert view.line(standing, once=True) == "shop, 9.7 s: orders in batch 0 for 9 s"
    assert "9 s so far" in shown(view.live(standing, once=True))


def test_nothing_is_counted_before_a_query_has_told_of_itself() -> None:
    query = QueryStanding("orders", ("orders",), under_way=UnderWay(0, 8.0))
    standing = Standing("shop", {"orders": query}, ("table orders",), ("table bad",), seconds=9.0)
    text = shown(view.live(standing, once=True))
    rows = [line.split() for line in text.splitlines()]
    assert "records" not in text.splitlines()[0] and ["table", "orders", "-"] in rows and ["quarantine", "-"] in rows
    note(standing, "orders", report(0, 0, 100, 195), Done())
    text = shown(view.live(standing, once=True))
    rows = [line.split() for line in text.splitlines()]
    assert "200 records" in text and ["table", "orders", "0"] in rows and ["quarantine", "0"] in rows
    assert view.line(standing, once=True).endswith("; 0 quarantined")


def test_nor_is_a_zero_said_while_one_of_them_has_not() -> None:
    queries = {name: QueryStanding(name, ("orders",)) for name in ("orders", "loyalty")}
    standing = Standing("shop", queries, ("table orders",), ("table bad",), seconds=9.0)
    note(standing, "loyalty", report(0, 0, 100, 100), Done())
    text = shown(view.live(standing, once=True))
    assert "200 records" in text and ["quarantine", "-"] in [line.split() for line in text.splitlines()]
    assert "quarantined" not in view.line(standing, once=True)
    standing.done.quarantined["is not JSON"] = 3
    assert view.line(standing, once=True).endswith("; 3 quarantined")


def test_a_later_one_only_if_it_takes_long() -> None:
    standing = half_way()
    standing.queries["orders"].under_way = UnderWay(1, 0.4)
    standing.queries["revenue"].under_way = UnderWay(1, 9.0)
    text = shown(view.live(standing, once=True))
    assert "9 s so far" in text and "0 s so far" not in text
    assert "orders 50% at 400 records/s; revenue 25% at 200 records/s, in batch 1 for 9 s;" in view.line(standing, True)


def test_where_there_is_no_terminal_a_long_batch_gets_a_line_as_well(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr("klamm.cli.pipeline_run.time.monotonic", lambda: now[0])
    standing, shown_to = half_way(), _Shown(once=True, as_json=False)
    said = []
    for now[0], under_way, spoke in (
        (150.0, None, []),  # Spark has taken long to start.
        (151.0, UnderWay(0, 1.0), []),
        (159.0, UnderWay(0, 9.0), []),
        (160.5, UnderWay(0, 10.5), []),
        (162.0, None, ["orders"]),
        (164.0, None, ["orders"]),
        (190.0, None, []),
    ):
        standing.queries["orders"].under_way = under_way
        shown_to.show(standing, spoke)
        said.append("orders" in capsys.readouterr().err)
    assert said == [False, False, False, True, False, True, False]


def test_the_worst_partitions_are_named() -> None:
    lag = {("t", partition): partition * 10 for partition in range(6)}
    assert view.worst(lag) == "t-5 50, t-4 40, t-3 30 and 2 more"
    assert view.worst({("t", 0): 0}) == ""


def test_a_line_for_a_log() -> None:
    said = "shop, 2.0 s: orders 50% at 400 records/s; revenue 25% at 200 records/s; 10 quarantined, 4 late"
    assert view.line(half_way(), once=True) == said
    assert "lag 300" in view.line(half_way(), once=False)


def test_the_summary() -> None:
    text = shown(view.summary(half_way(), "done"))
    assert "pipeline shop done: 200 records in 2.0 s, 100 records/s" in text
    lines = [line.split() for line in text.splitlines()]
    assert ["table", "orders", "190", "3"] in lines
    assert ["table", "orders_quarantine", "10", "0"] in lines
    assert ["is", "not", "JSON", "7"] in lines
    assert ["has", "a", "[bold]", "total", "3"] in lines
    assert "too late for their window, and in none: revenue 4" in text
    assert "left out" not in text
    assert view.duration(75) == "1 min 15 s" and view.duration(7300) == "2 h 1 min"


def test_in_a_file_no_line_of_the_summary_is_broken(capsys: pytest.CaptureFixture[str]) -> None:
    """It was broken at 80 columns, between a number and its unit, with a space at the end."""
    standing, reason = (
        half_way(),
        f"does not fit the schema: {', '.join(f'column_{each} is no int' for each in range(9))}",
    )
    standing.start_seconds = 25.04
    standing.done.quarantined[reason] = 1
    _Shown(once=True, as_json=False).end(standing, "done")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "pipeline shop done: 200 records in 2.0 s (and 25.0 s to start Spark), 100 records/s"
    assert [line for line in lines if line.startswith(reason) and line.endswith(" 1")]
    assert [line for line in lines if line != line.rstrip()] == []


def test_the_summary_tells_what_spark_took_to_start() -> None:
    """Whoever waited for fifty seconds does not believe a line that says 24. The rate is that of the reading."""
    standing = half_way()
    standing.start_seconds = 25.04
    said = "pipeline shop done: 200 records in 2.0 s (and 25.0 s to start Spark), 100 records/s"
    assert said in shown(view.summary(standing, "done"))
    standing.start_seconds = 0.2
    assert "to start Spark" not in shown(view.summary(standing, "done"))


def test_rows_whose_key_is_there_are_told() -> None:
    """Else records would be missing in the sum, and a key that is none would go unnoticed."""
    standing = half_way()
    standing.done.left_out["table orders"] = 7
    text = shown(view.summary(standing, "done"))
    assert ["table", "orders", "190", "3", "7"] in [line.split() for line in text.splitlines()]
    assert "left out: another row has their key, and stays" in text
    assert document(standing)["outputs"]["table orders"]["leftOut"] == 7
    assert 'klamm_pipeline_rows_left_out_total{pipeline="shop",output="table orders"} 7' in exposition(standing)


def test_for_programs() -> None:
    found = document(half_way(), ["revenue"])
    assert list(found["queries"]) == ["revenue"]
    assert found["queries"]["revenue"]["lag"] == {"orders-0": 145, "orders-1": 155}
    assert found["outputs"]["table orders"] == {"added": 190, "replaced": 3, "leftOut": 0}
    assert found["quarantined"] == {"is not JSON": 7, "has a [bold] total": 3}


def test_for_prometheus() -> None:
    page = Page()
    page.text = exposition(half_way())
    with served("127.0.0.1", 0, page) as port:
        text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read().decode()
    assert 'klamm_pipeline_records_total{pipeline="shop",query="orders"} 200' in text
    assert 'klamm_pipeline_lag{pipeline="shop",query="orders",topic="orders",partition="1"} 105' in text
    assert 'klamm_pipeline_quarantined_total{pipeline="shop",reason="is not JSON"} 7' in text
    assert "# TYPE klamm_pipeline_lag gauge" in text


def test_what_a_source_says_is_heard_once() -> None:
    """It stands in every report. Nobody would see it in Spark's log."""
    standing = half_way()
    said = report(1, 100, 195, 195)
    said["sources"][0]["latestOffset"]["_klamm"] = {
        "format": 1,
        "said": ["10:00: lost: orders-0 offset 7."],
    }
    note(standing, "orders", said, None)
    note(standing, "orders", said, None)
    assert standing.said == ["orders: 10:00: lost: orders-0 offset 7."]
    assert document(standing)["said"] == standing.said


def test_and_is_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    standing, shown_to = half_way(), _Shown(once=True, as_json=False)
    standing.said.append("orders: records were lost")
    shown_to.show(standing, [])
    shown_to.show(standing, [])
    assert capsys.readouterr().err.count("records were lost") == 1
