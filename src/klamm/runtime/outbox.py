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
            if isinstance(piece, RealRegion):
                self.size += piece.length
                if piece.length > SMALL_REGION:
                    self._pieces.append(piece)
                else:
                    self._pieces.append(memoryview(bytes(piece)))
                    piece.release()
            else:
                view = memoryview(piece)  # type: ignore[arg-type]
                self.size += len(view)
                self._pieces.append(view)

    def send(self, sock: socket.socket) -> None:
        """Send as much as the socket takes. OSError if it is broken."""
        pieces = self._pieces
        try:
            while pieces:
                head = pieces[0]
                if isinstance(head, RealRegion):
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
        flags = 0
        for piece in pieces:
            if isinstance(piece, RealRegion) or len(buffers) == MOST_BUFFERS:
                flags = socket.MSG_MORE
                break
            buffers.append(piece)
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
        sent = os.sendfile(sock.fileno(), region.descriptor, region.position, region.length)
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
