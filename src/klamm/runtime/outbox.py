"""What waits to be sent on one socket: buffers by `sendmsg`, regions of files by `sendfile`.

A small region is read and sent together with what surrounds it: one system call less, and one packet. A larger one goes
from the page cache to the socket without passing through Python.
"""

import os
import socket
from collections import deque
from collections.abc import Sequence

from klamm.runtime.files import RealRegion

SMALL_REGION = 64 << 10
TURN_BYTES = 2 << 20
"""The most that one reader is sent before the others have their turn, however fast it reads."""
MOST_BUFFERS = 512
"""In one `sendmsg`; the system's limit is 1024."""


class Outbox:
    __slots__ = ("_pieces", "size")

    def __init__(self) -> None:
        self._pieces: deque[memoryview | RealRegion] = deque()
        self.size = 0

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def add(self, pieces: Sequence[object]) -> None:
        for piece in pieces:
            if not isinstance(piece, RealRegion):
                piece = memoryview(piece)  # type: ignore[arg-type]
            self.size += len(piece)
            self._pieces.append(piece)

    def send(self, sock: socket.socket) -> None:
        """Send what the socket takes in one turn. OSError if it is broken, DiskFailed if a region cannot be read."""
        pieces = self._pieces
        enough = self.size - TURN_BYTES
        try:
            while pieces and self.size > enough:
                head = pieces[0]
                if isinstance(head, RealRegion) and head.length > SMALL_REGION:
                    self._send_region(sock, head)
                else:
                    self._send_buffers(sock)
        except BlockingIOError:
            return

    def clear(self) -> None:
        for piece in self._pieces:
            if isinstance(piece, RealRegion):
                piece.release()
        self._pieces.clear()
        self.size = 0

    def _send_buffers(self, sock: socket.socket) -> None:
        pieces = self._pieces
        buffers: list[memoryview] = []
        flags = gathered = 0
        for number, piece in enumerate(pieces):
            if len(buffers) == MOST_BUFFERS or gathered > SMALL_REGION:
                flags = socket.MSG_MORE
                break
            if isinstance(piece, RealRegion):
                if piece.length > SMALL_REGION:
                    flags = socket.MSG_MORE
                    break
                # Read now and not earlier: what a slow reader waits for stays in the page cache.
                piece = pieces[number] = _read(piece)
            buffers.append(piece)
            gathered += len(piece)
        sent = sock.sendmsg(buffers, (), flags)
        self.size -= sent
        while sent:
            head = pieces[0]
            assert not isinstance(head, RealRegion)
            if sent < len(head):
                pieces[0] = head[sent:]
                return
            sent -= len(head)
            pieces.popleft()

    def _send_region(self, sock: socket.socket, region: RealRegion) -> None:
        sent = os.sendfile(sock.fileno(), region.descriptor, region.position, min(region.length, TURN_BYTES))
        if sent == 0:
            # The file was truncated under a queued response. Its size has already been told, so nothing but the end
            # of the connection can be true now; the client asks again.
            raise ConnectionAbortedError("a file was truncated while it was being sent")
        self.size -= sent
        region.position += sent
        region.length -= sent
        if region.length == 0:
            region.release()
            self._pieces.popleft()


def _read(region: RealRegion) -> memoryview:
    content = bytes(region)
    if len(content) != region.length:
        raise ConnectionAbortedError("a file was truncated while it was being sent")
    region.release()
    return memoryview(content)
