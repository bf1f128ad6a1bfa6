"""The head of an HTTP request, read strictly: a line that says what is wanted, lines of headers, an empty line.

What cannot become one is refused as soon as that is certain: a Kafka client or a TLS handshake on the wrong port is
told so with its first byte, and nobody has to be waited for who says too much.
"""

from typing import NamedTuple

MOST_BYTES = 8192
END = b"\r\n\r\n"
METHOD_LETTERS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")
NAME_LETTERS = frozenset(b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz") | METHOD_LETTERS
VISIBLE = frozenset(range(0x21, 0x7F))


class Head(NamedTuple):
    method: str
    path: str
    query: str
    """What follows the path's question mark."""
    is_old: bool
    """HTTP/1.0."""


class BadHead(Exception):  # noqa: N818
    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def read_head(heard: bytes) -> Head | None:
    """The head of what was heard so far; None while it is not whole. BadHead if it never will be one."""
    if heard[:1] and heard[0] not in METHOD_LETTERS:
        raise BadHead(400, "this is not HTTP; Kafka is spoken on another port")
    whole, end, _ = heard.partition(END)
    if len(whole) > MOST_BYTES:
        raise BadHead(431, f"a request may have {MOST_BYTES} bytes")
    if not end:
        return None
    first, *headers = whole.split(b"\r\n")
    method, target, version = _request_line(first)
    if version not in (b"HTTP/1.0", b"HTTP/1.1"):
        raise BadHead(505, "HTTP/1.0 and HTTP/1.1 are spoken here")
    names = [_header_name(line) for line in headers]
    if version == b"HTTP/1.1" and names.count(b"host") != 1:
        raise BadHead(400, "a request needs one Host")
    path, _, query = target.decode("ascii").partition("?")
    return Head(method.decode("ascii"), path, query, version == b"HTTP/1.0")


def _request_line(line: bytes) -> tuple[bytes, bytes, bytes]:
    words = line.split(b" ")
    if len(words) != 3 or not METHOD_LETTERS.issuperset(words[0]) or not VISIBLE.issuperset(words[1]):
        raise BadHead(400, "the first line should be: GET /metrics HTTP/1.1")
    if not words[1].startswith(b"/") or not words[2].startswith(b"HTTP/"):
        raise BadHead(400, "the first line should be: GET /metrics HTTP/1.1")
    return words[0], words[1], words[2]


def _header_name(line: bytes) -> bytes:
    name, colon, value = line.partition(b":")
    if not colon or not name or not NAME_LETTERS.issuperset(name):
        raise BadHead(400, "a header should be: Name: value")
    if any((letter < 0x20 and letter != 0x09) or letter == 0x7F for letter in value):
        raise BadHead(400, "a header's value has control characters")
    return name.lower()
