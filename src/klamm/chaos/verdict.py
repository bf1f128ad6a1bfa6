"""What was promised to clients, held against what they saw.

Every record is a text of its own, so what was read can be compared with what was sent, one by one; offsets have no
holes, as nothing in these topics is deleted, compacted or aborted. The promises are Jepsen's for logs:

- lost: a record that was acknowledged is read by everybody who reads to the end;
- unseen: and by each of them;
- changed: at one offset there is one record, whoever reads it, whenever, and whatever its producer was told;
- doubled: what an idempotent producer sent once is there once;
- out of order: and after those that the producer sent before it;
- strange: nobody reads what was not sent;
- skipped, again: a reader reads offset after offset, without a gap and never back.

A record that was never acknowledged may be there or not: nobody was promised anything.

A broker knows a retry by producer id, epoch and sequence, and by nothing else. A client that takes a new epoch and
sends under it what is stored under the old one makes a copy that no broker can refuse. librdkafka does: when one
partition finds a sequence out of order, it takes a new epoch for all partitions, also where the fate of records is
open. To the reader it is doubled all the same. It is told apart by what stands in the log, as "doubled anew": the
question is then what made the client take a new epoch.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

EXAMPLES = 5


class Place(NamedTuple):
    """A partition."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Stamp(NamedTuple):
    """Who sent a batch, as the log says."""

    producer_id: int
    producer_epoch: int


class Copy(NamedTuple):
    """A record that is there once more."""

    place: Place
    value: bytes
    first: int
    offset: int

    def __str__(self) -> str:
        return f"{_short(self.value)} is at {self.place} offsets {self.first} and {self.offset}"


class Read(NamedTuple):
    place: Place
    offset: int
    value: bytes


