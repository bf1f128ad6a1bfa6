"""The records that `klamm produce` is given: lines, lines of JSON, whole files, or words of the command line."""

import io
import os
import select
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, BinaryIO

from klamm.cli.json_records import ANY_PARTITION, NOW_MS, Headers, NotARecord, Record, record_of

FEW_BYTES = 64 << 10
LOOK_SECONDS = 0.1


class BadLine(Exception):  # noqa: N818
    """A line that cannot be sent, by its number, and why. What came before it is sent."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What the options say of every record."""

    key: bytes | None = None
    separator: bytes | None = None
    """Between the key and the value of a line; a line without it has no key."""
    null: bytes | None = None
    """A key or value that reads like this is null."""
    partition: int | None = None
    """For all of them; ANY_PARTITION whatever they say; None as they say."""
    headers: Headers | None = None

    def record(self, value: bytes | None, key: bytes | None) -> Record:
        partition = ANY_PARTITION if self.partition is None else self.partition
        return value, key, partition, None, None, NOW_MS, self.headers


@dataclass(slots=True)
class Meanwhile:
    """What is done by the clock while input is read, and while there is none. What it raises ends the reading."""

    act: Callable[[], None] = lambda: None
    next_at: float = 0.0


@dataclass(slots=True)
class Tally:
    """What was remarkable about the lines that were read."""

    without_separator: int = 0


def records_of_words(shape: Shape, values: Sequence[bytes | None]) -> Iterator[Record]:
    for value in values:
        yield shape.record(value, shape.key)


def record_of_whole(shape: Shape, data: bytes) -> Record:
    return shape.record(data, shape.key)


def records_of_lines(shape: Shape, lines: Iterable[bytes], tally: Tally) -> Iterator[Record]:
    if shape.separator is None and shape.null is None:
        # Nothing to look for in them: as quickly as lines can be read.
        _, key, partition, _, _, now_ms, headers = shape.record(None, shape.key)
        for line in lines:
            yield line.removesuffix(b"\n"), key, partition, None, None, now_ms, headers
        return
    for line in lines:
        value, key = line.removesuffix(b"\n"), shape.key
        if shape.separator is not None:
            if shape.separator in value:
                key, _, value = value.partition(shape.separator)
            else:
                tally.without_separator += 1
        yield shape.record(_unless_null(shape, value), _unless_null(shape, key))


def records_of_json(shape: Shape, lines: Iterable[bytes], name: str) -> Iterator[Record]:
    """The options win over what a line says."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            value, key, partition, _, _, time_ms, headers = record_of(line)
        except NotARecord as problem:
            raise BadLine(f"{name}, line {number} {problem}") from None
        yield (
            value,
            key if shape.key is None else shape.key,
            partition if shape.partition is None else shape.partition,
            None,
            None,
            time_ms,
            [*(headers or ()), *shape.headers] if shape.headers else headers,
        )


def lines_and_whether_few(file: BinaryIO, meanwhile: Meanwhile | None = None) -> tuple[Iterable[bytes], bool]:
    """The lines, and whether they are few and all there already: `echo hello` has written, and has ended.

    Nothing is waited for. Whoever still writes may write for hours.
    """
    begun = bytearray()
    while len(begun) < FEW_BYTES and _is_ready(file, 0.0):
        more = os.read(file.fileno(), FEW_BYTES)
        if not more:
            return io.BytesIO(begun), True
        begun += more
    whole = begun.rfind(b"\n") + 1
    rest = io.BufferedReader(_Awaited(file, meanwhile or Meanwhile()), FEW_BYTES)
    return chain(io.BytesIO(begun[:whole]), _joined(bytes(begun[whole:]), rest)), False


class _Awaited(io.RawIOBase):
    """A file that is read as it comes, past its own buffer."""

    def __init__(self, file: BinaryIO, meanwhile: Meanwhile) -> None:
        self._file = file
        self._meanwhile = meanwhile

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        while not _is_ready(self._file, LOOK_SECONDS):
            self._act()
        if time.monotonic() >= self._meanwhile.next_at:
            # Somebody who writes a little all the time lets nobody wait.
            self._act()
        return os.readv(self._file.fileno(), [into])

    def _act(self) -> None:
        self._meanwhile.act()
        self._meanwhile.next_at = time.monotonic() + LOOK_SECONDS


def _is_ready(file: BinaryIO, within_seconds: float) -> bool:
    """There is something to read, or its end. By poll: select knows no file whose number is above 1023."""
    poll = select.poll()
    poll.register(file, select.POLLIN)
    return bool(poll.poll(within_seconds * 1_000))


def _joined(half_a_line: bytes, file: BinaryIO) -> Iterator[bytes]:
    if line := half_a_line + file.readline():
        yield line
    yield from file


def _unless_null(shape: Shape, data: bytes | None) -> bytes | None:
    return None if data == shape.null else data
