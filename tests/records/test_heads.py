"""Records of unequal lengths, as columns of their heads: what is wrong with any of them is seen.

Batches are drawn around the numbers where something changes: records that fill a table, offsets and times that need
one byte more, lengths of one, two and three bytes. A beginner's reader says what is right.
"""

from random import Random
from typing import Any

import pytest

from klamm.records.batch import HEADER_BYTES, InvalidBatch, checked
from klamm.records.builder import BatchBuilder
from klamm.records.compression import Codec, compressed
from klamm.records.heads import LONGEST_TABLE, SHORTEST_TABLE, pass_table
from klamm.records.record import records_of
from klamm.records.validation import validated
from klamm.records.walking import LATEST_MS, Times
from tests.records import naive
from tests.records.malformed import BASE_MS, Parts, batch_of, number

COUNTS = (1, 11, 12, SHORTEST_TABLE, SHORTEST_TABLE + 1, 63, 64, 65, 64 + SHORTEST_TABLE, 200)
SIZES = ((0, 3), (40, 80), (50, 150), (400, 1500))
KEYS: tuple[tuple[int, ...], ...] = ((-1,), (8,), (-1, 8), (1, 2, 3, 4, 5), (20,), (36,), (70,), (0,))


def drawn_parts(random: Random) -> list[Parts]:
    """Sound records. Most are for a table; some times go back, some records have headers, some are very large."""
    shortest, longest = random.choice(SIZES)
    keys = random.choice(KEYS)
    tick = random.choice((0, 1, 1, 5, 100, 50_000))
    parts = []
    for index in range(random.choice(COUNTS)):
        length = random.choice(keys)
        key = None if length < 0 else random.randbytes(length)
        parts.append(Parts(index * tick, index, key, random.randbytes(random.randint(shortest, longest)), []))
    for _ in range(random.choice((0, 0, 0, 1, 3))):
        part = random.choice(parts)
        match random.randrange(6):
            case 0:
                part.value = None
            case 1:
                part.time = random.choice((-1, 63, 64, 8191, 8192, -BASE_MS - 1))
            case 2:
                part.headers = [(b"name", b"value")]
            case 3:
                part.value = bytes(random.randint(8150, 8250))
            case 4:
                part.attributes = random.randrange(256)
            case _:
                part.longer = 1
    return parts


def break_one(parts: list[Parts], random: Random) -> None:
    part = random.choice(parts)
    value = part.value or b""
    match random.randrange(9):
        case 0:
            part.offset += random.choice((-1, 1, 64, 8192))
        case 1:
            part.time = -BASE_MS - 2
        case 2:
            part.key_length = random.choice((-2, -1, 0, 1, 2, 60, 64, 127, 5000))
        case 3:
            part.value_length = len(value) + random.choice((-64, -2, -1, 1, 2, 64, 128, 8192))
        case 4:
            part.header_count = random.choice((-1, 1, 2, 64))
        case 5:
            part.tail = random.choice((b"\0", b"\1", b"\0" * 64))
        case 6:
            inner = len(part.encoded())
            part.length = inner + random.randint(-4, 4)
        case 7 if len(parts) > 1:
            parts.remove(part)
        case _:
            parts.append(part)


