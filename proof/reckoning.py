"""What became of the records: sent, acknowledged, lost, doubled, out of order.

Every record is a text of its own, so what was read back can be compared with what was sent, one by one. A record is
lost if somebody was told that it is safe and it is not there. A record is doubled if it is there more than once; each
copy too many counts. It is out of order if one that its producer sent later stands before it. A record that was never
acknowledged may be there or not: nobody was promised anything.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Reckoning:
    sent: int = 0
    acknowledged: int = 0
    stored: int = 0
    lost: int = 0
    doubled: int = 0
    out_of_order: int = 0
    strange: int = 0
    """Read, though nobody sent it."""

    def __add__(self, other: "Reckoning") -> "Reckoning":
        mine, others = asdict(self), asdict(other)
        return Reckoning(**{name: mine[name] + others[name] for name in mine})


def reckoned(sent: Sequence[bytes], acknowledged: Collection[bytes], stored: Sequence[bytes]) -> Reckoning:
    """One producer's records in one partition: `sent` in its order, `stored` as they lie in the log."""
    place = {value: number for number, value in enumerate(sent)}
    assert len(place) == len(sent), "every record is a text of its own"
    copies = Counter(stored)
    latest, late = -1, 0
    for value in dict.fromkeys(stored):
        number = place.get(value, -1)
        late += -1 < number < latest
        latest = max(latest, number)
    return Reckoning(
        sent=len(sent),
        acknowledged=len(set(acknowledged)),
        stored=len(stored),
        lost=len(set(acknowledged) - copies.keys()),
        doubled=sum(count - 1 for value, count in copies.items() if value in place),
        out_of_order=late,
        strange=sum(count for value, count in copies.items() if value not in place),
    )


def continues(before: Sequence[bytes], after: Sequence[bytes]) -> bool:
    """Whether a log that was read earlier is the beginning of what is read now: nothing a reader saw may change."""
    return list(after[: len(before)]) == list(before)
