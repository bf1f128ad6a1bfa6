"""Patterns of subscriptions: whole names, RE2's language, and nothing that a pattern could do to a broker."""

import re
import subprocess
import sys
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.coordinator.groups.patterns import compiled, matching
from klamm.errors import ErrorCode, KafkaError

NAMES = ["orders", "orders-eu", "orders.us", "old-orders", "payments", "__consumer_offsets"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("orders", {"orders"}),
        ("orders.*", {"orders", "orders-eu", "orders.us"}),
        ("^orders$", {"orders"}),
        ("orders|payments", {"orders", "payments"}),
        ("orders[-.](eu|us)", {"orders-eu", "orders.us"}),
        ("(?i)PAYMENTS", {"payments"}),
        (r"\Qorders.us\E", {"orders.us"}),
        (".*", set(NAMES)),
        ("rder", set()),
        ("", set()),
    ],
)
def test_the_whole_name_has_to_match(pattern: str, expected: set[str]) -> None:
    assert matching(pattern, NAMES) == expected


pieces = st.sampled_from(["a", "b", "-", "[ab]", "[^a]", ".", r"\.", "(a|b)", "(?:ab|)", r"\w", r"\d"])
suffixes = st.sampled_from(["", "*", "+", "?", "{1,2}", "*?"])
patterns = st.lists(st.tuples(pieces, suffixes).map("".join), max_size=5).map("".join)
topics = st.lists(st.text("ab-._1", min_size=1, max_size=8), max_size=10)


@given(patterns, patterns, topics)
def test_against_pythons_own(left: str, right: str, names: list[str]) -> None:
    """Where the languages are the same, so are the answers."""
    pattern = f"{left}|{right}"
    assert matching(pattern, names) == {name for name in names if re.fullmatch(pattern, name, re.ASCII)}


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        "[a",
        "a**{",
        "*",
        r"(a)\1",
        "(?=a)",
        "a{1001}",
        "(?P<name",
        "\\",
        "((\\pL{30}){30}){30}",
        "\\pL{1000}",
        "\ud800",
    ],
)
def test_a_wrong_pattern_is_somebodys_wish(pattern: str, capfd: pytest.CaptureFixture[str]) -> None:
    """It has a code of its own and a reason, and it writes nothing where our operators would read it."""
    with pytest.raises(KafkaError) as refused:
        compiled(pattern)
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION == 128
    assert refused.value.message is not None
    assert f"`{pattern}`" in refused.value.message
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("pattern", "name"),
    [("(a+)+b", "a" * 249), ("(.*a){20}c", "ab" * 124), ("(a|aa)*b", "a" * 249), ("(a?){249}b", "a" * 249)],
)
def test_a_pattern_cannot_hang_us(pattern: str, name: str) -> None:
    """Python's own `re` would not come back from these. The bound is generous: a machine may be slow."""
    before = perf_counter()
    assert matching(pattern, [name] * 100) == frozenset()
    assert perf_counter() - before < 5


def test_python_would_hang() -> None:
    """So that the test above is one: half a second, with a name a tenth as long, is not enough."""
    command = [sys.executable, "-c", "import re; re.fullmatch('(a+)+b', 'a' * 40)"]
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(command, timeout=0.5)


def test_a_long_list_of_names_is_a_pattern() -> None:
    names = [f"topic-{number}" for number in range(3000)]
    assert matching("|".join(names), [*names, "topic-3000"]) == frozenset(names)


def test_the_library_is_loaded_with_the_first_pattern() -> None:
    script = (
        "import sys; from klamm.coordinator.groups.patterns import compiled; assert 're2' not in sys.modules;"
        "compiled('a'); assert 're2' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
