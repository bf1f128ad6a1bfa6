"""Records and bytes a second, from looks some seconds apart."""

from dataclasses import replace

import pytest

from klamm.local.figures import Figures
from klamm.local.look import reached
from klamm.local.rates import Rates, Recently, rates, reading, total
from tests.local.looks import grown, healthy, place, without


def test_one_look_tells_no_rate() -> None:
    assert rates([]) == rates([healthy()]) == {}


def test_what_comes_in_is_counted_for_who_leads() -> None:
    """Broker 0 leads two partitions of ten, broker 2 one: 500 records of 100 bytes a second each."""
    found = rates([healthy(), grown(healthy(), 1_000, seconds=2)])
    assert (found[0].records_in, found[0].bytes_in) == (1_000, 100_000)
    assert (found[2].records_in, found[2].bytes_in) == (500, 50_000)
    assert total(found).records_in == 5_000


def test_where_leadership_moved_nothing_is_counted_twice() -> None:
    found = rates([healthy(), grown(without(healthy(), 0), 300, seconds=2)])
    assert found[0] == Rates()
    assert total(found).records_in == pytest.approx(10 * 100) and total(found).bytes_in == pytest.approx(100_000)


def test_what_a_broker_gave_to_consumers_goes_out() -> None:
    """Also to those that belong to no group; what readers of the brokers' own topics were given is nobody's."""
    before = replace(healthy(), figures={0: Figures({"invoice": 1_000, "__consumer_offsets": 0}), 1: Figures()})
    given = {0: Figures({"invoice": 9_000, "__consumer_offsets": 5_000}), 1: Figures({"invoice": 400}), 2: Figures()}
    found = rates([before, replace(grown(before, 0, seconds=4), figures=given)])
    assert [found[broker].bytes_out for broker in range(3)] == [2_000, 100, 0]
    assert total(found).bytes_out == 2_100


def test_a_broker_that_was_started_again_counts_from_nothing() -> None:
    before = replace(healthy(), figures={0: Figures({"invoice": 9_000})})
    after = replace(grown(before, 0, seconds=4), figures={0: Figures({"invoice": 70})})
    assert rates([before, after])[0].bytes_out == 0


def test_what_groups_say_they_have_read() -> None:
    before = replace(healthy(), committed={"a": {place(0): 100}, "b": {place(0): 0}})
    after = replace(
        grown(before, 0, seconds=4), committed={"a": {place(0): 500}, "b": {place(0): 400}, "c": {place(1): 9}}
    )
    assert reading([before, after]) == {"a": 100, "b": 100, "c": 0}, "c may have read before it said so"
    assert reading([before]) == {}
    assert after.lag("a") == 500 and before.lag("b") == 1_000


def test_a_burst_is_forgotten() -> None:
    recently, look = Recently(), healthy()
    recently.note(look)
    look = grown(look, 1_000)
    recently.note(look)
    assert total(recently.rates()).records_in == 10_000
    for _ in range(20):
        look = grown(look, 0)
        recently.note(look)
    assert total(recently.rates()).records_in == 0


def test_a_size_is_a_place_in_the_log() -> None:
    assert reached(100, 100, 0, 40) == 40
    assert reached(50, 100, 0, 40) == 20
    assert reached(0, 0, 0, 0) == 0
    assert reached(120, 100, 0, 40) == 40, "asked a moment later than its leader"
    assert reached(50, 100, 1_000, 1_040) == 1_020, "what retention removed is in nobody's size"
