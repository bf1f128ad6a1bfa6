"""Source code in the making: lines with indentation, fresh names, and the objects the code refers to.

Reading and writing share one idea: values of fixed width that follow each other are a *run* and cost one `struct` call
together. A run also takes in what can only be guessed to be fixed: the first byte of a varint, which is nearly always
the only one.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from struct import Struct
from typing import Any

from klamm.codec.schema import Field, schema_of

# Format letters of `struct`, and the bytes they take.
FORMATS = {
    "int8": ("b", 1),
    "int16": ("h", 2),
    "int32": ("i", 4),
    "int64": ("q", 8),
    "uint16": ("H", 2),
    "uint32": ("I", 4),
    "float64": ("d", 8),
    "boolean": ("?", 1),
    "uuid": ("16s", 16),
}
# Arrays of numbers shorter than this are one call of a ready-made Struct; replica lists always are.
SHORT_ARRAY = 16
# A reader or writer "in slices" is a generator: it yields after so many elements of arrays.
SLICE_ELEMENTS = 1_000


class Source:
    """One function being written. `scope` becomes its globals."""

    def __init__(self, name: str, arguments: str) -> None:
        self.name = name
        self.lines = [f"def {name}({arguments}):"]
        self.scope: dict[str, Any] = {}
        self.depth = 1
        self.names = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(head)
        self.depth += 1
        yield
        self.depth -= 1

    def end_of_slice(self, count: str = "1") -> None:
        """After so many elements: let others have their turn when a slice is full."""
        self.line(f"left -= {count}")
        with self.block("if left <= 0:"):
            self.line("yield")
            self.line(f"left = {SLICE_ELEMENTS}")

    def fresh(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def refer(self, prefix: str, value: Any) -> str:
        """A name for `value`, the same one each time."""
        for name, known in self.scope.items():
            if known is value:
                return name
        name = self.fresh(prefix)
        self.scope[name] = value
        return name

    def layout(self, verb: str, letters: str) -> str:
        """A name for the `pack` or `unpack_from` of these format letters."""
        name = f"{verb}_{letters.replace('?', 'o')}"
        self.scope[name] = getattr(Struct(">" + letters), verb)
        return name

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    def function(self) -> Callable[..., Any]:
        exec(compile(self.text(), f"<{self.name}>", "exec"), self.scope)
        return self.scope[self.name]  # type: ignore[no-any-return]


def present(cls: type, version: int, flexible: bool) -> tuple[list[Field], list[Field], list[Field]]:
    """A structure's fields in this version: those in line, those behind tags (by tag), and those it lacks."""
    in_line, tagged, absent = [], [], []
    for field in schema_of(cls).fields:
        if version not in field.versions:
            absent.append(field)
        elif flexible and version in field.tagged:
            tagged.append(field)
        else:
            in_line.append(field)
    return in_line, sorted(tagged, key=lambda field: field.tag), absent


def least_bytes(field: Field, version: int, flexible: bool) -> int:
    """The fewest bytes a value of this field can take: what a count is checked against before anything is allocated."""
    if field.kind in FORMATS:
        return FORMATS[field.kind][1]
    if field.kind == "struct":
        return 1 if version in field.nullable else least_struct_bytes(field.struct, version, flexible)
    if flexible:
        return 1
    return 2 if field.kind == "string" else 4


def least_struct_bytes(cls: type, version: int, flexible: bool) -> int:
    in_line, _, _ = present(cls, version, flexible)
    return sum(least_bytes(field, version, flexible) for field in in_line) + flexible


def objects(field: Field, version: int, flexible: bool) -> int:
    """How many objects one value of this field makes without a single element in it: what it costs of the budget."""
    if field.kind != "struct":
        return 1
    in_line, _, _ = present(field.struct, version, flexible)
    containers = [inner for inner in in_line if inner.kind in ("array", "struct")]
    return 1 + sum(objects(inner, version, flexible) for inner in containers)
