"""Reading and writing messages: the functions are generated on a version's first use and kept.

`reader` and `writer` are for the hot path, which handles splices and calls the functions itself; `decode` and `encode`
are for everybody else.
"""

from collections.abc import Callable, Generator
from struct import error as struct_error
from typing import Any, TypeVar

from klamm.codec.primitives import Buffer, Malformed
from klamm.codec.reading import reader_of
from klamm.codec.writing import writer_of

T = TypeVar("T")
Splices = list[tuple[int, Any]]

# Array elements, containers inside them and tags of one whole message: whatever the bytes say, reading them makes
# objects of some thirty megabytes at most, besides the text and bytes they hold.
DEFAULT_BUDGET = 262_144

_readers: dict[tuple[type, int], Callable[..., Any]] = {}
_writers: dict[tuple[type, int], Callable[..., Any]] = {}
_sliced_readers: dict[tuple[type, int], Callable[..., Any]] = {}
_sliced_writers: dict[tuple[type, int], Callable[..., Any]] = {}


def reader(cls: type[T], version: int) -> Callable[[Buffer, int, int], tuple[T, int]]:
    """(buffer, position, budget) -> (value, position after it)."""
    read = _readers.get((cls, version))
    if read is None:
        read = _readers[cls, version] = reader_of(cls, version)
    return read


def writer(cls: type[T], version: int) -> Callable[[bytearray, T, Splices], None]:
    """(out, value, splices): appends to `out`; what is too large to copy is noted in `splices` with its place."""
    write = _writers.get((cls, version))
    if write is None:
        write = _writers[cls, version] = writer_of(cls, version)
    return write


def decode(cls: type[T], version: int, buffer: Buffer, *, budget: int = DEFAULT_BUDGET, exact: bool = False) -> T:
    """The value in `buffer`. Bytes after it are ignored, as Kafka does with requests, unless `exact`."""
    value, position = decode_from(cls, version, buffer, 0, budget=budget)
    if exact and position != len(buffer):
        raise Malformed(f"{cls.__name__}: {len(buffer) - position} bytes too many")
    return value


def decode_from(
    cls: type[T], version: int, buffer: Buffer, position: int, *, budget: int = DEFAULT_BUDGET
) -> tuple[T, int]:
    """The value at `position` and the position after it: the one door where wrong bytes become `Malformed`."""
    try:
        return reader(cls, version)(buffer, position, budget)
    except (struct_error, IndexError) as error:
        raise Malformed(f"{cls.__name__} version {version} ends too early") from error
    except UnicodeDecodeError as error:
        raise Malformed(f"{cls.__name__} version {version}: {error}") from error


def decode_in_slices(
    cls: type[T], version: int, buffer: Buffer, position: int, *, budget: int = DEFAULT_BUDGET
) -> Generator[None, Any, tuple[T, int]]:
    """As `decode_from`, with a `yield` after every thousand elements. Then the buffer must stay as it is."""
    read = _sliced_readers.get((cls, version))
    if read is None:
        read = _sliced_readers[cls, version] = reader_of(cls, version, in_slices=True)
    try:
        return (yield from read(buffer, position, budget))  # type: ignore[no-any-return]
    except (struct_error, IndexError) as error:
        raise Malformed(f"{cls.__name__} version {version} ends too early") from error
    except UnicodeDecodeError as error:
        raise Malformed(f"{cls.__name__} version {version}: {error}") from error


def write_in_slices(out: bytearray, value: Any, version: int, splices: Splices) -> Generator[None, Any, None]:
    """As a `writer` does it, with a `yield` after every thousand elements."""
    key = (type(value), version)
    write = _sliced_writers.get(key)
    if write is None:
        write = _sliced_writers[key] = writer_of(*key, in_slices=True)
    yield from write(out, value, splices)


def encode(value: Any, version: int) -> bytes:
    """The bytes of `value`, records included."""
    out = bytearray()
    splices: Splices = []
    writer(type(value), version)(out, value, splices)
    return b"".join(pieces(out, splices)) if splices else bytes(out)


def pieces(out: bytearray, splices: Splices) -> list[Any]:
    """`out` cut at the splices, with what belongs there in between."""
    if not splices:
        return [out]
    view, start, found = memoryview(out), 0, []
    for position, value in splices:
        if position > start:
            found.append(view[start:position])
        found.append(value)
        start = position
    if start < len(out):
        found.append(view[start:])
    return found
