"""What is done to a right request: bytes flipped, lengths and counts blown up, parts cut, doubled and swapped, batches
broken (half of them with their CRC made right again, so that it is not all that is found), sizes that lie."""

import struct
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from klamm.handlers import TABLE
from klamm.records.batch import ATTRIBUTES_AT, COUNT_AT, CRC_AT, HEADER_BYTES, LAST_OFFSET_DELTA_AT, LENGTH_AT
from klamm.records.crc import crc32c
from klamm.wire.apis import API_BY_KEY
from tests.fuzz.corpus import UNREGISTER_BROKER, Corpus, Frame

AFTER_CORRELATION_ID = 8
AFTER_CLIENT_ID = 15
"""More or less: most of what is done, is done to the body."""

HUGE_VARINTS = (
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x07",
    b"\x80\x80\x80\x80\x10",
    b"\xff\xff\x03",
    b"\xff" * 10,
)
INTERESTING = {
    1: (b"\x00", b"\x01", b"\x7f", b"\x80", b"\xff"),
    2: (b"\xff\xff", b"\x7f\xff", b"\x80\x00", b"\x00\x00", b"\x00\x01", b"\x10\x00"),
    4: (
        b"\x7f\xff\xff\xff",
        b"\xff\xff\xff\xff",
        b"\x80\x00\x00\x00",
        b"\x00\x00\xff\xff",
        bytes(4),
        b"\x00\x00\x00\x40",
    ),
    8: (b"\x7f" + b"\xff" * 7, b"\xff" * 8, b"\x80" + bytes(7), bytes(8)),
}
LYING_SIZES = (0, 1, 9, -1, -(2**31), 2**31 - 1, 104_857_600, 104_857_601)


class Mutated(NamedTuple):
    """`size` is what its frame claims, if that is not its length; then nothing can follow it."""

    body: bytes
    size: int | None = None


class Mutations:
    def __init__(self, chance: Random, corpus: Corpus) -> None:
        self._chance = chance
        self._corpus = corpus
        self._ways: tuple[Callable[[bytearray], None], ...] = (
            self._flip,
            self._flip,
            self._flip,
            self._flip,
            self._overwrite,
            self._overwrite,
            self._blow_up_a_count,
            self._blow_up_a_count,
            self._blow_up_a_varint,
            self._cut,
            self._extend,
            self._double,
            self._swap,
            self._splice,
            self._ask_another,
        )

    def next(self) -> Mutated:
        chance = self._chance
        frame = self._corpus.frame()
        body = bytearray(frame.body)
        if frame.batches and chance.random() < 0.6:
            self._break_batch(body, frame)
            if chance.random() < 0.7:
                return Mutated(bytes(body))
        elif chance.random() < 0.05:
            return Mutated(frame.body)
        for _ in range(1 if chance.random() < 0.8 else chance.randrange(2, 5)):
            self._ways[int(chance.random() * len(self._ways))](body)
        if chance.random() < 0.01:
            return Mutated(bytes(body), self._lying_size(len(body)))
        return Mutated(bytes(body))

    def _lying_size(self, size: int) -> int:
        return self._chance.choice((*LYING_SIZES, size - 1, size + 1, size + 1000))

    # Anywhere.

    def _at(self, body: bytearray) -> int:
        """A place after the key, version and correlation id, which `_ask_another` takes care of."""
        first = AFTER_CORRELATION_ID
        if len(body) > AFTER_CLIENT_ID and self._chance.random() < 0.9:
            first = AFTER_CLIENT_ID
        return first + int(self._chance.random() * (len(body) - first))

    def _flip(self, body: bytearray) -> None:
        for _ in range(self._chance.choice((1, 1, 2, 8))):
            if len(body) > AFTER_CORRELATION_ID:
                body[self._at(body)] ^= 1 << int(self._chance.random() * 8)

    def _overwrite(self, body: bytearray) -> None:
        width = self._chance.choice((1, 2, 4, 8))
        position = self._at(body)
        body[position : position + width] = self._chance.choice(INTERESTING[width])

    def _blow_up_a_count(self, body: bytearray) -> None:
        """A small number of four bytes is likely to be a count or a length."""
        position = body.find(b"\0\0\0", self._at(body))
        if position >= 0:
            body[position : position + 4] = self._chance.choice(INTERESTING[4])

    def _blow_up_a_varint(self, body: bytearray) -> None:
        position = self._at(body)
        body[position : position + 1] = self._chance.choice(HUGE_VARINTS)

    def _cut(self, body: bytearray) -> None:
        position = self._at(body)
        length = self._chance.choice((1, 2, 4, len(body)))
        del body[position : position + length]

    def _extend(self, body: bytearray) -> None:
        position = self._chance.choice((len(body), self._at(body)))
        count = self._chance.choice((1, 4, 100, 2000))
        body[position:position] = self._chance.choice((bytes(count), b"\xff" * count, self._chance.randbytes(count)))

    def _double(self, body: bytearray) -> None:
        position = self._at(body)
        part = body[position : position + self._chance.choice((2, 8, 40, 200))]
        body[position:position] = part * self._chance.choice((1, 1, 1, 20))

    def _swap(self, body: bytearray) -> None:
        first, second = sorted((self._at(body), self._at(body)))
        width = min(self._chance.choice((1, 2, 4, 8, 16)), second - first, len(body) - second)
        one, other = body[first : first + width], body[second : second + width]
        body[first : first + width], body[second : second + width] = other, one

    def _splice(self, body: bytearray) -> None:
        """Begin like this request, end like another."""
        other = self._corpus.frame().body
        position = self._at(body)
        body[position:] = other[min(position, len(other)) :]

    def _ask_another(self, body: bytearray) -> None:
        """Another API or version for the same bytes."""
        chance = self._chance
        (key,) = struct.unpack_from(">h", body)
        if chance.random() < 0.3:
            other = chance.choice((*TABLE, chance.randrange(-2, 100)))
            # The corpus leaves it out for the same reason: the only broker would obey, and go.
            key = key if other == UNREGISTER_BROKER else other
        api = API_BY_KEY.get(key)
        version = chance.randrange(-1, 20) if api is None else chance.randrange(api.min_version, api.max_version + 2)
        struct.pack_into(">hh", body, 0, key, version)

    # Batches.

    def _break_batch(self, body: bytearray, frame: Frame) -> None:
        chance = self._chance
        start, end = chance.choice(frame.batches)
        for _ in range(chance.choice((1, 1, 2, 3))):
            if chance.random() < 0.5:
                at = start + chance.choice(
                    (LENGTH_AT, LAST_OFFSET_DELTA_AT, COUNT_AT, chance.randrange(HEADER_BYTES - 8))
                )
                width = chance.choice((1, 2, 4, 4, 8))
                body[at : at + width] = chance.choice(INTERESTING[width])
            elif end - start > HEADER_BYTES:
                at = chance.randrange(start + HEADER_BYTES, end)
                body[at] = chance.choice((body[at] ^ 1 << chance.randrange(8), 0, 0xFF, 0x7F, 0x80))
        if chance.random() < 0.3:
            # One more record promised than there is, in both places.
            count = chance.choice((2, 3, 100, 2**31 - 1))
            struct.pack_into(">i", body, start + COUNT_AT, count)
            struct.pack_into(">i", body, start + LAST_OFFSET_DELTA_AT, count - 1)
        if chance.random() < 0.5:
            struct.pack_into(">I", body, start + CRC_AT, crc32c(memoryview(body)[start + ATTRIBUTES_AT : end]))
