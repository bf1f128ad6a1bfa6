"""What `proof mutants` may make wrong, and that each change is one that can be run."""

import ast
from pathlib import Path

from proof.mutant_places import (
    BOOLEAN,
    COMPARISON,
    CONSTANT,
    DROPPED,
    EARLY,
    NEGATED,
    PACKAGES,
    SMALLEST,
    SUM,
    Place,
    drawn,
    places,
    places_in,
    replaced,
)
from proof.mutant_runs import Probe
from proof.mutants import _asking

SOURCE = Path(__file__).parent.parent.parent / "src" / "klamm"

EXAMPLE = '''"""Three."""

KEPT = 3


def grow(self, offset: int, names: list[str] = []) -> None:
    """Add 1 to what is there."""
    assert offset < 7
    if offset > 5 and self.open:
        self.close()
    self.end = max(self.end, offset)
    self.names = [*names, f"{offset + 1}"]
    self.position = (offset - 2) + self.start
'''


def changes(source: str = EXAMPLE) -> list[Place]:
    return places_in("partition/example.py", source)


def of_kind(kind: str) -> set[tuple[str, str]]:
    return {(place.before, place.after) for place in changes() if place.kind == kind}


def test_what_may_be_wrong_in_a_function() -> None:
    assert of_kind(COMPARISON) == {("offset > 5", "offset >= 5"), ("offset > 5", "offset <= 5")}
    assert of_kind(BOOLEAN) == {("offset > 5 and self.open", "(offset > 5) or (self.open)")}
    assert of_kind(NEGATED) == {("offset > 5 and self.open", "not (offset > 5 and self.open)")}
    assert of_kind(DROPPED) == {("self.close()", "pass")}
    assert of_kind(SMALLEST) == {("max(self.end, offset)", "min(self.end, offset)")}
    assert ("(offset - 2) + self.start", "(offset - 2) - self.start") in of_kind(SUM)
    assert ("self.end", "(self.end + 1)") in of_kind(SUM)
    assert of_kind(CONSTANT) == {("5", "6"), ("5", "4"), ("2", "3"), ("2", "1")}
    assert ("self.end = max(self.end, offset)", "return") in of_kind(EARLY)


def test_each_change_is_python_and_leaves_the_other_lines_alone() -> None:
    for place in changes():
        wrong = replaced(EXAMPLE, [(place, place.after)])
        ast.parse(wrong)
        pairs = zip(EXAMPLE.splitlines(), wrong.splitlines(), strict=True)
        assert [number for number, (right, other) in enumerate(pairs, 1) if right != other] == [place.line]
        ast.parse(replaced(EXAMPLE, [(place, _asking(1, place))]))


def test_what_is_drawn_depends_on_the_seed_alone_and_is_spread() -> None:
    everything = {str(file.relative_to(SOURCE)): [*range(2_000)] for file in SOURCE.rglob("*.py")}
    found = places(SOURCE, everything)
    chosen = drawn(found, 1, 40)
    assert chosen == drawn(found, 1, 40) != drawn(found, 2, 40)
    assert {place.path.split("/")[0] for place in chosen} == set(PACKAGES)
    assert len({(place.path, place.function) for place in chosen}) == 40
    for place in chosen:
        ast.parse(replaced((SOURCE / place.path).read_text(), [(place, place.after)]))


def test_a_probe_gives_the_right_value_and_notes_where_the_wrong_one_differs() -> None:
    probe = Probe()
    assert probe(1, lambda: 3 < 4, True) is True
    assert probe(2, lambda: 3 <= 2, True) is True
    assert probe(3, lambda: 1 // 0, 7) == 7
    assert probe(4, None, "text") == "text"
    assert probe.reached == {2, 3, 4}, "the first comes to the same"
