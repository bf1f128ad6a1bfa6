"""From a frame to its handler, and from the handler's answer to the bytes of the reply.

A request may also come from this very node, without a frame (`here`), or from a broker that passes on what a client
asked of it (an Envelope): the request within is handled as if its client had come to us.

What cannot be understood (an unknown API or version, a body that does not parse) closes the connection, as Kafka does.
The exception is ApiVersions, which is how clients find out what is understood: an unknown version of it is answered in
version 0 with UNSUPPORTED_VERSION and the list.
"""

from collections.abc import Callable, Generator
from functools import partial
from typing import Any, TypeAlias

from klamm.broker.answer import Again, Answer, Changed, Elsewhere, Finished, Later, Reply, Silence, Wait
from klamm.broker.broker import Broker
from klamm.broker.call import Call
from klamm.broker.slices import Work
from klamm.broker.speaker import Speaker, Unconfirmed
from klamm.broker.waiting import Waiter
from klamm.codec.compiler import decode_from, decode_in_slices
from klamm.codec.primitives import Malformed
from klamm.errors import ErrorCode
from klamm.facts import Tell
from klamm.handlers import TABLE, handler
from klamm.ids import Now
from klamm.node.facts import HandlerFailed, RequestNotUnderstood
from klamm.node.large_requests import LARGE_BYTES, Confirm, LargeRequest
from klamm.node.peers import Then
from klamm.node.served import Served, Times
from klamm.wire.apis import (
    ADD_RAFT_VOTER,
    API_BY_KEY,
    API_VERSIONS,
    BEGIN_QUORUM_EPOCH,
    BROKER_HEARTBEAT,
    CONTROLLER,
    END_QUORUM_EPOCH,
    ENVELOPE,
    FETCH_SNAPSHOT,
    REMOVE_RAFT_VOTER,
    VOTE,
    request_type,
)
from klamm.wire.claims import CLAIM, QUESTION, Claim, TokenAnswer
from klamm.wire.connection import Place, ServerConnection
from klamm.wire.forwarded import ForwardedResponse
from klamm.wire.frames import encoded_response
from klamm.wire.headers import RequestHeader, UnsupportedVersion, read_request_header, why_unsupported
from klamm.wire.messages.envelope import EnvelopeRequest

ELEMENTS = 131_072
"""At most so many array elements in one request: each costs us far more memory than it costs the sender bytes."""

OF_THE_QUORUM = frozenset(
    {VOTE, BEGIN_QUORUM_EPOCH, END_QUORUM_EPOCH, FETCH_SNAPSHOT, ADD_RAFT_VOTER, REMOVE_RAFT_VOTER, BROKER_HEARTBEAT}
)
"""After these the quorum, or the controller on it, may have something to say or another deadline. (A Fetch of the
metadata log says so itself.)"""

FORWARDABLE = frozenset(
    {
        "create_topics",
        "delete_topics",
        "create_partitions",
        "alter_configs",
        "incremental_alter_configs",
        "elect_leaders",
        "alter_partition_reassignments",
        "list_partition_reassignments",
        "describe_quorum",
        "update_features",
        "unregister_broker",
        "add_raft_voter",
        "remove_raft_voter",
    }
)
"""The handlers that may say `Elsewhere`. Nothing else is taken out of an Envelope."""

FORWARDING_MS = 30_000.0
"""How long a request is passed on that does not say how long its client waits."""

LEAST_FORWARDING_MS = 1_000.0
CONFIRMING_MS = 10_000.0
"""Longer than it takes to find out who speaks, or that nobody says so."""

THIS_NODE = 0
"""In the place of a connection, for what this node asks of itself."""

Forward: TypeAlias = Callable[[memoryview, ServerConnection, Place, float, Now], None]


