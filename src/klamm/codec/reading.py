"""The reader of one message in one version: a function (buffer, position, budget) -> (value, position after it).

Nested structures are inlined as loops. Every length and count is compared with the bytes that remain, and counts with
the budget too, before anything is made: a few hostile bytes cannot become many objects. The budget is that of the
whole message and counts array elements, the containers inside them, and tags. A reader raises `Malformed`,
or `struct.error`, `IndexError` or `UnicodeDecodeError` where the bytes simply end or are no text; `compiler.decode`
makes one of them all.

A reader in slices is the same as a generator, for messages with very many elements.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from struct import Struct, calcsize, unpack_from
from typing import Any

from klamm.codec.generated import FORMATS, SHORT_ARRAY, SLICE_ELEMENTS, Source, least_bytes, objects, present
from klamm.codec.primitives import MAX_STRING_BYTES, Malformed, read_tag, rest_of_varint, skip_tags
from klamm.codec.schema import Field, default_of, schema_of


def reader_of(cls: type, version: int, *, in_slices: bool = False) -> Callable[..., Any]:
    return _Reader(cls, version, in_slices).source.function()


def reader_source(cls: type, version: int) -> str:
    return _Reader(cls, version, in_slices=False).source.text()


class _Reader:
    def __init__(self, cls: type, version: int, in_slices: bool) -> None:
        schema = schema_of(cls)
        assert version in schema.versions, f"{schema.name} has no version {version}"
        self.version = version
        self.flexible = version in schema.flexible
        self.in_slices = in_slices
        self.run: list[tuple[str, str]] = []
        self.source = Source(f"read_{schema.name}_v{version}", "buffer, p, budget")
        self.source.scope.update(
            Malformed=Malformed,
            read_tag=read_tag,
            rest_of_varint=rest_of_varint,
            skip_tags=skip_tags,
            unpack_from=unpack_from,
            new=object.__new__,
        )
        if _has_records(cls):
            with self.source.block("if buffer.__class__ is not memoryview:"):
                self.source.line("buffer = memoryview(buffer)")
        self.source.line("end = len(buffer)")
        if in_slices:
            self.source.line(f"left = {SLICE_ELEMENTS}")
        self.structure(cls, "value", schema.name)
        self.flush()
        if in_slices and "yield" not in self.source.text():
            self.source.line("yield from ()")
        self.source.line("return value, p")

    def structure(self, cls: type, target: str, path: str) -> None:
        in_line, tagged, absent = present(cls, self.version, self.flexible)
        self.source.line(f"{target} = new({self.source.refer(cls.__name__, cls)})")
        for field in absent + tagged:
            self.default(field, f"{target}.{field.name}")
        for field in in_line:
            self.value(field, f"{target}.{field.name}", f"{path}.{field.name}")
        if self.flexible:
            self.tags(tagged, target, path)

    def default(self, field: Field, target: str) -> None:
        expression = default_of(field)
        name = f"default_{field.name}"
        if expression.startswith(name):
            if field.default is None or type(field.default) in (int, bool, str, bytes):
                expression = repr(field.default)
            else:
                expression = expression.replace(name, self.source.refer("default", field.default))
        self.source.line(f"{target} = {expression}")

    def value(self, field: Field, target: str, path: str) -> None:
        if field.kind in FORMATS:
            self.run.append((FORMATS[field.kind][0], target))
        elif field.kind == "struct":
            self.nested(field, target, path)
        elif field.kind == "array":
            self.array(field, target, path)
        else:
            self.text(field, target, path)

    def text(self, field: Field, target: str, path: str) -> None:
        """Strings, bytes and records: a length and that many bytes."""
        length = self.length(field, path, "h" if field.kind == "string" else "i")
        with self.unless_null(field, target, length, path):
            self.source.line(f"e = p + {length} - 1" if self.flexible else f"e = p + {length}")
            self.complain_if("e > end", path, "longer than the message")
            if field.kind == "string":
                self.source.line(f'{target} = str(buffer[p:e], "utf-8")')
            elif field.kind == "bytes":
                self.source.line(f"{target} = bytes(buffer[p:e])")
            else:
                self.source.line(f"{target} = buffer[p:e]")
            self.source.line("p = e")

    def array(self, field: Field, target: str, path: str) -> None:
        assert isinstance(field.of, Field)
        count = self.length(field, path, "i")
        with self.unless_null(field, target, count, path):
            if self.flexible:
                self.source.line(f"{count} -= 1")
            bytes_needed = _times(count, max(1, least_bytes(field.of, self.version, self.flexible)))
            cost = _times(count, objects(field.of, self.version, self.flexible))
            self.complain_if(f"{bytes_needed} > end - p", path, "more elements than bytes for them")
            self.source.line(f"budget -= {cost}")
            self.complain_if("budget < 0", path, "more elements than the budget allows")
            if field.of.kind in FORMATS and len(FORMATS[field.of.kind][0]) == 1:
                self.numbers(*FORMATS[field.of.kind], target, count)
            else:
                items = self.source.fresh("items")
                self.source.line(f"{target} = {items} = []")
                with self.block(f"for _ in range({count}):"):
                    item = self.source.fresh("item")
                    self.value(field.of, item, path)
                    self.flush()
                    self.source.line(f"{items}.append({item})")
                    if self.in_slices:
                        self.source.end_of_slice()

    def numbers(self, letter: str, size: int, target: str, count: str) -> None:
        """All of an array of numbers with one call."""
        short = self.source.refer(f"short_{letter}", _short_unpackers(letter))
        self.source.line(
            f"{target} = list({short}[{count}](buffer, p) if {count} < {SHORT_ARRAY}"
            f' else unpack_from(f">{{{count}}}{letter}", buffer, p))'
        )
        self.source.line(f"p += {count} * {size}" if size > 1 else f"p += {count}")
        if self.in_slices:
            self.source.end_of_slice(count)

    def nested(self, field: Field, target: str, path: str) -> None:
        item = target if target.isidentifier() else self.source.fresh("item")
        if self.version in field.nullable:
            sign = self.source.fresh("sign")
            self.run.append(("b", sign))
            self.flush()
            with self.block(f"if {sign} < 0:"):
                self.source.line(f"{item} = None")
            with self.block("else:"):
                self.structure(field.struct, item, path)
        else:
            self.structure(field.struct, item, path)
        if item != target:
            self.source.line(f"{target} = {item}")

    def tags(self, tagged: list[Field], target: str, path: str) -> None:
        """Known tags are read, others skipped. Most messages have none, so that costs one byte of a run."""
        tags = self.source.fresh("tags")
        self.run.append(("B", tags))
        self.flush()
        with self.block(f"if {tags}:"):
            self.source.line(f"budget -= {tags}")
            self.complain_if("budget < 0", path, "more tagged fields than the budget allows")
            if not tagged:
                self.source.line(f"p = skip_tags(buffer, p, {tags})")
                return
            self.complain_if(f"{tags} > 127", path, "too many tagged fields")
            tag, stop = self.source.fresh("tag"), self.source.fresh("stop")
            self.source.line(f"{tag} = -1")
            with self.block(f"for _ in range({tags}):"):
                self.source.line(f"{tag}, p, {stop} = read_tag(buffer, p, {tag})")
                word = "if"
                for field in tagged:
                    with self.block(f"{word} {tag} == {field.tag}:"):
                        self.value(field, f"{target}.{field.name}", f"{path}.{field.name}")
                        self.flush()
                        self.complain_if(f"p != {stop}", f"{path}.{field.name}", "not as long as its tag says")
                    word = "elif"
                with self.block("else:"):
                    self.source.line(f"p = {stop}")

    def length(self, field: Field, path: str, letter: str) -> str:
        """Reads a length. Flexible versions store one more than the length, so that zero means null."""
        length = self.source.fresh("n")
        self.run.append(("B" if self.flexible else letter, length))
        self.flush()
        if self.flexible:
            with self.block(f"if {length} > 127:"):
                self.source.line(f"{length}, p = rest_of_varint(buffer, p, {length})")
                if field.kind == "string":
                    self.complain_if(f"{length} > {MAX_STRING_BYTES + 1}", path, "string over 32767 bytes")
        return length

    @contextmanager
    def unless_null(self, field: Field, target: str, length: str, path: str) -> Iterator[None]:
        null, value = (f"not {length}", f"if {length}:") if self.flexible else (f"{length} < 0", f"if {length} >= 0:")
        if self.version not in field.nullable:
            self.complain_if(null, path, "null")
            yield
            return
        with self.block(value):
            yield
        if not self.flexible:
            with self.block(f"elif {length} != -1:"):
                self.complain(path, "negative length")
        with self.block("else:"):
            self.source.line(f"{target} = None")

    def complain_if(self, condition: str, path: str, why: str) -> None:
        with self.source.block(f"if {condition}:"):
            self.complain(path, why)

    def complain(self, path: str, why: str) -> None:
        self.source.line(f"raise Malformed({f'{path}: {why}'!r})")

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """A block of code; runs end before it and inside it."""
        self.flush()
        with self.source.block(head):
            yield
            self.flush()

    def flush(self) -> None:
        """Writes the code that reads the run."""
        if not self.run:
            return
        letters = "".join(letter for letter, _ in self.run)
        targets = ", ".join(target for _, target in self.run)
        self.run.clear()
        if letters == "B":
            self.source.line(f"{targets} = buffer[p]")
            self.source.line("p += 1")
            return
        unpack = self.source.layout("unpack_from", letters)
        self.source.line(f"{targets}{'' if ', ' in targets else ','} = {unpack}(buffer, p)")
        self.source.line(f"p += {calcsize('>' + letters)}")


def _times(count: str, factor: int) -> str:
    return count if factor == 1 else f"{count} * {factor}"


def _has_records(cls: type) -> bool:
    """Whether a reader must give out views. Of records none is ever copied."""
    return any(field.kind == "records" or any(map(_has_records, field.structs)) for field in schema_of(cls).fields)


_SHORT: dict[str, tuple[Callable[..., Any], ...]] = {}


def _short_unpackers(letter: str) -> tuple[Callable[..., Any], ...]:
    if letter not in _SHORT:
        _SHORT[letter] = tuple(Struct(f">{n}{letter}").unpack_from for n in range(SHORT_ARRAY))
    return _SHORT[letter]
