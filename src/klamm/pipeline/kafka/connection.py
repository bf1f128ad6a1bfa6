"""One connection to one broker: requests go out, answers come back in the same order, and somebody waits for them.

The versions are agreed on with ApiVersions, so that the other side may be Klamm, Apache Kafka or anybody else: for each
API the newest version that both know. A request may be sent before the answer to the one before is taken; that is how
the next records travel while the last ones are decoded. Answers are received into one buffer, which stays unless an
answer is unusually large, and are decoded where they lie: records in them are to be used before the next answer is
received.
"""

import math
import socket
import time
from collections import deque
from struct import Struct
from typing import Any, NamedTuple

from klamm.codec.compiler import decode
from klamm.codec.primitives import Malformed
from klamm.errors import ErrorCode
from klamm.pipeline.kafka.problems import ClusterProblem, NoAnswer
from klamm.wire.apis import API_BY_KEY, API_VERSIONS, Api, response_type
from klamm.wire.frames import encoded_request
from klamm.wire.headers import read_response_header
from klamm.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

ELEMENTS = 4_000_000
"""Array elements in one answer: the metadata of some hundred thousand partitions."""
MOST_BYTES = 1 << 30
"""An answer that claims to be larger comes from somebody who does not speak this protocol."""
FIRST_BUFFER_BYTES = 1 << 16
KEPT_BUFFER_BYTES = 16 << 20
"""A fetch of the usual size. What is larger is given back with its answer, since connections stay."""
LEAST_WAIT_SECONDS = 0.01
CLIENT_ID = "klamm-spark"

_size = Struct(">i")


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class _Sent(NamedTuple):
    api: Api
    version: int
    correlation_id: int


class Connection:
    """`connection.ask(METADATA, MetadataRequest(topics=None))`; or `send` now and `receive` later."""

    def __init__(
        self, address: Address, timeout_seconds: float, client_id: str = CLIENT_ID, no_later_than: float = math.inf
    ) -> None:
        self.address = address
        self.no_later_than = no_later_than
        """On the clock of time.monotonic: whoever asks now wants an answer by then, whatever the timeout is."""
        self._timeout_seconds = timeout_seconds
        self._client_id = client_id
        self._count = 0
        self._sent: deque[_Sent] = deque()
        self._versions: dict[int, tuple[int, int]] = {}
        self._buffer = memoryview(bytearray(FIRST_BUFFER_BYTES))
        try:
            self._socket = socket.create_connection(address, self._deadline() - time.monotonic())
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            raise NoAnswer(f"{address}: {error.strerror or error}") from error
        try:
            self._agree_on_versions()
        except ClusterProblem:
            self.close()
            raise

    def close(self) -> None:
        self._socket.close()

    @property
    def has_unanswered(self) -> bool:
        return bool(self._sent)

    def version(self, api_key: int, most: int | None = None) -> int:
        """The newest version of an API that both sides know, and that is not above `most`."""
        api = API_BY_KEY[api_key]
        lowest, highest = self._versions.get(api_key, (0, -1))
        version = min(highest, api.max_version, api.max_version if most is None else most)
        if version < max(lowest, api.min_version):
            raise ClusterProblem(
                f"The broker at {self.address} serves {api.name} in versions {lowest} to {highest}, this reader speaks "
                f"{api.min_version} to {api.max_version}. A newer broker is needed (Apache Kafka from 2.1 on works)."
            )
        return version

    def ask(self, api_key: int, request: object, version: int | None = None) -> Any:
        self.send(api_key, request, version)
        return self.receive()

    def send(self, api_key: int, request: object, version: int | None = None) -> None:
        api = API_BY_KEY[api_key]
        version = self.version(api_key) if version is None else version
        self._count += 1
        pieces = encoded_request(api, version, self._count, self._client_id, request)
        try:
            self._socket.settimeout(self._deadline() - time.monotonic())
            self._socket.sendall(b"".join(pieces))
        except OSError as error:
            raise NoAnswer(f"{self.address}: {api.name}: {error.strerror or error}") from error
        self._sent.append(_Sent(api, version, self._count))

    def receive(self) -> Any:
        """The answer to the oldest request that has none yet."""
        sent = self._sent.popleft()
        try:
            frame = self._frame()
            correlation_id, position = read_response_header(sent.api, sent.version, frame)
            if correlation_id != sent.correlation_id:
                raise Malformed(f"answer {correlation_id} to request {sent.correlation_id}")
            return decode(response_type(sent.api.key), sent.version, frame[position:], budget=ELEMENTS)
        except (OSError, Malformed) as error:
            raise NoAnswer(f"{self.address}: {sent.api.name}: {getattr(error, 'strerror', None) or error}") from error

    def _frame(self) -> memoryview:
        deadline = self._deadline()
        (size,) = _size.unpack(self._exactly(4, deadline))
        if not 4 <= size <= MOST_BYTES:
            raise Malformed(f"an answer of {size} bytes")
        return self._exactly(size, deadline)

    def _deadline(self) -> float:
        now = time.monotonic()
        return max(min(now + self._timeout_seconds, self.no_later_than), now + LEAST_WAIT_SECONDS)

    def _exactly(self, count: int, deadline: float) -> memoryview:
        buffer = self._buffer if count <= len(self._buffer) else memoryview(bytearray(count))
        if count <= KEPT_BUFFER_BYTES:
            self._buffer = buffer
        view = buffer[:count]
        received = 0
        while received < count:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("no answer in time")
            self._socket.settimeout(left)
            more = self._socket.recv_into(view[received:])
            if not more:
                raise ConnectionResetError("the connection was closed")
            received += more
        return view

    def _agree_on_versions(self) -> None:
        """A broker that is older than our ApiVersions answers in version 0 and says so; then version 0 it is."""
        for version in (3, 0):
            request = ApiVersionsRequest(client_software_name=CLIENT_ID, client_software_version="1")
            self.send(API_VERSIONS, request, version)
            response = self._versions_said(version)
            if response.error_code == ErrorCode.NONE:
                self._versions = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
                return
        raise ClusterProblem(f"The broker at {self.address} does not tell which versions it speaks.")

    def _versions_said(self, version: int) -> ApiVersionsResponse:
        try:
            frame = self._frame()
            self._sent.popleft()
            code = int.from_bytes(frame[4:6], "big", signed=True)
            spoken = 0 if code == ErrorCode.UNSUPPORTED_VERSION else version
            return decode(ApiVersionsResponse, spoken, frame[4:], budget=ELEMENTS)
        except (OSError, Malformed) as error:
            raise NoAnswer(
                f"{self.address}: {getattr(error, 'strerror', None) or error}. Is it a broker's listener, and without "
                "TLS? With TLS or SASL set kafka.security.protocol."
            ) from error
