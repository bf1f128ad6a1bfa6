"""The writer of one message in one version: a function (out, value, splices) -> None that appends to a bytearray.

Large records and records that are no buffer (a region of a file) are not copied: the writer notes (position in `out`,
the value) in `splices`, and whoever sends puts it there. Writing trusts its value: a wrong one is our own mistake and
raises whatever it raises.

A writer in slices is the same as a generator, for messages with very many elements.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from struct import Struct
from typing import Any

from klamm.codec.generated import FORMATS, SHORT_ARRAY, SLICE_ELEMENTS, Source, present
from klamm.codec.primitives import write_string_length, write_unsigned_varint
from klamm.codec.schema import Field, schema_of

# Below this, copying records is cheaper than one more piece to send.
SPLICE_BYTES = 4096


def writer_of(cls: type, version: int, *, in_slices: bool = False) -> Callable[..., Any]:
    return _Writer(cls, version, in_slices).source.function()


def writer_source(cls: type, version: int) -> str:
    return _Writer(cls, version, in_slices=False).source.text()


class _Writer:
    def __init__(self, cls: type, version: int, in_slices: bool) -> None:
        schema = schema_of(cls)
        assert version in schema.versions, f"{schema.name} has no version {version}"
        self.version = version
        self.flexible = version in schema.flexible
        self.in_slices = in_slices
        self.run: list[tuple[str, str]] = []
        self.out = "out"
        self.source = Source(f"write_{schema.name}_v{version}", "out, value, splices")
        self.source.scope.update(
            write_unsigned_varint=write_unsigned_varint,
            write_string_length=write_string_length,
            Struct=Struct,
        )
        if in_slices:
            self.source.line(f"left = {SLICE_ELEMENTS}")
        self.structure(cls, "value")
        self.flush()
        if in_slices and "yield" not in self.source.text():
            self.source.line("yield from ()")
        if len(self.source.lines) == 1:
            self.source.line("pass")

    def structure(self, cls: type, value: str) -> None:
        in_line, tagged, _ = present(cls, self.version, self.flexible)
        for field in in_line:
            self.value(field, f"{value}.{field.name}")
        if self.flexible:
            self.tags(tagged, value)

    def value(self, field: Field, value: str) -> None:
        if field.kind in FORMATS:
            self.run.append((FORMATS[field.kind][0], value))
        elif field.kind == "struct":
            self.nested(field, value)
        elif field.kind == "array":
            self.array(field, value)
        elif field.kind == "string":
            self.string(field, value)
        else:
            self.bytes(field, value)

    def string(self, field: Field, value: str) -> None:
        text, length = self.source.fresh("text"), self.source.fresh("n")
        encoded = f"{text} = {value}.encode()"
        if self.version in field.nullable:
            self.source.line(f"{text} = {value}")
            encoded = f"{text} = {text}.encode()"
        with self.unless_null(field, text, length, empty=f'{text} = b""'):
            self.source.line(encoded)
            self.source.line(f"{length} = len({text}){' + 1' if self.flexible else ''}")
        self.length(length, "h", "write_string_length")
        self.source.line(f"{self.out} += {text}")

    def bytes(self, field: Field, value: str) -> None:
        data, length = self.source.fresh("data"), self.source.fresh("n")
        self.source.line(f"{data} = {value}")
        with self.unless_null(field, data, length, empty=f'{data} = b""'):
            self.source.line(f"{length} = len({data}){' + 1' if self.flexible else ''}")
        self.length(length, "i", "write_unsigned_varint")
        if field.kind == "bytes":
            self.source.line(f"{self.out} += {data}")
            return
        assert self.out == "out", "records behind a tag have no place to splice"
        buffer = f"{data}.__class__ in (bytes, bytearray, memoryview)"
        with self.block(f"if {length} <= {SPLICE_BYTES} and {buffer}:"):
            self.source.line(f"out += {data}")
        with self.block("else:"):
            self.source.line(f"splices.append((len(out), {data}))")

    def array(self, field: Field, value: str) -> None:
        assert isinstance(field.of, Field)
        items, length = self.source.fresh("items"), self.source.fresh("n")
        self.source.line(f"{items} = {value}")
        with self.unless_null(field, items, length, empty=f"{items} = ()"):
            self.source.line(f"{length} = len({items}){' + 1' if self.flexible else ''}")
        if field.of.kind in FORMATS and len(FORMATS[field.of.kind][0]) == 1:
            self.numbers(FORMATS[field.of.kind][0], items, length)
            return
        self.length(length, "i", "write_unsigned_varint")
        item = self.source.fresh("item")
        with self.block(f"for {item} in {items}:"):
            self.value(field.of, item)
            if self.in_slices:
                self.flush()
                self.source.end_of_slice()

    def numbers(self, letter: str, items: str, length: str) -> None:
        """All of an array of numbers with one call, its length included where it is short."""
        self.flush()
        prefix = "B" if self.flexible else "i"
        short = self.source.refer(f"short_{prefix}{letter}", _short_packers(prefix, letter))
        with self.block(f"if {length} < {SHORT_ARRAY}:"):
            self.source.line(f"{self.out} += {short}[{length}]({length}, *{items})")
        with self.block("else:"):
            self.length(length, "i", "write_unsigned_varint")
            self.source.line(f'{self.out} += Struct(f">{{len({items})}}{letter}").pack(*{items})')

    def nested(self, field: Field, value: str) -> None:
        item = value
        if not value.isidentifier():
            item = self.source.fresh("item")
            self.source.line(f"{item} = {value}")
        if self.version not in field.nullable:
            self.structure(field.struct, item)
            return
        with self.block(f"if {item} is None:"):
            self.source.line(f"{self.out}.append(255)")
        with self.block("else:"):
            self.source.line(f"{self.out}.append(1)")
            self.structure(field.struct, item)

    def tags(self, tagged: list[Field], value: str) -> None:
        """Tagged fields are written when they differ from their default; nearly always none does."""
        if not tagged:
            self.run.append(("x", ""))
            return
        values = [self.source.fresh("tagged") for _ in tagged]
        changed = []
        for field, name in zip(tagged, values, strict=True):
            self.source.line(f"{name} = {value}.{field.name}")
            changed.append(self.differs(field, name))
        run = list(self.run)
        with self.source.block(f"if {' or '.join(changed)}:"):
            self.flush()
            self.source.line(f"{self.out}.append({' + '.join(f'({c})' for c in changed)})")
            for field, name, condition in zip(tagged, values, changed, strict=True):
                with self.block(f"if {condition}:"):
                    self.tagged(field, name)
        with self.source.block("else:"):
            self.run = [*run, ("x", "")]
            self.flush()

    def differs(self, field: Field, name: str) -> str:
        if field.default is None:
            return f"({name} is not None)"
        if field.kind == "array":
            return f"({name} is None or len({name}) > 0)"
        if field.kind == "struct":
            default = field.default() if isinstance(field.default, type) else field.default
            known = self.source.fresh("default")
            self.source.scope[known] = default
            return f"({name} is not {known} and {name} != {known})"
        return f"({name} != {field.default!r})"

    def tagged(self, field: Field, value: str) -> None:
        """Tag, size, value. The value is written aside first, because its size comes before it."""
        outer, self.out = self.out, self.source.fresh("aside")
        self.source.line(f"{self.out} = bytearray()")
        self.value(field, value)
        self.flush()
        aside, self.out = self.out, outer
        self.source.line(f"write_unsigned_varint({self.out}, {field.tag})")
        self.source.line(f"write_unsigned_varint({self.out}, len({aside}))")
        self.source.line(f"{self.out} += {aside}")

    def length(self, length: str, letter: str, write_long: str) -> None:
        """Writes a length at the end of the run: one byte where that is enough."""
        if not self.flexible:
            self.run.append((letter, length))
            self.flush()
            return
        run = list(self.run)
        with self.source.block(f"if {length} < 128:"):
            self.run = [*run, ("B", length)]
            self.flush()
        with self.source.block("else:"):
            self.run = run
            self.flush()
            self.source.line(f"{write_long}({self.out}, {length})")

    @contextmanager
    def unless_null(self, field: Field, value: str, length: str, empty: str) -> Iterator[None]:
        if self.version not in field.nullable:
            yield
            return
        with self.source.block(f"if {value} is None:"):
            self.source.line(f"{length} = {0 if self.flexible else -1}")
            self.source.line(empty)
        with self.source.block("else:"):
            yield

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.flush()
        with self.source.block(head):
            yield
            self.flush()

    def flush(self) -> None:
        """Writes the code that writes the run."""
        if not self.run:
            return
        letters = "".join(letter for letter, _ in self.run)
        values = ", ".join(value for letter, value in self.run if letter != "x")
        self.run = []
        if letters == "B":
            self.source.line(f"{self.out}.append({values})")
        elif not values:
            self.source.line(f"{self.out} += {bytes(len(letters))!r}")
        else:
            self.source.line(f"{self.out} += {self.source.layout('pack', letters)}({values})")


_SHORT: dict[str, tuple[Callable[..., bytes], ...]] = {}


def _short_packers(prefix: str, letter: str) -> tuple[Callable[..., bytes], ...]:
    """By length as it is written: compact lengths are one more than the count, and zero is null."""
    key = prefix + letter
    if key not in _SHORT:
        less = 1 if prefix == "B" else 0
        _SHORT[key] = tuple(Struct(f">{prefix}{max(0, n - less)}{letter}").pack for n in range(SHORT_ARRAY))
    return _SHORT[key]
