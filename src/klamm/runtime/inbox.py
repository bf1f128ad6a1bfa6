"""What has arrived on one socket and is not yet a whole frame.

Bytes are shown in the buffer they were read into; only the unfinished end is copied aside. It grows with the bytes that
really arrive, so a client that announces 100 MiB and sends nothing costs nothing.

Frames that were shown and not taken are copied aside too, once, and offered again a few at a time, however many there
are: nothing more is read from this socket until they are all gone.
"""

from collections.abc import Sequence

from klamm.wire.frames import LEAST_REQUEST_BYTES, FrameCutter

OFFERED_AGAIN = 16


class Inbox:
    __slots__ = ("_cutter", "_position", "unfinished", "untaken")

    def __init__(self, limit_bytes: int, least_bytes: int = LEAST_REQUEST_BYTES) -> None:
        self._cutter = FrameCutter(limit_bytes, least_bytes)
        self.unfinished = bytearray()
        self.untaken = bytearray()
        self._position = 0
        """How much of `untaken` has been taken by now."""

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
        """The last of the frames that were given were not taken."""
        if self.untaken:
            self._position -= sum(len(frame) + 4 for frame in frames)
            return
        for frame in frames:
            self.untaken += len(frame).to_bytes(4, "big")
            self.untaken += frame
        self.untaken += self.unfinished
        self.unfinished = bytearray()
        self._position = 0

    def frames_again(self) -> list[memoryview]:
        """Some of the frames that were not taken; none when only an unfinished one is left of them."""
        frames, self._position = self._cutter.cut(self.untaken, len(self.untaken), self._position, OFFERED_AGAIN)
        if not frames:
            self.unfinished = self.untaken[self._position :]
            self.untaken = bytearray()
        return frames

    @property
    def frame_bytes(self) -> int:
        """What the unfinished frame will be, by the sender's word; 0 while that is unknown."""
        return self._cutter.pending_bytes

    @property
    def size(self) -> int:
        return len(self.unfinished) + len(self.untaken)

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
