"""Whether all that the last life of this broker wrote is still there, though it did not end cleanly.

A process that is killed takes nothing with it that it wrote: the system has it. Only a machine that goes down may lose
what was not flushed. So a broker notes, when it is registered, its epoch and the machine's present start. If it finds
the note after a crash, and the machine has been up all the while, it may say to the controller that it comes back with
everything (KIP-966), and keeps its right to lead; else a cluster whose processes were all killed would wait for the
very last of them. Its logs are recovered all the same, and if they turn out damaged it takes back what it said.

A disk that broke a promise ends the trust: the system may have dropped what it could not write.
"""

import contextlib
import json

from klamm.log.files import DiskFailed, Files

FILE_NAME = "broker-life"
UNKNOWN = -1


class Life:
    def __init__(self, files: Files, boot_id: str | None) -> None:
        self._files = files
        self._boot_id = boot_id
        """Another one whenever the machine was started; None if nobody can tell."""

    def epoch_before(self) -> int:
        """The epoch of the last life, if nothing of what it wrote can be missing; else -1."""
        if self._boot_id is None or not self._files.exists(FILE_NAME):
            return UNKNOWN
        try:
            found = json.loads(self._files.read_whole(FILE_NAME))
            return int(found["brokerEpoch"]) if found["bootId"] == self._boot_id else UNKNOWN
        except (DiskFailed, ValueError, KeyError, TypeError):
            return UNKNOWN

    def begin(self, epoch: int) -> None:
        if self._boot_id is not None:
            text = json.dumps({"brokerEpoch": epoch, "bootId": self._boot_id})
            with contextlib.suppress(DiskFailed):
                self._files.write_whole(FILE_NAME, text.encode(), durable=False)

    def distrust(self) -> None:
        """Something may be missing by now. (A disk so broken that the note cannot even be removed is trusted once more
        if this process is killed before the machine is started again: two faults at once.)"""
        self._boot_id = None
        with contextlib.suppress(DiskFailed):
            self._files.remove(FILE_NAME)
