"""What has arrived on one socket and is not yet a whole frame.

Bytes are shown in the buffer they were read into; only the unfinished end is copied aside. It grows with the bytes that
really arrive, so a client that announces 100 MiB and sends nothing costs nothing.
"""

from collections.abc import Sequence

from klamm.wire.frames import FrameCutter


class Inbox:
    __slots__ = ("_cutter", "unfinished")

    def __init__(self, limit_bytes: int) -> None:
        self._cutter = FrameCutter(limit_bytes)
        self.unfinished = bytearray()

    def frames(self, arrived: memoryview) -> list[memoryview]:
        """The frames that are whole now; valid until the buffer behind `arrived` is used again.

        Malformed if one is announced with an impossible size. Those before it are given first, and `check` says it.
        """
        position = 0
        frames: list[memoryview] = []
        if self.unfinished:
            position = self._finish(arrived)
            frames, cut = self._cutter.cut(self.unfinished, len(self.unfinished))
            if not cut:
                return []
            self.unfinished = bytearray()
        if position < len(arrived):
            more, position = self._cutter.cut(arrived, len(arrived), position)
            frames += more
            if position < len(arrived):
                self.unfinished = bytearray(arrived[position:])
        return frames

    def check(self) -> None:
        """Malformed if what comes next cannot be a frame."""
        self._cutter.cut(self.unfinished, len(self.unfinished))

    def put_back(self, frames: Sequence[memoryview]) -> None:
        """Frames that nobody took come again, before what is unfinished."""
        again = bytearray()
        for frame in frames:
            again += len(frame).to_bytes(4, "big")
            again += frame
        self.unfinished = again + self.unfinished

    def frames_put_back(self) -> list[memoryview]:
        again, self.unfinished = self.unfinished, bytearray()
        return self.frames(memoryview(again))

    def _finish(self, arrived: memoryview) -> int:
        """Add to the unfinished frame what belongs to it; how many bytes that were."""
        unfinished = self.unfinished
        taken = 0
        if len(unfinished) < 4:
            taken = min(4 - len(unfinished), len(arrived))
            unfinished += arrived[:taken]
            if len(unfinished) < 4:
                return taken
        self._cutter.cut(unfinished, len(unfinished))
        missing = max(0, self._cutter.pending_bytes - len(unfinished))
        more = min(missing, len(arrived) - taken)
        unfinished += arrived[taken : taken + more]
        return taken + more
