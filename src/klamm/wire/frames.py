"""Frames: on a connection every request and response is preceded by its size in four bytes.

Outgoing frames are lists of pieces, because records are not copied: a piece is a buffer or a region of a file, anything
with a length. Incoming bytes are cut where they lie; a frame is a view of the buffer it arrived in.
"""

from collections.abc import Generator
from struct import Struct
from typing import Any

from klamm.codec.compiler import Splices, pieces, write_in_slices, writer
from klamm.codec.primitives import Buffer, Malformed
from klamm.wire.apis import API_VERSIONS, Api
from klamm.wire.headers import NO_TAGS, request_header_bytes

_size = Struct(">i")
_pack_old_head = Struct(">ii").pack
_pack_flexible_head = Struct(">iix").pack

DEFAULT_LIMIT_BYTES = 104_857_600  # socket.request.max.bytes
# No request is shorter than its header: key, version, correlation id and the length of the client id. No response is
# shorter than its correlation id.
LEAST_REQUEST_BYTES = 10
LEAST_RESPONSE_BYTES = 4


def encoded_response(api: Api, version: int, correlation_id: int, response: Any) -> list[Any]:
    """The pieces of a response's frame, in the order in which they go out."""
    return _frame(_response_head(api, version, correlation_id), response, version)


def encoded_response_in_slices(
    api: Api, version: int, correlation_id: int, response: Any
) -> Generator[None, Any, list[Any]]:
    """The same, with a `yield` after every thousand elements."""
    out = _response_head(api, version, correlation_id)
    splices: Splices = []
    yield from write_in_slices(out, response, version, splices)
    return _sized(out, splices)


def encoded_request(
    api: Api, version: int, correlation_id: int, client_id: str | None, request: Any, tags: bytes = NO_TAGS
) -> list[Any]:
    out = bytearray(4)
    out += request_header_bytes(api, version, correlation_id, client_id, tags)
    return _frame(out, request, version)


def _frame(out: bytearray, message: Any, version: int) -> list[Any]:
    splices: Splices = []
    writer(type(message), version)(out, message, splices)
    return _sized(out, splices)


def _response_head(api: Api, version: int, correlation_id: int) -> bytearray:
    """The size is filled in when it is known."""
    if version >= api.flexible_from and api.key != API_VERSIONS:
        return bytearray(_pack_flexible_head(0, correlation_id))
    return bytearray(_pack_old_head(0, correlation_id))


def _sized(out: bytearray, splices: Splices) -> list[Any]:
    size = len(out) - 4
    if not splices:
        _size.pack_into(out, 0, size)
        return [out]
    for _, value in splices:
        size += len(value)
    _size.pack_into(out, 0, size)
    return pieces(out, splices)


class FrameCutter:
    """Cuts what has arrived on one connection into frames, and says how much the next one needs.

    It owns no bytes. `pending_bytes` is the size of the frame that has begun but is not complete, with its four bytes
    of size; 0 while that is unknown. It lets a buffer grow with what arrived, never with what was announced.
    """

    __slots__ = ("least_bytes", "limit_bytes", "pending_bytes")

    def __init__(self, limit_bytes: int = DEFAULT_LIMIT_BYTES, least_bytes: int = LEAST_REQUEST_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self.least_bytes = least_bytes
        self.pending_bytes = 0

    def cut(self, buffer: Buffer, filled: int, position: int = 0, most: int = 2**31) -> tuple[list[memoryview], int]:
        """The whole frames in `buffer[position:filled]`, at most so many, without their sizes, and where the rest is.

        An impossible size is Malformed; the frames before it are given first, and it is the next call that says so.
        """
        view = memoryview(buffer)
        frames: list[memoryview] = []
        self.pending_bytes = 0
        while filled - position >= 4 and len(frames) < most:
            (size,) = _size.unpack_from(buffer, position)
            if not self.least_bytes <= size <= self.limit_bytes:
                if frames:
                    break
                raise Malformed(f"frame of {size} bytes, allowed are {self.least_bytes} to {self.limit_bytes}")
            end = position + 4 + size
            if end > filled:
                self.pending_bytes = size + 4
                break
            frames.append(view[position + 4 : end])
            position = end
        return frames, position
