"""Invoices are sent at their pace, and given up all at once: when a partition is silent, or somebody is impatient."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from threading import Event

import pytest

from klamm.errors import ErrorCode
from klamm.pipeline.invoice import sending
from klamm.pipeline.invoice.generator import Invoice, Recipe, generated
from klamm.pipeline.invoice.sending import NotMade, create_topic
from tests.cli.sending import SOON_SECONDS
from tests.cli.taking_broker import CREATE_TOPICS, PRODUCE, TakingBroker

COUNT = 500
RECIPE = Recipe(seed=4, count=COUNT, copied=0.1, huge=0, start_ms=1_800_000_000_000)
LONG_SECONDS = 30
HAD_TO_END = "given up because it was asked to end; some may be there"


def test_a_topic_that_is_not_made_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was said of it was "klamm pipeline generate: ", and nothing more."""
    monkeypatch.setattr(sending, "LOOK_SECONDS", 1)
    is_over = Event()
    with TakingBroker("another") as broker:
        broker.answers[CREATE_TOPICS] = lambda _: is_over.wait(SOON_SECONDS) and None
        with pytest.raises(NotMade, match="cannot make topic invoice: no answer within 1 s"):
            create_topic(broker.servers, "invoice")
        is_over.set()


def test_nobody_answers_who_is_asked_for_a_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "LOOK_SECONDS", 1)
    with pytest.raises(NotMade, match=r"127\.0\.0\.1:1 does not answer any more: "):
        create_topic("127.0.0.1:1", "invoice")


def test_a_pace_is_kept_without_turning_in_circles() -> None:
    """librdkafka waits whole milliseconds: a thousand records a second took a core, asking again and again."""
    now, asked = 100.0, 0

    def poll(seconds: float) -> None:
        nonlocal now, asked
        asked += 1
        now += int(seconds * 1_000) / 1_000 + 1e-6

    pace = sending._Pace(1_000, lambda: now)
    for record in range(5_000):
        pace.wait_for(record, poll)
    assert 4.98 < now - 100.0 < 5.01
    assert asked < 1_000


def test_whoever_waits_for_the_next_tells_how_far_it_is_and_stops_when_told_to() -> None:
    """It was silent for 500 records, and the first Ctrl-C waited until it was time for another one."""
    two, looks = islice(generated(RECIPE), 2), list[int]()
    with TakingBroker("invoice") as broker:
        sent = sending.send(
            two,
            broker.servers,
            "invoice",
            per_second=1 / LONG_SECONDS,
            on_sent=lambda _: None,
            on_progress=lambda sent: looks.append(sent.records),
            stops=lambda: len(looks) >= 3,
        )
    assert (sent.records, sent.acknowledged, looks[:3]) == (1, 1, [1, 1, 1])


def test_whoever_sends_slowly_gives_up_as_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was looked at every 20,000 records: after half an hour at ten a second."""
    monkeypatch.setattr(sending, "GIVE_UP_SECONDS", 0.5)
    noted: list[object] = []
    sent = sending.send(generated(RECIPE), "127.0.0.1:1", "invoice", per_second=10, on_sent=noted.append)
    assert 0 < len(noted) == sent.records == len(sent.errors) < COUNT // 2


def test_one_partition_that_stands_still_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """What others acknowledged began the time anew: for a whole round, which is half an hour at ten a second."""
    monkeypatch.setattr(sending, "GIVE_UP_SECONDS", 2.0)
    silent: list[float] = []
    with TakingBroker("invoice", leads=[1, 2], leaderless=[0]) as broker:
        sent = sending.send(
            generated(RECIPE),
            broker.servers,
            "invoice",
            per_second=50,
            on_sent=lambda _: None,
            on_progress=lambda sent: silent.append(sent.silent_seconds),
        )
    assert any(0.5 < seconds < 2.0 for seconds in silent), "and is seen to"
    assert 0 < sent.acknowledged < sent.records < COUNT
    assert len(sent.errors) == sent.records - sent.acknowledged


def test_what_nobody_acknowledges_is_given_up_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a record that the client library gives up by itself it sends others a second time."""
    monkeypatch.setattr(sending, "GIVE_UP_SECONDS", 0.2)
    now, all_are_sent = 0.0, False

    def clock() -> float:
        """Silence begins when the last one is on its way, however slow the machine is."""
        nonlocal now
        now += 0.1 if all_are_sent else 0.0
        return now

    def invoices() -> Iterator[Invoice]:
        nonlocal all_are_sent
        yield from generated(RECIPE)
        all_are_sent = True

    sent = sending.send(invoices(), "127.0.0.1:1", "invoice", on_sent=lambda _: None, clock=clock)
    assert sent.acknowledged == 0 and len(sent.errors) == sent.records > COUNT
    assert set(sent.errors) == {"given up because a partition acknowledged nothing for 0.2 s; some may be there"}


def test_what_the_library_refuses_has_failed() -> None:
    """It was not counted as a record: all were acknowledged, it said, and with one that waited it never ended."""
    good = next(generated(RECIPE))
    far_too_large = replace(good, value=bytes(2 << 20))
    noted: list[Invoice] = []
    with TakingBroker("invoice") as broker:
        sent = sending.send([good, far_too_large, good], broker.servers, "invoice", on_sent=noted.append)
    assert (sent.records, sent.acknowledged, noted) == (2, 1, [good])
    assert sent.errors == ["Unable to produce message: Broker: Message size too large"]


def test_of_what_is_given_up_nobody_knows_whether_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library says "Purged in queue" of records that are in the log, when they were to be sent again."""
    with TakingBroker("invoice", says=ErrorCode.REQUEST_TIMED_OUT) as broker:
        sent = sending.send(
            generated(RECIPE),
            broker.servers,
            "invoice",
            on_sent=lambda _: None,
            has_to_end=lambda: bool(broker.written),
        )
    assert sent.acknowledged == 0 and sent.errors == [HAD_TO_END] * sent.records


def test_what_is_on_the_wire_is_given_up_in_the_same_words() -> None:
    asked, is_over = Event(), Event()

    def left_unanswered(_: object) -> None:
        asked.set()
        is_over.wait(SOON_SECONDS)

    with TakingBroker("invoice") as broker:
        broker.answers[PRODUCE] = left_unanswered
        one = islice(generated(RECIPE), 1)
        sent = sending.send(one, broker.servers, "invoice", on_sent=lambda _: None, has_to_end=asked.is_set)
        is_over.set()
    assert (sent.records, sent.errors) == (1, [HAD_TO_END])


def test_whoever_has_to_end_does_not_wait_for_what_nobody_acknowledges() -> None:
    """Ctrl-C was swallowed, however often, for as long as no broker answered."""
    looks = iter([False, False])
    sent = sending.send(
        generated(RECIPE), "127.0.0.1:1", "invoice", on_sent=lambda _: None, has_to_end=lambda: next(looks, True)
    )
    assert sent.acknowledged == 0 and set(sent.errors) == {HAD_TO_END}
