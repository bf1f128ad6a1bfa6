"""Records that some client could not read are found out, and all others are taken."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klamm.errors import ErrorCode
from klamm.records.batch import InvalidBatch, checked
from klamm.records.builder import BatchBuilder
from klamm.records.compression import Codec
from klamm.records.record import InvalidRecords
from klamm.records.validation import Validation, validated
from tests.records import naive
from tests.records.malformed import BASE_MS, Parts, batch_of, drawn, packed


def judged(batch: bytearray, **rules: int) -> int | ErrorCode:
    """The largest timestamp, or the code of the refusal."""
    view = memoryview(batch)
    try:
        return finished(validated(view, checked(view), **rules))  # type: ignore[arg-type]
    except InvalidBatch as error:
        return error.code


def finished(found: int | Validation) -> int:
    if isinstance(found, int):
        return found
    while not found.step():
        pass
    return found.youngest


def in_pieces(batch: bytearray, size: int, monkeypatch: pytest.MonkeyPatch) -> int | ErrorCode:
    """The same, by the long way, in pieces of this size."""
    monkeypatch.setattr("klamm.records.decompression.PIECE_BYTES", size)
    view = memoryview(batch)
    try:
        return finished(Validation(view, checked(view)))
    except InvalidBatch as error:
        return error.code
    finally:
        monkeypatch.undo()


def expected(batch: bytearray) -> int | None:
    try:
        return naive.youngest(batch, checked(memoryview(batch)))
    except (naive.Unreadable, InvalidBatch):
        return None


@pytest.mark.parametrize("seed", range(20))
def test_it_agrees_with_a_beginner(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    for number in range(150):
        batch, done = drawn(random, sound=number % 5 == 0)
        wanted = expected(batch)
        what = f"seed {seed}, batch {number}: {done}"
        if number % 5 == 0:
            assert wanted is not None, what
        size = random.choice((1, 2, 7, 30, 1000, 128 << 10))
        for found in (judged(batch), in_pieces(batch, size if len(batch) < 20_000 else 1000, monkeypatch)):
            if wanted is None:
                assert found in (ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TIMESTAMP), what
            else:
                assert found == wanted and not isinstance(found, ErrorCode), what
