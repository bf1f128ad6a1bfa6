"""Facts are values: told with their fields, compared by them, and never half told."""

import pytest

from klamm.facts import Fact


class Seen(Fact):
    level = "warning"
    what: str
    times: int = 1


class SeenBy(Seen):
    who: str = "nobody"


def test_facts_are_equal_when_their_fields_are() -> None:
    assert Seen("a", 2) == Seen(what="a", times=2)
    assert Seen("a") == Seen("a", 1)
    assert Seen("a") != Seen("b")
    assert hash(Seen("a")) == hash(Seen("a", 1))


def test_another_kind_is_another_fact() -> None:
    assert SeenBy("a") != Seen("a")
    assert SeenBy("a", 2, "me") == SeenBy("a", who="me", times=2)


def test_it_says_what_it_is() -> None:
    assert repr(SeenBy("a", who="me")) == "SeenBy(what='a', times=1, who='me')"
    assert (Seen("a").level, Fact().level) == ("warning", "info")


@pytest.mark.parametrize("arguments", [((), {}), (("a", 1, 2), {}), (("a",), {"what": "b"}), (("a",), {"where": "x"})])
def test_a_fact_is_told_whole_and_with_nothing_else(arguments: tuple[tuple[object, ...], dict[str, object]]) -> None:
    values, named = arguments
    with pytest.raises(TypeError):
        Seen(*values, **named)  # type: ignore[arg-type]
