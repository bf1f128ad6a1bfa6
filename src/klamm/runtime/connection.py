"""One connection as the server keeps it: its socket, what has arrived and is not whole, what waits to be sent."""

import fcntl
import socket
import termios

from klamm.runtime.inbox import Inbox
from klamm.runtime.loop import READABLE, monotonic_ms
from klamm.runtime.outbox import Outbox
from klamm.wire.frames import LEAST_REQUEST_BYTES, LEAST_RESPONSE_BYTES

OUTBOX_BYTES = 1 << 20
"""So much may wait to be sent to a connection that is still read: a slow reader holds up itself, not us."""


class Connection:
    __slots__ = (
        "active_ms",
        "closing",
        "counted_bytes",
        "id",
        "inbox",
        "interest",
        "ip",
        "is_open",
        "outbox",
        "paused",
        "peer",
        "socket",
    )

    def __init__(self, identity: int, sock: socket.socket, ip: str, port: int, max_frame_bytes: int) -> None:
        """One that we dialled ourselves has a negative number; what comes there are answers."""
        self.id = identity
        self.socket = sock
        self.ip = ip
        self.peer = f"{ip}:{port}"
        self.inbox = Inbox(max_frame_bytes, LEAST_RESPONSE_BYTES if identity < 0 else LEAST_REQUEST_BYTES)
        self.counted_bytes = 0
        """Of its unfinished frame, in the sum of all."""
        self.outbox = Outbox()
        self.is_open = True
        self.paused = False
        self.closing = False
        self.interest = READABLE
        self.active_ms = monotonic_ms()

    @property
    def frame_bytes(self) -> int:
        """What its unfinished frame will be, by its own word."""
        return self.inbox.frame_bytes

    @property
    def may_be_read(self) -> bool:
        """As far as it is its own doing."""
        return not (self.paused or self.closing or self.inbox.untaken or self.outbox.size > OUTBOX_BYTES)

    @property
    def has_said_more(self) -> bool:
        """Something has arrived that we have not read, although we might."""
        if not self.may_be_read:
            return False
        found = fcntl.ioctl(self.socket, termios.FIONREAD, bytes(4))
        return found != bytes(4)
