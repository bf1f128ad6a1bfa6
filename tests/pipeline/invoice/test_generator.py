"""Invoices are what the recipe says: the same every time, in the shares asked for, told apart by a careful reader."""

from collections import Counter
from dataclasses import replace

import pytest

from klamm.pipeline.invoice.catalogue import money
from klamm.pipeline.invoice.generator import COPY, HUGE, LATE, LATE_MS, MALFORMED, ON_TIME, Recipe, generated
from klamm.pipeline.invoice.malformed import WAYS
from tests.pipeline.invoice.naive import invoice_of

RECIPE = Recipe(seed=7, count=3_000, malformed=0.1, late=0.1, copied=0.1, huge=0.002)


def test_the_same_recipe_makes_the_same_bytes() -> None:
    assert [each.value for each in generated(RECIPE)] == [each.value for each in generated(RECIPE)]
    assert [each.value for each in generated(replace(RECIPE, seed=8))] != [each.value for each in generated(RECIPE)]


def test_fewer_are_the_beginning_of_more() -> None:
    few = [each for each in generated(replace(RECIPE, count=1_500)) if each.fate != COPY]
    many = [each for each in generated(RECIPE) if each.fate != COPY]
    assert few == many[:1_500]


def test_what_is_known_of_an_invoice_is_what_its_bytes_say() -> None:
    for each in generated(RECIPE):
        read = invoice_of(each.value)
        if each.fate == MALFORMED:
            assert read is None, each.value
            continue
        assert read is not None, each.value
        assert read["invoice_number"] == each.invoice_number
        assert read["store_id"] == each.store_id == each.key.decode()
        assert read.get("customer_id") == each.customer_id
        assert read["issued_at"].timestamp() * 1_000 == each.issued_ms
        assert str(read["total"]) == money(each.cents)
        assert len(read["line_items"]) == each.lines


def test_every_fate_has_its_share() -> None:
    fates = Counter(each.fate for each in generated(RECIPE))
    assert set(fates) == {ON_TIME, LATE, HUGE, MALFORMED, COPY}
    assert sum(fates.values()) == 3_000 + fates[COPY]
    for fate in (LATE, MALFORMED, COPY):
        assert 200 < fates[fate] < 400
    assert 0 < fates[HUGE] < 20


def test_a_copy_is_its_original_byte_for_byte_and_comes_later() -> None:
    seen: dict[int, bytes] = {}
    for each in generated(RECIPE):
        if each.fate == COPY:
            assert seen[each.number] == each.value
        else:
            assert each.number not in seen
            seen[each.number] = each.value


def test_times_go_forward_but_for_late_ones() -> None:
    for each in generated(RECIPE):
        due_ms = RECIPE.start_ms + each.number * RECIPE.step_ms
        if each.fate == LATE:
            assert LATE_MS <= due_ms - each.issued_ms < 8 * LATE_MS
        elif each.fate != COPY:
            assert each.issued_ms == due_ms


def test_a_huge_one_has_thousands_of_lines() -> None:
    huge = next(each for each in generated(RECIPE) if each.fate == HUGE)
    assert huge.lines == 4_000 and 200_000 < len(huge.value) < 900_000


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_no_way_of_breaking_leaves_an_invoice(way: object) -> None:
    assert callable(way)
    good = [each.value for each in generated(Recipe(1, 40, malformed=0, copied=0, huge=0))]
    for chance, value in enumerate(good):
        assert invoice_of(value) is not None
        assert invoice_of(way(value, chance * 7_919)) is None