@pytest.mark.parametrize("window", [None, 200, 5000])
@pytest.mark.parametrize("seed", range(6))
def test_unequal_records_agree_with_a_beginner(seed: int, window: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """In windows of all sizes, of what is plain, and in pieces of what is compressed."""
    if window is not None:
        monkeypatch.setattr("klamm.records.validation._WINDOW_BYTES", window)
        monkeypatch.setattr("klamm.records.validation._FEW_BYTES", window // 8)
        monkeypatch.setattr("klamm.records.decompression.PIECE_BYTES", window)
    random = Random(seed)
    sound = 0
    for each in range(120):
        parts = drawn_parts(random)
        count = len(parts)
        if each % 3:
            break_one(parts, random)
            if not each % 2:
                count = len(parts)
        body = bytearray(b"".join(part.encoded() for part in parts))
        if each % 9 == 1 and body:
            body[random.randrange(len(body))] ^= 1 << random.randrange(8)
        codec = random.choice((Codec.NONE, Codec.NONE, Codec.LZ4))
        agrees, is_sound = check_agreement(bytes(body), count, codec, bool(random.randrange(5) == 0))
        assert agrees, f"seed {seed}, batch {each}"
        sound += is_sound
    assert 25 <= sound <= 110


def check_agreement(body: bytes, count: int, codec: Codec, need_keys: bool) -> tuple[bool, bool]:
    """Whether both say the same of it, and whether it is sound."""
    batch = batch_of(codec, compressed(codec, body), count)
    try:
        header = checked(memoryview(batch))
    except InvalidBatch:
        return True, False
    try:
        wanted: int | None = naive.youngest(batch, header)
        if need_keys and any(key is None for key in naive_keys(batch)):
            wanted = None
    except naive.Unreadable:
        wanted = None
    try:
        found = validated(memoryview(batch), header, need_keys)
        youngest: int | None = found if isinstance(found, int) else found.finish()
    except InvalidBatch:
        youngest = None
    return youngest == wanted, wanted is not None


def naive_keys(batch: bytearray) -> list[bytes | None]:
    return [record.key for record in records_of(batch)]


def passed(parts: list[Parts], **rules: Any) -> int:
    """How many go by as one table."""
    body = b"\0" + b"".join(part.encoded() for part in parts) + bytes(80)
    times = Times(BASE_MS, rules.pop("earliest", 0), rules.pop("latest", LATEST_MS))
    index, at = pass_table(body, 1, 0, len(parts), times, rules.pop("need_keys", False))
    assert at == 1 + sum(len(part.encoded()) for part in parts[:index])
    if index:
        assert times.high == 2 * max(part.time for part in parts[:index])
    return index


def unequal(count: int, key: bytes | None = None, tick: int = 1) -> list[Parts]:
    return [Parts(index * tick, index, key, b"v" * (30 + index * 37 % 90), []) for index in range(count)]


def test_a_table_takes_what_it_is_made_for() -> None:
    """Not the slow loop: nothing else would show that it does."""
    assert passed(unequal(60)) == passed(unequal(60, b"key")) == passed(unequal(60, b"k" * 40)) == 60
    assert passed(unequal(64)) == passed(unequal(65)) == 64, "offsets of one byte"
    assert passed(unequal(60, tick=2)) == 32, "times of one byte"
    mixed = unequal(60)
    for index, part in enumerate(mixed):
        part.key = None if index % 7 == 0 else b"k" * (index % 5)
        part.value = None if index % 11 == 0 else part.value
        part.attributes = 127 if index % 3 == 0 else 0
    assert passed(mixed) == 60
    assert passed(mixed, need_keys=True) == 0
    assert passed(unequal(SHORTEST_TABLE - 1)) == 0
    assert passed(unequal(60), latest=BASE_MS + 58) == 0


@pytest.mark.parametrize("start", [64, 8192 - LONGEST_TABLE, 8192 - 30, 8192, (1 << 20) - 40, 1 << 20])
def test_offsets_of_more_bytes_end_a_table(start: int) -> None:
    parts = [Parts(0, start + index, None, b"v" * (30 + index % 50), []) for index in range(LONGEST_TABLE + 50)]
    body = b"\0" + b"".join(part.encoded() for part in parts) + bytes(80)
    index, _ = pass_table(body, 1, start, start + len(parts), Times(BASE_MS, 0, LATEST_MS), False)
    end = next(end for end in (8192, 1 << 20, (1 << 20) + 8192, 16384) if start < end)
    assert index - start == min(LONGEST_TABLE, end - start)
    for wrong in (0, 17, index - start - 1):
        parts[wrong].offset += 1
        body = b"\0" + b"".join(part.encoded() for part in parts) + bytes(80)
        last = start + len(parts)
        assert pass_table(body, 1, start, last, Times(BASE_MS, 0, LATEST_MS), False) == (start, 1)
        parts[wrong].offset -= 1


def test_one_record_alone_needs_no_work_at_all() -> None:
    """Nearly every request of many producers."""
    for key, value in ((None, b"v"), (b"k", b""), (b"k" * 60, b"v" * 1000)):
        builder = BatchBuilder()
        builder.append(key, value, BASE_MS)
        batch = builder.build()
        header = checked(memoryview(batch))
        assert validated(memoryview(batch), header) == BASE_MS
        assert validated(memoryview(batch), header, earliest_ms=BASE_MS, latest_ms=BASE_MS) == BASE_MS
        for window in ({"latest_ms": BASE_MS - 1}, {"earliest_ms": BASE_MS + 1}):
            with pytest.raises(InvalidBatch):
                validated(memoryview(batch), header, **window)
        for position in range(HEADER_BYTES, min(len(batch), HEADER_BYTES + 70)):
            for bit in range(8):
                broken = bytearray(batch)
                broken[position] ^= 1 << bit
                agrees, _ = check_agreement(bytes(broken[HEADER_BYTES:]), 1, Codec.NONE, False)
                assert agrees, (key, position, bit)


LONGER_THAN_NEEDED = number(100)[:1] + bytes((number(100)[1] | 128, 0))


@pytest.mark.parametrize(
    "lying", [number(-1) + LONGER_THAN_NEEDED + b"v" * 99, number(-2) + b"x" + number(100) + b"v" * 99]
)
def test_a_length_is_not_taken_for_another(lying: bytes) -> None:
    """The value's has a byte more than it needs, or the key's is negative: read otherwise, all would be as long as it
    says, and the value's last byte would be the count of headers."""
    encoded = [part.encoded() for part in unequal(60)]
    inner = bytes(1) + number(30) + number(30) + lying + b"\0"
    encoded[30] = number(len(inner)) + inner
    agrees, is_sound = check_agreement(b"".join(encoded), 60, Codec.NONE, False)
    assert agrees and not is_sound
