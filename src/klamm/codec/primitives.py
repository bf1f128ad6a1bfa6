"""The parts of Kafka's encoding that are the same for every message: varints, tags, and the one way to be wrong.

Generated code calls these only off the fast path: a varint of one byte is read and written in place, and a message
with tagged fields we do not know is rare. Nothing here allocates more than it was shown bytes for.
"""

from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview

MAX_STRING_BYTES = 32_767  # Kafka's limit for every string, also where the length is a varint.


class Malformed(ValueError):  # noqa: N818
    """Bytes that are no message: the only exception that reading may raise."""


def read_unsigned_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """The number at `position` and the position after it."""
    first = buffer[position]
    if first < 128:
        return first, position + 1
    return rest_of_varint(buffer, position + 1, first)


def rest_of_varint(buffer: Buffer, position: int, first: int) -> tuple[int, int]:
    """As above, where the first byte was read already and said that more follow.

    A number may be written longer than it needs (Kafka reads that too), but never over five bytes or 32 bits. Records
    nearly always have a length of two or three bytes: hence no loop.
    """
    value = first & 127
    byte = buffer[position]
    if byte < 128:
        return value | byte << 7, position + 1
    value |= (byte & 127) << 7
    byte = buffer[position + 1]
    if byte < 128:
        return value | byte << 14, position + 2
    value |= (byte & 127) << 14
    byte = buffer[position + 2]
    if byte < 128:
        return value | byte << 21, position + 3
    value |= (byte & 127) << 21
    byte = buffer[position + 3]
    if byte > 15:
        raise Malformed("varint over 32 bits")
    return value | byte << 28, position + 4


def write_unsigned_varint(out: bytearray, value: int) -> None:
    assert 0 <= value <= 0xFFFF_FFFF
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def write_string_length(out: bytearray, length_plus_one: int) -> None:
    if length_plus_one > MAX_STRING_BYTES + 1:
        raise ValueError(f"string of {length_plus_one - 1} bytes, Kafka allows {MAX_STRING_BYTES}")
    write_unsigned_varint(out, length_plus_one)


def read_tag(buffer: Buffer, position: int, previous_tag: int) -> tuple[int, int, int]:
    """A tag, where its value begins and where it ends. Tags ascend, so none comes twice."""
    tag, position = read_unsigned_varint(buffer, position)
    if tag <= previous_tag:
        raise Malformed(f"tag {tag} after tag {previous_tag}")
    size, position = read_unsigned_varint(buffer, position)
    if size > len(buffer) - position:
        raise Malformed(f"tag {tag} of {size} bytes, {len(buffer) - position} remain")
    return tag, position, position + size


def skip_tags(buffer: Buffer, position: int, count: int) -> int:
    """The position after `count` tagged fields. They are not kept: a header full of tags must not become objects."""
    if count > 127:
        # Kafka has at most a handful; a count that needs a second byte is an attack (CVE-2026-111115) or noise.
        raise Malformed("over 127 tagged fields in one structure")
    tag = -1
    for _ in range(count):
        tag, _, position = read_tag(buffer, position, tag)
    return position