class Dispatch:
    def __init__(
        self,
        broker: Broker,
        touch: Callable[[ServerConnection], None],
        forward: Forward,
        confirm: Callable[[ServerConnection, Unconfirmed, Now], None],
        answer_question: Callable[[Claim], TokenAnswer],
        tell: Tell,
    ) -> None:
        self._broker = broker
        self._touch = touch
        self._forward = forward
        self._confirm = confirm
        self._answer_question = answer_question
        self._this_node = Speaker(broker.node_id, b"", is_this_node=True)
        self._tell = tell
        self.counts: dict[int, Served] = {}
        """Of the APIs that somebody asked for over a connection."""
        # A node without others has nobody from whom it would hear what only nodes say.
        is_alone = not broker.config.voters
        self._served = frozenset(key for key in TABLE if not (is_alone and API_BY_KEY[key].listener == CONTROLLER))

    def request(self, connection: ServerConnection, frame: memoryview, now: Now) -> bool:
        """Handle one request; False if the connection has to be closed. If it awaits its speaker, it was not taken."""
        try:
            header, position = read_request_header(frame)
            key, version = header.api_key, header.api_version
            if key not in self._served or not API_BY_KEY[key].serves(version):
                raise UnsupportedVersion(header)
            if len(frame) <= LARGE_BYTES:
                request, _ = decode_from(request_type(key), version, frame, position, budget=ELEMENTS)
            else:
                reading = decode_in_slices(request_type(key), version, frame, position, budget=ELEMENTS)
                request = _value_within_a_slice(reading)
        except UnsupportedVersion as error:
            return self._unsupported(connection, error, now)
        except Malformed as error:
            self._tell(RequestNotUnderstood(connection.peer, str(error)))
            return False
        if header.claim is not None:
            if header.claim.tag == QUESTION and key == API_VERSIONS:
                found = self._answer_question(header.claim)
                connection.reply(encoded_response(API_BY_KEY[key], version, header.correlation_id, found))
                self._touch(connection)
                return True
            if header.claim.tag == CLAIM and connection.speaker is None:
                connection.speaker = Speaker(header.claim.broker_id, header.claim.token)
        served = self.counts.get(key)
        if served is None:
            if key == ENVELOPE:
                return self._envelope(connection, request, header.correlation_id, now)
            served = self.counts[key] = Served(handler(key))
        if key in OF_THE_QUORUM:
            self._broker.quorum_touched = True
        if request is None:
            served.waited += 1
            self._read_in_slices(connection, served, header, bytearray(frame), position, now)
            return True
        speaker = connection.speaker
        call = Call(self._broker, version, header.client_id, connection.id, connection.peer, now, speaker)
        try:
            answer = served.handle(request, call)
            if answer.__class__ is Reply:
                connection.reply(encoded_response(API_BY_KEY[key], version, header.correlation_id, answer.response))
                self._touch(connection)
                served.answered += 1
                return True
        except Unconfirmed as unconfirmed:
            self._confirm(connection, unconfirmed, now)
            return True
        except AssertionError:
            raise
        except Exception:
            self._failed(connection.peer, key, version)
            return False
        if answer.__class__ is Later:
            served.waited += 1
            if isinstance(answer.until, Finished):
                large = self._large_of(connection, served, header)
                self._run(connection, served, header, large, large.finish(answer, now), bytearray(), now)
            else:
                place = Place(key, version, header.correlation_id)
                self._wait(connection, answer, place, served.times, now.monotonic_ms)
            return True
        if answer.__class__ is Elsewhere:
            served.passed_on += 1
            patience_ms = max(getattr(request, "timeout_ms", FORWARDING_MS), LEAST_FORWARDING_MS)
            place = Place(key, version, header.correlation_id)
            self._forward(frame, connection, place, now.monotonic_ms + patience_ms, now)
            return True
        if answer.__class__ is Again:
            connection.is_busy = connection.gives_back = True
            self._broker.keeping.wait(partial(self._free, connection))
            return True
        assert isinstance(answer, Silence)
        served.unanswered += 1
        return not answer.close

    def here(self, api: int, version: int, request: object, deadline_ms: float, then: Then, now: Now) -> None:
        """This node asks itself. `then` hears None where another node would have to be asked."""
        if isinstance(request, EnvelopeRequest):
            self._open_envelope(request, THIS_NODE, "this node", then, now)
            return
        answer = self._handled(api, version, request, self._call_of_this_node(version, now))
        if isinstance(answer, Later):
            later = answer

            def deliver(now: Now, in_time: bool) -> None:
                then(later.then(now, in_time), now)

            self._broker.waiting.add(Waiter(later, THIS_NODE, deliver), min(later.deadline_ms, deadline_ms))
        else:
            then(answer.response if isinstance(answer, Reply) else None, now)

    def _call_of_this_node(self, version: int, now: Now) -> Call:
        return Call(self._broker, version, "", THIS_NODE, "this node", now, self._this_node)

    def _handled(self, api: int, version: int, request: object, call: Call) -> Answer:
        """A handler's answer; silence if it failed, which is our mistake."""
        if api in OF_THE_QUORUM:
            self._broker.quorum_touched = True
        try:
            return handler(api)(request, call)
        except AssertionError:
            raise
        except Exception:
            self._failed(call.peer, api, version)
            return Silence()

    def _envelope(self, connection: ServerConnection, envelope: EnvelopeRequest, correlation_id: int, now: Now) -> bool:
        """A request that another broker got and passes on."""
        outer = Place(ENVELOPE, 0, correlation_id)
        connection.wait(outer)

        def send(response: ForwardedResponse, now: Now) -> None:
            connection.ready(outer, encoded_response(API_BY_KEY[ENVELOPE], 0, correlation_id, response))
            self._touch(connection)

        self._open_envelope(envelope, connection.id, connection.peer, send, now)
        return True

    def _open_envelope(
        self,
        envelope: EnvelopeRequest,
        connection: int,
        peer: str,
        send: Callable[[ForwardedResponse, Now], None],
        now: Now,
    ) -> None:
        """Handle the request within, if we are who it is for. The answer within is what its client would have got."""
        if self._broker.controller is None:
            send(ForwardedResponse(error_code=ErrorCode.NOT_CONTROLLER), now)
            return
        try:
            frame = memoryview(envelope.request_data)
            header, position = read_request_header(frame)
            api, version = API_BY_KEY[header.api_key], header.api_version
            if TABLE.get(header.api_key) not in FORWARDABLE or not api.serves(version):
                raise UnsupportedVersion(header)
            request = None
            if len(frame) <= LARGE_BYTES:
                request, _ = decode_from(request_type(api.key), version, frame, position, budget=ELEMENTS)
        except (UnsupportedVersion, Malformed, KeyError):
            send(ForwardedResponse(error_code=ErrorCode.INVALID_REQUEST), now)
            return
        if request is None:
            self._open_large_envelope(header, frame, position, connection, peer, send)
            return

        def wrapped(give: Callable[[], object]) -> ForwardedResponse:
            try:
                pieces = encoded_response(api, version, header.correlation_id, give())
            except AssertionError:
                raise
            except Exception:
                self._failed(peer, api.key, version)
                return ForwardedResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
            data = b"".join(map(bytes, pieces))[4:]
            return ForwardedResponse(response_data=data, metadata_offset=self._broker.image.offset)

        call = Call(self._broker, version, header.client_id, connection, peer, now)
        answer = self._handled(api.key, version, request, call)
        if isinstance(answer, Reply):
            reply = answer
            send(wrapped(lambda: reply.response), now)
        elif isinstance(answer, Later):
            later = answer

            def deliver(now: Now, in_time: bool) -> None:
                if not in_time and self._broker.controller is None:
                    # We are no longer who it was for: the broker that passed it on tries the next one.
                    send(ForwardedResponse(error_code=ErrorCode.NOT_CONTROLLER), now)
                else:
                    send(wrapped(lambda: later.then(now, in_time)), now)

            self._broker.waiting.add(Waiter(later, connection, deliver), later.deadline_ms)
        else:
            send(ForwardedResponse(error_code=ErrorCode.NOT_CONTROLLER), now)

    def _open_large_envelope(
        self,
        header: RequestHeader,
        frame: memoryview,
        position: int,
        connection: int,
        peer: str,
        send: Callable[[ForwardedResponse, Now], None],
    ) -> None:
        served = Served(handler(header.api_key))
        large = self._large(served, header, connection, peer, None, None)
        reading = decode_in_slices(
            request_type(header.api_key), header.api_version, bytearray(frame), position, budget=ELEMENTS
        )

        def done(error: Exception | None, now: Now) -> None:
            if isinstance(error, Malformed):
                send(ForwardedResponse(error_code=ErrorCode.INVALID_REQUEST), now)
            elif error is not None:
                self._tell(HandlerFailed(peer, _request_name(header.api_key, header.api_version), _traceback(error)))
                send(ForwardedResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR), now)
            elif large.pieces is None:
                send(ForwardedResponse(error_code=ErrorCode.NOT_CONTROLLER), now)
            else:
                data = b"".join(map(bytes, large.pieces))[4:]
                send(ForwardedResponse(response_data=data, metadata_offset=self._broker.image.offset), now)

        self._broker.slices.add(large.read(reading), done, connection=connection)

    def _wait(self, connection: ServerConnection, later: Later, place: Place, times: Times, asked_ms: float) -> None:
        def deliver(now: Now, in_time: bool) -> None:
            try:
                response = later.then(now, in_time)
                pieces = encoded_response(API_BY_KEY[place.api], place.version, place.correlation_id, response)
            except AssertionError:
                raise
            except Exception:
                self._failed(connection.peer, place.api, place.version)
                connection.closing = True
            else:
                connection.ready(place, pieces)
                times.note(int((now.monotonic_ms - asked_ms) * 1000.0))
            self._touch(connection)

        connection.wait(place)
        self._broker.waiting.add(Waiter(later, connection.id, deliver), later.deadline_ms)

    # Large requests.

    def _large_of(self, connection: ServerConnection, served: Served, header: RequestHeader) -> LargeRequest:
        def confirm(unconfirmed: Unconfirmed, now: Now) -> Wait:
            self._confirm(connection, unconfirmed, now)
            until = Changed([connection], lambda: not connection.awaits_speaker)
            return Wait(until, now.monotonic_ms + CONFIRMING_MS)

        return self._large(served, header, connection.id, connection.peer, connection.speaker, confirm)

    def _large(
        self,
        served: Served,
        header: RequestHeader,
        connection: int,
        peer: str,
        speaker: Speaker | None,
        confirm: Confirm | None,
    ) -> LargeRequest:
        def call(now: Now) -> Call:
            return Call(self._broker, header.api_version, header.client_id, connection, peer, now, speaker)

        return LargeRequest(
            API_BY_KEY[header.api_key],
            header.api_version,
            header.correlation_id,
            served.handle,
            call,
            connection,
            self._broker.waiting,
            confirm,
        )

    def _read_in_slices(
        self,
        connection: ServerConnection,
        served: Served,
        header: RequestHeader,
        frame: bytearray,
        position: int,
        now: Now,
    ) -> None:
        large = self._large_of(connection, served, header)
        reading = decode_in_slices(request_type(header.api_key), header.api_version, frame, position, budget=ELEMENTS)
        self._run(connection, served, header, large, large.read(reading), frame, now)

    def _run(
        self,
        connection: ServerConnection,
        served: Served,
        header: RequestHeader,
        large: LargeRequest,
        work: Work,
        frame: bytearray,
        now: Now,
    ) -> None:
        """Do this work for the connection, which is not read meanwhile, and answer."""
        place = Place(header.api_key, header.api_version, header.correlation_id)
        asked_ms = now.monotonic_ms

        def done(error: Exception | None, now: Now) -> None:
            connection.is_busy = False
            if isinstance(error, Malformed):
                self._tell(RequestNotUnderstood(connection.peer, str(error)))
                connection.closing = True
            elif error is not None:
                self._tell(
                    HandlerFailed(connection.peer, _request_name(header.api_key, header.api_version), _traceback(error))
                )
                connection.closing = True
            elif large.is_elsewhere:
                connection.withdraw(place)
                deadline_ms = now.monotonic_ms + FORWARDING_MS
                self._forward(memoryview(frame), connection, place, deadline_ms, now)
            elif large.pieces is not None:
                connection.ready(place, large.pieces)
                served.times.note(int((now.monotonic_ms - asked_ms) * 1000.0))
            else:
                connection.withdraw(place)
                connection.closing = large.closes
            self._touch(connection)

        connection.wait(place)
        connection.is_busy = True
        self._broker.slices.add(work, done, lambda: connection.is_gone, connection.id)

    def _free(self, connection: ServerConnection) -> None:
        connection.is_busy = False
        self._touch(connection)

    def _failed(self, peer: str, key: int, version: int) -> None:
        """A mistake of ours. The client's connection ends, everybody else goes on, and a person can read about it."""
        from traceback import format_exc

        self._tell(HandlerFailed(peer, _request_name(key, version), format_exc()))

    def _unsupported(self, connection: ServerConnection, error: UnsupportedVersion, now: Now) -> bool:
        header = error.header
        if header.api_key != API_VERSIONS:
            reason = why_unsupported(header, is_served_here=header.api_key in self._served)
            self._tell(RequestNotUnderstood(connection.peer, reason))
            return False
        from klamm.handlers.api_versions import unsupported

        connection.reply(encoded_response(API_BY_KEY[API_VERSIONS], 0, header.correlation_id, unsupported()))
        self._touch(connection)
        return True


def _value_within_a_slice(reading: Generator[None, Any, tuple[Any, int]]) -> Any:
    """What is read, if one slice is enough."""
    try:
        next(reading)
    except StopIteration as end:
        return end.value[0]
    return None


def _request_name(key: int, version: int) -> str:
    return f"{TABLE[key]} version {version}"


def _traceback(error: Exception) -> str:
    from traceback import format_exception

    return "".join(format_exception(error))
