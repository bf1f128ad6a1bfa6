"""A thousand members in one thread: a socket each, and a conversation that waits for one answer at a time.

A conversation is a generator. It yields a request's frame and is given the answer's; when it returns, the member is
silent until it is led into its next conversation. A socket that has something to read leads on whoever waits there, so
the load goes as fast as the answers come and no faster. Encoding is Klamm's own codec for both systems; what it costs
is shown beside the broker's time.
"""

import select
import socket
import struct
import time
from collections.abc import Generator, Iterable
from types import TracebackType
from typing import Any

from klamm.codec.compiler import decode_from
from klamm.wire.apis import API_BY_KEY, response_type
from klamm.wire.frames import encoded_request
from klamm.wire.headers import read_response_header

CLIENT_ID = "bench"
CHUNK = 64 * 1024
BUDGET = 1_048_576
SILENCE_SECONDS = 60.0
NO_ERROR = 0

Conversation = Generator[bytes, memoryview, None]


class WrongAnswerError(Exception):
    """The broker answered, but not what it should have: nothing measured so far counts."""


def check(code: int, what: str) -> None:
    if code != NO_ERROR:
        raise WrongAnswerError(f"{what}: error code {code}")


def frame_of(api: int, version: int, request: Any) -> bytes:
    return b"".join(encoded_request(API_BY_KEY[api], version, 0, CLIENT_ID, request))


def answer_of(api: int, version: int, frame: memoryview) -> Any:
    _, position = read_response_header(API_BY_KEY[api], version, frame)
    answer, end = decode_from(response_type(api), version, frame, position, budget=BUDGET)
    if end != len(frame):
        raise WrongAnswerError(f"{len(frame) - end} bytes after the end of an answer to {API_BY_KEY[api].name}")
    return answer


def asked(api: int, version: int, request: Any) -> Generator[bytes, memoryview, Any]:
    """Within a conversation: one request, and its answer decoded."""
    answer = yield frame_of(api, version, request)
    return answer_of(api, version, answer)


class Line:
    """One member's connection."""

    __slots__ = ("received", "socket", "talk")

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), SILENCE_SECONDS)
        self.socket.settimeout(None)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = bytearray()
        self.talk: Conversation | None = None

    def read(self) -> memoryview | None:
        """The answer, if it is all here. There is never more than one under way."""
        chunk = self.socket.recv(CHUNK)
        if not chunk:
            raise ConnectionError("the broker closed the connection")
        self.received += chunk
        if len(self.received) < 4:
            return None
        (size,) = struct.unpack_from(">i", self.received)
        if len(self.received) < 4 + size:
            return None
        if len(self.received) > 4 + size:
            raise WrongAnswerError("more bytes than were asked for")
        answer = memoryview(bytes(self.received))[4:]
        self.received.clear()
        return answer


class Lines:
    """All connections to one broker. Leaving the context closes them."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._poll = select.epoll()
        self._lines: dict[int, Line] = {}

    def open(self) -> Line:
        line = Line(self._port)
        number = line.socket.fileno()
        self._lines[number] = line
        self._poll.register(number, select.EPOLLIN)
        return line

    def close(self, line: Line) -> None:
        number = line.socket.fileno()
        self._poll.unregister(number)
        del self._lines[number]
        line.socket.close()

    def hold(self, talks: Iterable[tuple[Line, Conversation]]) -> None:
        """Lead all these conversations to their ends. A broker that is silent for a minute has failed."""
        talking = 0
        for line, talk in talks:
            assert line.talk is None, "one conversation at a time"
            line.talk = talk
            talking += _goes_on(line, None)
        while talking:
            events = self._poll.poll(SILENCE_SECONDS)
            if not events:
                raise WrongAnswerError(f"no answer for {SILENCE_SECONDS:.0f} s to {talking} members")
            for number, _ in events:
                line = self._lines[number]
                answer = line.read()
                if answer is not None:
                    talking -= not _goes_on(line, answer)

    def ask(self, line: Line, api: int, version: int, request: Any) -> Any:
        """One question outside of any conversation."""
        answers = []

        def talk() -> Conversation:
            answers.append((yield from asked(api, version, request)))

        self.hold([(line, talk())])
        return answers[0]

    def __enter__(self) -> "Lines":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for line in list(self._lines.values()):
            line.socket.close()
        self._poll.close()


def _goes_on(line: Line, answer: memoryview | None) -> bool:
    """Tell the conversation its answer (none yet: it begins) and send what it says to that, if it is not over."""
    assert line.talk is not None, "an answer that nobody waits for"
    try:
        # A generator is begun by sending it None.
        line.socket.sendall(line.talk.send(answer))  # type: ignore[arg-type]
    except StopIteration:
        line.talk = None
        return False
    return True


class Deadline:
    """When a stretch of steady load ends, and how much was done in it."""

    __slots__ = ("count", "ends")

    def __init__(self, seconds: float) -> None:
        self.ends = time.perf_counter() + seconds
        self.count = 0

    def counts_and_goes_on(self) -> bool:
        self.count += 1
        return time.perf_counter() < self.ends
