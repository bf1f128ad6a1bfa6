"""From a frame to its handler, and from the handler's answer to the bytes of the reply.

What cannot be understood (an unknown API or version, a body that does not parse) closes the connection, as Kafka does.
The exception is ApiVersions, which is how clients find out what is understood: an unknown version of it is answered in
version 0 with UNSUPPORTED_VERSION and the list.
"""

from collections.abc import Callable

from klamm.broker.answer import Later, Reply, Silence
from klamm.broker.broker import Broker
from klamm.broker.call import Call
from klamm.broker.waiting import Waiter
from klamm.codec.compiler import decode_from
from klamm.codec.primitives import Malformed
from klamm.facts import Tell
from klamm.handlers import TABLE, Handler, handler
from klamm.ids import Now
from klamm.node.facts import HandlerFailed, RequestNotUnderstood
from klamm.wire.apis import API_BY_KEY, API_VERSIONS, request_type
from klamm.wire.connection import Place, ServerConnection
from klamm.wire.frames import encoded_response
from klamm.wire.headers import UnsupportedVersion, read_request_header

ELEMENTS = 262_144
"""At most so many array elements in one request: each costs us far more memory than it costs the sender bytes."""


class Dispatch:
    def __init__(self, broker: Broker, touch: Callable[[ServerConnection], None], tell: Tell) -> None:
        self._broker = broker
        self._touch = touch
        self._tell = tell
        self._handlers: dict[int, Handler] = {}

    def request(self, connection: ServerConnection, frame: memoryview, now: Now) -> bool:
        """Handle one request; False if the connection has to be closed."""
        try:
            header, position = read_request_header(frame)
            key, version = header.api_key, header.api_version
            if key not in TABLE or not API_BY_KEY[key].serves(version):
                raise UnsupportedVersion(header)
            request, _ = decode_from(request_type(key), version, frame, position, budget=ELEMENTS)
        except UnsupportedVersion as error:
            return self._unsupported(connection, error, now)
        except Malformed as error:
            self._tell(RequestNotUnderstood(connection.peer, str(error)))
            return False
        handle = self._handlers.get(key)
        if handle is None:
            handle = self._handlers[key] = handler(key)
        call = Call(self._broker, version, header.client_id, connection.id, connection.peer, now)
        try:
            answer = handle(request, call)
            if answer.__class__ is Reply:
                connection.reply(encoded_response(API_BY_KEY[key], version, header.correlation_id, answer.response))
                self._touch(connection)
                return True
        except AssertionError:
            raise
        except Exception:
            self._failed(connection, key, version)
            return False
        if answer.__class__ is Later:
            self._wait(connection, answer, Place(key, version, header.correlation_id))
            return True
        assert isinstance(answer, Silence)
        return not answer.close

    def _wait(self, connection: ServerConnection, later: Later, place: Place) -> None:
        def deliver(now: Now, in_time: bool) -> None:
            try:
                response = later.then(now, in_time)
                pieces = encoded_response(API_BY_KEY[place.api], place.version, place.correlation_id, response)
            except AssertionError:
                raise
            except Exception:
                self._failed(connection, place.api, place.version)
                connection.closing = True
            else:
                connection.ready(place, pieces)
            self._touch(connection)

        connection.wait(place)
        self._broker.waiting.add(Waiter(later, connection.id, deliver), later.deadline_ms)

    def _failed(self, connection: ServerConnection, key: int, version: int) -> None:
        """A mistake of ours. The client's connection ends, everybody else goes on, and a person can read about it."""
        from traceback import format_exc

        self._tell(HandlerFailed(connection.peer, f"{TABLE[key]} version {version}", format_exc()))

    def _unsupported(self, connection: ServerConnection, error: UnsupportedVersion, now: Now) -> bool:
        header = error.header
        if header.api_key != API_VERSIONS:
            self._tell(RequestNotUnderstood(connection.peer, str(error)))
            return False
        from klamm.handlers.api_versions import unsupported

        connection.reply(encoded_response(API_BY_KEY[API_VERSIONS], 0, header.correlation_id, unsupported()))
        self._touch(connection)
        return True
