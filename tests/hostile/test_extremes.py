"""Every API, in its oldest, newest and first flexible version, with what its schema allows and nobody sends.

Whatever is asked, there is an answer, and it is one that the schema of the response can read; only what cannot be
answered (acks=0) may end the connection.
"""

import pytest

from klamm.wire.apis import API_BY_KEY
from tests.hostile.extremes import (
    Leaf,
    largest,
    long_numbers,
    longest_names_of_known_kinds,
    longest_texts,
    minus_one,
    nulls,
    request_of,
    served,
    smallest,
    text_of_control_characters,
    turning_points,
    zero,
)
from tests.hostile.target import Target

PRODUCE, DEEPEST = 0, 4


def named(key_and_version: tuple[int, int]) -> str:
    key, version = key_and_version
    return f"{API_BY_KEY[key].name}-{version}"


@pytest.mark.parametrize("depth", range(DEEPEST))
def test_empty_arrays_at_each_level_are_answered(target: Target, depth: int) -> None:
    """CVE-2026-83525: an empty array once killed a controller."""
    for key, version in served():
        with target.connect() as client:
            request = request_of(key, version, zero, depth)
            if key == PRODUCE:
                request.acks = 1
            client.ask(request, version)


def test_null_in_every_place_that_allows_it_is_answered(target: Target) -> None:
    for key, version in served():
        with target.connect() as client:
            request = nulls(key, version)
            if key == PRODUCE:
                request.acks = 1
            client.ask(request, version)


@pytest.mark.parametrize("leaf", [zero, largest, smallest, minus_one], ids=lambda leaf: leaf.__name__)
@pytest.mark.parametrize("times", [1, 2, 100])
def test_extreme_numbers_and_elements_named_again_are_answered(target: Target, leaf: Leaf, times: int) -> None:
    for key, version in turning_points():
        with target.connect() as client:
            request = request_of(key, version, leaf, DEEPEST if times < 100 else 1, times)
            if key == PRODUCE:
                request.acks = 1
            client.ask(request, version)


@pytest.mark.parametrize(
    "leaf",
    [longest_texts, longest_names_of_known_kinds, long_numbers, text_of_control_characters],
    ids=lambda leaf: leaf.__name__,
)
@pytest.mark.parametrize("api", turning_points(), ids=named)
def test_extreme_texts_are_answered(target: Target, api: tuple[int, int], leaf: Leaf) -> None:
    """An answer that repeats the question must not grow longer than a text may be."""
    key, version = api
    with target.connect() as client:
        for depth in range(1, DEEPEST):
            request = request_of(key, version, leaf, depth)
            if key == PRODUCE:
                request.acks = 1
            client.ask(request, version)
