"""Whether all that the last life of this broker wrote is still there, though it did not end cleanly.

A process that is killed takes nothing with it that it wrote: the system has it. Only a machine that goes down may lose
what was not flushed. So a broker notes, when it is registered, its epoch and the machine's present start. If it finds
the note after a crash, and the machine has been up all the while, it may say to the controller that it comes back with
everything (KIP-966), and keeps its right to lead; else a cluster whose processes were all killed would wait for the
very last of them. Its logs are recovered all the same.

A life may end between its registration and the answer. It has done nothing then, and the next one goes on in its place,
under the same incarnation: else the controller would know a life of which no note tells, and trust nobody.

A disk that broke a promise ends the trust: the system may have dropped what it could not write. Damage that is found
when the logs are opened is something else. By then the controller may have been told that everything is there; it is
told otherwise before it counts on this broker, and from then on what is written can be trusted again. A life that ends
before the controller has heard of it must not look like one that ended cleanly: nothing is missing in a log that was
made whole, for all that the next life can see. (A process that is killed while it writes may leave half a batch behind,
and is doubted for it without need.)
"""

import contextlib
import json

from klamm.ids import Uuid
from klamm.log import checkpoint
from klamm.log.files import DiskFailed, Files

FILE_NAME = "broker-life"
UNKNOWN = -1


class Life:
    def __init__(self, files: Files, boot_id: str | None) -> None:
        self._files = files
        self._boot_id = boot_id
        """Another one whenever the machine was started; None if nobody can tell."""
        self.is_doubted = False
        """Whether something that an earlier life wrote was found missing, and the controller has not been told."""
        self._opened_on: str | None = None
        """The start of the machine on which the logs were opened last: what was lost with the power is cut by then."""
        self._last: tuple[int, Uuid] = (UNKNOWN, b"")
        self.was_machine_restarted, self.was_restarted_since_opened = self._machine_of_last_life()
        """Since the last life, and since the logs were opened last; None if nobody can tell."""

    def epoch_before(self) -> int:
        """The epoch of the last life, if nothing of what it wrote can be missing; else -1."""
        return self._noted()[0]

    def incarnation_before(self) -> Uuid | None:
        """Of a life that never heard whether it was registered, if that was the last one."""
        return self._noted()[1]

    def _machine_of_last_life(self) -> tuple[bool | None, bool | None]:
        try:
            found = json.loads(checkpoint.read_small(self._files, FILE_NAME)) if self._files.exists(FILE_NAME) else {}
            self._opened_on = found.get("opened")
            noted = found["bootId"], self._opened_on
        except (DiskFailed, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None, None
        if self._boot_id is None:
            return None, None
        return noted[0] != self._boot_id, None if noted[1] is None else noted[1] != self._boot_id

    def opened(self) -> None:
        """The logs are, and what is in them is what this machine has."""
        self._opened_on = self._boot_id
        self._note(*self._last)

    def _noted(self) -> tuple[int, Uuid | None]:
        if self._boot_id is None or not self._files.exists(FILE_NAME):
            return UNKNOWN, None
        try:
            found = json.loads(checkpoint.read_small(self._files, FILE_NAME))
            if found["bootId"] != self._boot_id:
                return UNKNOWN, None
            return int(found["brokerEpoch"]), bytes.fromhex(found["incarnation"]) or None
        except (DiskFailed, ValueError, KeyError, TypeError, RecursionError):
            return UNKNOWN, None

    def ask(self, epoch_before: int, incarnation: Uuid) -> None:
        """It is about to be registered."""
        self._note(epoch_before, incarnation)

    def begin(self, epoch: int) -> None:
        """It is. From now on it does something: a note that it only asked must not stay."""
        self.is_doubted = False
        if not self._note(epoch, b""):
            self._forget()

    def _note(self, epoch: int, incarnation: Uuid) -> bool:
        if self._boot_id is None:
            return False
        self._last = epoch, incarnation
        note = {"brokerEpoch": epoch, "bootId": self._boot_id, "incarnation": incarnation.hex()}
        text = json.dumps(note | ({"opened": self._opened_on} if self._opened_on is not None else {}))
        try:
            self._files.write_whole(FILE_NAME, text.encode(), durable=False)
        except DiskFailed:
            return False
        return True

    def _forget(self) -> None:
        """What the last life's epoch was, not on which start of the machine it wrote."""
        if self._note(UNKNOWN, b""):
            return
        with contextlib.suppress(DiskFailed):
            self._files.remove(FILE_NAME)

    def doubt(self) -> None:
        """Something is missing, and is about to be covered up. Until `begin` is called nothing is claimed."""
        self.is_doubted = True
        self._forget()

    def distrust(self) -> None:
        """Something may be missing by now. (A disk so broken that the note cannot even be removed is trusted once more
        if this process is killed before the machine is started again: two faults at once.)"""
        if self._boot_id is not None:
            self._forget()
            self._boot_id = None
