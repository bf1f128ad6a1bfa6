"""Records that a query had still to read and cannot read any more: which ones, why, and what to do.

`failOnDataLoss` is true unless said otherwise: the query ends with this text. With false it is a warning, and the query
goes on behind the hole.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from klamm.pipeline.source.problems import DataLost

log = logging.getLogger("klamm.pipeline")

TOO_MANY_TO_NAME = 20


@dataclass(frozen=True, slots=True, order=True)
class Loss:
    """Offsets from `first` to `last`; `last` is None where nobody knows how many there were."""

    topic: str
    partition: int
    first: int
    last: int | None
    why: str

    def __str__(self) -> str:
        where = f"{self.topic}-{self.partition}"
        if self.last is None:
            return f"{where} from offset {self.first} on ({self.why})"
        if self.first == self.last:
            return f"{where} offset {self.first} ({self.why})"
        return f"{where} offsets {self.first} to {self.last} ({self.why})"


RETENTION = "retention removed them before they were read"
DELETED = "the topic or partition was deleted"
CREATED_AGAIN = "the topic was deleted and created again; what is there now is read from its beginning"
CUT = "the log is shorter than it was: the cluster lost them, perhaps in an unclean election"
LATE = "the partition is new to this query and its beginning was removed already"


def report(losses: Sequence[Loss], fails: bool) -> str:
    """What was said; nothing if nothing is lost."""
    if not losses:
        return ""
    if fails:
        raise DataLost(
            f"Records were lost: {listed(losses)}. To go on without them restart the query with the option "
            "failOnDataLoss=false; to read all that there is, start with a new checkpoint location and "
            "startingOffsets=earliest (klamm pipeline run: with --reset)."
        )
    said = f"Records were lost: {listed(losses)}. The query goes on behind them, since failOnDataLoss is false."
    log.warning(said)
    return said


def listed(losses: Sequence[Loss]) -> str:
    named = [str(loss) for loss in sorted(losses, key=lambda loss: (loss.topic, loss.partition, loss.first))]
    left = len(named) - TOO_MANY_TO_NAME
    return "; ".join(named[:TOO_MANY_TO_NAME]) + (f"; and {left} more" if left > 0 else "")
