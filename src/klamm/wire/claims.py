"""How a node shows which broker it is: a token that it confirms where that broker is registered.

Without secrets in the cluster, one thing tells a broker from a stranger: it answers at its own address. A node that
opens a connection on which it will speak as a broker draws a token and puts its claim (broker id, token) into the
header of the first request. The other side dials the address at which that broker is registered and asks whether the
token belongs to a connection of this process to the asker. A token is worth nothing elsewhere: who was shown one cannot
use it at a third node, because the question names the asker.

Both are tagged fields. Kafka's programs skip tags that they do not know, and never send these. The question is an
ApiVersions request whose header holds it; the answer an ApiVersions response with two fields more.
"""

from typing import NamedTuple

from klamm.codec.primitives import Buffer, read_tag, skip_tags, write_unsigned_varint
from klamm.codec.schema import array, boolean, int16, int32, message, uuid
from klamm.ids import BrokerId, Uuid

CLAIM, QUESTION = 0x4B4C41, 0x4B4C42
"""Tags far from those that Kafka, or a test of unknown tags, would use."""

TOKEN_BYTES = 16
NO_TOKEN = bytes(TOKEN_BYTES)
"""Nobody draws it: a question with it asks only which incarnation is there."""


class Claim(NamedTuple):
    """In a request's header. As a question, the broker is the one that asks."""

    tag: int
    broker_id: BrokerId
    token: bytes


@message(versions="0-4", flexible="3+")
class TokenAnswer:
    """An ApiVersions response, as far as somebody needs it who asks this question."""

    error_code: int = int16()
    api_keys: list[int] = array(int16())
    throttle_time_ms: int = int32(versions="1+")
    is_ours: bool = boolean(versions="3+", tag=CLAIM, tagged="3+")
    incarnation_id: Uuid = uuid(versions="3+", tag=QUESTION, tagged="3+")


def claim_bytes(tag: int, broker_id: BrokerId, token: bytes) -> bytes:
    """The tagged fields of a request header, with their count: this one alone."""
    assert len(token) == TOKEN_BYTES
    out = bytearray([1])
    write_unsigned_varint(out, tag)
    out.append(4 + TOKEN_BYTES)
    return bytes(out + broker_id.to_bytes(4, "big", signed=True) + token)


def read_claim(buffer: Buffer, position: int, count: int) -> tuple[Claim | None, int]:
    """A request header's tagged fields: the claim or question among them, and where they end."""
    end = skip_tags(buffer, position, count)
    claim: Claim | None = None
    tag = -1
    for _ in range(count):
        tag, start, position = read_tag(buffer, position, tag)
        if tag in (CLAIM, QUESTION) and position - start == 4 + TOKEN_BYTES:
            broker_id = int.from_bytes(buffer[start : start + 4], "big", signed=True)
            claim = Claim(tag, broker_id, bytes(buffer[start + 4 : position]))
    return claim, end
