"""What stands before every request and response: which API, which version, whose request.

A flexible request header ends with tagged fields, but its client id keeps the old two-byte length, so that a broker can
read the beginning of any request, even of a version it does not know. The response to ApiVersions always has the old
header, because the client that reads it does not know yet what the broker speaks.
"""

from dataclasses import dataclass
from struct import Struct
from struct import error as struct_error

from klamm.codec.primitives import Buffer, Malformed, skip_tags
from klamm.wire.apis import API_BY_KEY, API_VERSIONS, Api
from klamm.wire.claims import Claim, read_claim

_unpack_fixed = Struct(">hhih").unpack_from
_pack_fixed = Struct(">hhih").pack
_unpack_correlation = Struct(">i").unpack_from
_pack_correlation = Struct(">i").pack
_pack_correlation_and_tags = Struct(">ix").pack
NO_TAGS = b"\0"


@dataclass(slots=True)
class RequestHeader:
    """`client_id` is empty where the client sent null: Kafka makes no difference."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str
    claim: Claim | None = None
    """Only nodes send one, with the first request of a connection, or with a question."""


class UnsupportedVersion(Malformed):
    """An API or a version that nobody serves. Like Kafka we close the connection; there is no answer to give."""

    def __init__(self, header: RequestHeader) -> None:
        super().__init__(f"version {header.api_version} of API {header.api_key}")
        self.header = header


def why_unsupported(header: RequestHeader, *, is_served_here: bool) -> str:
    """For whoever reads the log. Which APIs there are is written down here; which of them a node serves, it knows."""
    api, version = API_BY_KEY.get(header.api_key), header.api_version
    if api is None:
        return f"there is no API with the key {header.api_key}"
    if not is_served_here:
        return f"{api.name} is not served here"
    why = ", as in Kafka 4: the client is older" if version < api.min_version else ""
    return f"{api.name} is served in versions {api.min_version} to {api.max_version}, not in {version}{why}"


def read_request_header(buffer: Buffer) -> tuple[RequestHeader, int]:
    """The header and where the body begins.

    ApiVersions of an unknown version comes back like any other and its body must not be read: the answer is version 0
    with UNSUPPORTED_VERSION, from which the client learns what to ask instead.
    """
    try:
        return _read_request_header(buffer)
    except (struct_error, IndexError) as error:
        raise Malformed("request header ends too early") from error
    except UnicodeDecodeError as error:
        raise Malformed("client id is no text") from error


def _read_request_header(buffer: Buffer) -> tuple[RequestHeader, int]:
    key, version, correlation_id, client_id_bytes = _unpack_fixed(buffer, 0)
    position = 10
    client_id = ""
    if client_id_bytes > 0:
        position += client_id_bytes
        if position > len(buffer):
            raise Malformed("client id longer than the request")
        client_id = str(buffer[10:position], "utf-8")
    elif client_id_bytes < -1:
        raise Malformed("client id of negative length")
    header = RequestHeader(key, version, correlation_id, client_id)
    api = API_BY_KEY.get(key)
    if api is None:
        raise UnsupportedVersion(header)
    if not api.serves(version):
        if key == API_VERSIONS:
            return header, position
        raise UnsupportedVersion(header)
    if version >= api.flexible_from:
        tags = buffer[position]
        position += 1
        if tags:
            header.claim, position = read_claim(buffer, position, tags)
    return header, position


def response_header_bytes(api: Api, version: int, correlation_id: int) -> bytes:
    if version >= api.flexible_from and api.key != API_VERSIONS:
        return _pack_correlation_and_tags(correlation_id)
    return _pack_correlation(correlation_id)


def request_header_bytes(
    api: Api, version: int, correlation_id: int, client_id: str | None, tags: bytes = NO_TAGS
) -> bytes:
    """A client's side of `read_request_header`. `tags` with their count, where the version has any."""
    text = b"" if client_id is None else client_id.encode()
    length = -1 if client_id is None else len(text)
    is_flexible = version >= api.flexible_from
    assert is_flexible or tags == NO_TAGS
    return _pack_fixed(api.key, version, correlation_id, length) + text + (tags if is_flexible else b"")


def read_response_header(api: Api, version: int, buffer: Buffer) -> tuple[int, int]:
    """A client's side of `response_header_bytes`: the correlation id and where the body begins."""
    try:
        (correlation_id,) = _unpack_correlation(buffer, 0)
        if version < api.flexible_from or api.key == API_VERSIONS:
            return correlation_id, 4
        tags = buffer[4]
        return correlation_id, skip_tags(buffer, 5, tags) if tags else 5
    except (struct_error, IndexError) as error:
        raise Malformed("response header ends too early") from error