@dataclass(slots=True)
class Sender:
    """What one producer did, and what it was told."""

    name: str
    is_idempotent: bool
    sent: dict[Place, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    """In the order of sending."""
    acknowledged: dict[Place, dict[bytes, int]] = field(default_factory=lambda: defaultdict(dict))
    """With the offset it was told, or less than zero where it was told none."""


@dataclass(slots=True)
class Reader:
    name: str
    reads: list[Read] = field(default_factory=list)
    """In the order of reading, from offset 0 of every partition."""
    reached_end: bool = False
    """Whether it ran until there was nothing left to read."""
    refusals: list[str] = field(default_factory=list)
    """Where it was told that what it had come to is not there."""


@dataclass(frozen=True, slots=True)
class Broken:
    promise: str
    count: int
    examples: tuple[str, ...]

    def __str__(self) -> str:
        more = "" if self.count == len(self.examples) else f" and {self.count - len(self.examples)} more"
        return f"{self.promise}: {'; '.join(self.examples)}{more}"


Stamps = Mapping[Place, Mapping[int, Stamp]]
"""By offset. Where nothing is known, a copy is a copy."""


def broken_promises(senders: Sequence[Sender], readers: Sequence[Reader], stamps: Stamps) -> list[Broken]:
    log = _log_of(readers)
    found = {
        "lost": _lost(senders, readers),
        "unseen": _unseen(senders, readers),
        "changed": [*_changed(log, readers), *_told_otherwise(log, senders)],
        "doubled": (str(copy) for copy in _exact_copies(log, senders) if not _is_sent_anew(copy, stamps)),
        "doubled anew": (str(copy) for copy in _exact_copies(log, senders) if _is_sent_anew(copy, stamps)),
        "out of order": _out_of_order(log, senders),
        "strange": _strange(log, senders),
        "skipped": _skipped(readers),
        "again": _again(readers),
        "refused": (f"{reader.name}: {refusal}" for reader in readers for refusal in reader.refusals),
    }
    return [broken for promise, texts in found.items() if (broken := broken_of(promise, texts)) is not None]


def broken_of(promise: str, texts: Iterable[str]) -> Broken | None:
    """One promise, with how often it was broken and a few of the cases."""
    every = list(texts)
    return Broken(promise, len(every), tuple(every[:EXAMPLES])) if every else None


def copies_of_plain(senders: Sequence[Sender], readers: Sequence[Reader]) -> int:
    """Records of producers that are not idempotent, there more than once: allowed, and good to know."""
    plain = [sender for sender in senders if not sender.is_idempotent]
    return sum(1 for _ in _copies(_log_of(readers), plain))


# Each promise by itself, and a text for each case.

Log = Mapping[Place, Mapping[int, bytes]]
"""What lies at every offset, as it was first read."""


def _log_of(readers: Sequence[Reader]) -> Log:
    log: dict[Place, dict[int, bytes]] = defaultdict(dict)
    for reader in readers:
        for place, offset, value in reader.reads:
            log[place].setdefault(offset, value)
    return log


def _values(reader: Reader) -> set[tuple[Place, bytes]]:
    return {(place, value) for place, _, value in reader.reads}


def _acknowledged(senders: Sequence[Sender]) -> Iterator[tuple[Place, bytes, int]]:
    for sender in senders:
        for place, told in sender.acknowledged.items():
            for value, offset in told.items():
                yield place, value, offset


def _lost(senders: Sequence[Sender], readers: Sequence[Reader]) -> Iterator[str]:
    seen = [_values(reader) for reader in readers if reader.reached_end]
    if not seen:
        return  # Nobody got to the end. That is another promise's; what is there nobody knows.
    for place, value, offset in _acknowledged(senders):
        if not any((place, value) in each for each in seen):
            yield f"{_short(value)}, acknowledged at {place} offset {offset}, is not there"


def _unseen(senders: Sequence[Sender], readers: Sequence[Reader]) -> Iterator[str]:
    complete = [reader for reader in readers if reader.reached_end]
    seen = {reader.name: _values(reader) for reader in complete}
    everywhere = set().union(*seen.values())
    for place, value, offset in _acknowledged(senders):
        for name, values in seen.items():
            if (place, value) not in values and (place, value) in everywhere:
                yield f"{name} did not see {_short(value)}, acknowledged at {place} offset {offset}; others did"


def _changed(log: Log, readers: Sequence[Reader]) -> Iterator[str]:
    for reader in readers:
        for place, offset, value in reader.reads:
            first = log[place][offset]
            if value != first:
                yield f"{place} offset {offset} is {_short(value)} to {reader.name} and was {_short(first)} before"


def _told_otherwise(log: Log, senders: Sequence[Sender]) -> Iterator[str]:
    for place, value, offset in _acknowledged(senders):
        there = log.get(place, {}).get(offset)
        if there is not None and there != value:
            yield f"{place} offset {offset} is {_short(there)}; the sender of {_short(value)} was told this offset"


def _exact_copies(log: Log, senders: Sequence[Sender]) -> Iterator[Copy]:
    return _copies(log, [sender for sender in senders if sender.is_idempotent])


def _is_sent_anew(copy: Copy, stamps: Stamps) -> bool:
    known = stamps.get(copy.place, {})
    return copy.first in known and copy.offset in known and known[copy.first] != known[copy.offset]


def _copies(log: Log, senders: Sequence[Sender]) -> Iterator[Copy]:
    """Each that is too many."""
    sent = {(place, value) for sender in senders for place, values in sender.sent.items() for value in values}
    for place, lies in log.items():
        first: dict[bytes, int] = {}
        for offset, value in sorted(lies.items()):
            if (place, value) in sent and first.setdefault(value, offset) != offset:
                yield Copy(place, value, first[value], offset)


def _out_of_order(log: Log, senders: Sequence[Sender]) -> Iterator[str]:
    for sender in senders:
        if not sender.is_idempotent:
            continue
        for place, values in sender.sent.items():
            number_of = {value: number for number, value in enumerate(values)}
            latest = -1
            for offset, value in sorted(log.get(place, {}).items()):
                number = number_of.pop(value, None)  # Copies are another promise's.
                if number is not None and number < latest:
                    yield f"{_short(value)} at {place} offset {offset} stands behind one that was sent after it"
                latest = max(latest, -1 if number is None else number)


def _strange(log: Log, senders: Sequence[Sender]) -> Iterator[str]:
    sent = {(place, value) for sender in senders for place, values in sender.sent.items() for value in values}
    for place, lies in log.items():
        for offset, value in lies.items():
            if (place, value) not in sent:
                yield f"{place} offset {offset} is {_short(value)}, which nobody sent there"


def _skipped(readers: Sequence[Reader]) -> Iterator[str]:
    for reader, place, expected, offset in _jumps(readers):
        if offset > expected:
            yield f"{reader} went from {place} offset {expected - 1} to {offset}"


def _again(readers: Sequence[Reader]) -> Iterator[str]:
    for reader, place, expected, offset in _jumps(readers):
        if offset < expected:
            yield f"{reader} went back from {place} offset {expected - 1} to {offset}"


def _jumps(readers: Sequence[Reader]) -> Iterator[tuple[str, Place, int, int]]:
    """Where a reader did not read the next offset: who, where, which was due, which it was."""
    for reader in readers:
        due: Counter[Place] = Counter()
        for place, offset, _ in reader.reads:
            if offset != due[place]:
                yield reader.name, place, due[place], offset
            due[place] = offset + 1


def _short(value: bytes) -> str:
    """The record's name, without what fills it up."""
    return value.split(b" ", 1)[0].decode(errors="replace")
