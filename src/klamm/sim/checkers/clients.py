"""What clients see: nothing acknowledged is lost, nothing is doubled or out of order, and all readers see the same.

I15, I21, I28. A record that was acknowledged with acks=all stands at its offset for everybody, for ever; so does one
that anybody has read. Of an idempotent producer each record is there at most once, and in the order of sending.
"""

from collections.abc import Mapping

from klamm.ids import Offset
from klamm.sim.checkers.compaction import CompactionChecker
from klamm.sim.checkers.replication import NOTHING, Committed
from klamm.sim.clients.history import Fate, History, Key, Written
from klamm.sim.promise import broken

ALL = -1


class ClientChecker:
    def __init__(self, history: History, committed: Mapping[Key, Committed], compaction: CompactionChecker) -> None:
        self._history = history
        self._committed = committed
        """How far a leader's watermark ever came, and the epoch there."""
        self._places: dict[bytes, tuple[Key, Offset]] = {}
        self._repeated: set[bytes] = set()
        """Stored again when they had been deleted."""
        self.may_lose: set[Key] = set()
        """Partitions that were allowed to lose something (an unclean election was asked for)."""
        self.starts: dict[Key, Offset] = {}
        """Where they begin by now: what stood before was deleted, by wish or by age."""
        self._compaction = compaction
        history.on_seen = self.seen
        history.on_acknowledged = self.acknowledged
        history.on_gap = self.gap
        history.on_moved = self.moved
        history.on_cut = self.cut
        history.on_beyond = self.beyond

    def acknowledged(self, record: Written) -> None:
        if record.offset < 0 or record.acks != ALL:
            return
        other = self._history.acknowledged.get(record.key, {}).get(record.offset)
        if (
            other not in (None, record.value)
            and self._history.written[other].acks == ALL
            and record.key not in self.may_lose
        ):
            broken(
                "I15",
                f"{record.value!r} and {other!r} were both acknowledged at {record.offset} of {_named(record.key)}",
            )

    def seen(self, reader: str, key: Key, offset: Offset, value: bytes) -> None:
        if offset >= self._committed.get(key, NOTHING).offset:
            broken("I14", f"{reader} read {value!r} at {offset} of {_named(key)}, which no leader called committed")
        if key in self.may_lose:
            return
        known = self._history.seen.get(key, {}).get(offset)
        if known is not None:
            if known != value:
                broken("I28", f"{reader} read {value!r} at {offset} of {_named(key)}, where {known!r} was read before")
            return
        record = self._history.written.get(value)
        if record is None:
            broken("I28", f"{reader} read {value!r} at {offset} of {_named(key)}, which nobody wrote")
        if record.key != key:
            broken("I20", f"{reader} read {value!r} in {_named(key)}, written to {_named(record.key)}")
        if record.fate is Fate.REFUSED:
            broken("I28", f"{reader} read {value!r}, which was never sent")
        promised = self._history.acknowledged.get(key, {}).get(offset)
        if promised not in (None, value) and self._history.written[promised].acks == ALL:
            broken("I15", f"{reader} read {value!r} at {offset} of {_named(key)}, where {promised!r} was acknowledged")
        if record.is_idempotent:
            if record.offset not in (-1, offset):
                broken("I21", f"{value!r} stands at {offset} of {_named(key)}, and was acknowledged at {record.offset}")
            place = self._places.setdefault(value, (key, offset))
            if place[0] == key and place[1] < min(offset, self.starts.get(key, 0)):
                # Sent again after it had been deleted. A replica that began behind it knows nothing of its producer.
                self._places[value] = (key, offset)
                self._repeated.add(value)
            elif place != (key, offset):
                broken("I21", f"{value!r} stands at {place[1]} and at {offset} of {_named(key)}")

    def gap(self, reader: str, key: Key, wanted: Offset, given: Offset) -> None:
        if self._compaction.holds(key):
            self._compaction.passed(reader, key, wanted, given)
        elif key not in self.may_lose and given > max(wanted, self.starts.get(key, 0)):
            broken("I28", f"{reader} asked {_named(key)} from {wanted} on and was given {given}")

    def moved(self, reader: str, key: Key, start: Offset) -> None:
        if start > self.starts.get(key, 0):
            broken("I20", f"{reader} is told that {_named(key)} begins at {start}, where no replica may")

    def cut(self, reader: str, key: Key, offset: Offset, end: Offset) -> None:
        if self._compaction.holds(key) and end >= 0:
            # Where an epoch ended in a gap that compaction left nobody can tell exactly.
            self._compaction.passed(reader, key, end, offset)
        elif key not in self.may_lose:
            broken("I14", f"{reader} had read {_named(key)} up to {offset} and is told that it ends at {end}")

    def beyond(self, reader: str, key: Key, offset: Offset) -> None:
        # Where records were deleted it may have been before the beginning, which a crash has taken back since.
        if offset >= self.starts.get(key, 0):
            self.cut(reader, key, offset, -1)

    def at_end(self, exists: set[Key]) -> None:
        """After everything was read once more: what had to be there was read, and in order."""
        for key, acknowledged in self._history.acknowledged.items():
            if key not in exists or key in self.may_lose or self._compaction.holds(key):
                # Of a compacted one, each replica was asked by its own checker.
                continue
            seen, start = self._history.seen.get(key, {}), self.starts.get(key, 0)
            for offset, value in acknowledged.items():
                if offset >= start and self._history.written[value].acks == ALL and seen.get(offset) != value:
                    broken(
                        "I15", f"{value!r}, acknowledged at {offset} of {_named(key)}, is lost: {seen.get(offset)!r}"
                    )
        self._everything_is_in_order(exists)

    def _everything_is_in_order(self, exists: set[Key]) -> None:
        for key in exists - self.may_lose:
            last: dict[str, int] = {}
            for _, value in sorted(self._history.seen.get(key, {}).items()):
                record = self._history.written[value]
                if record.is_idempotent:
                    if record.number <= last.get(record.producer, -1) and value not in self._repeated:
                        broken("I21", f"{value!r} stands in {_named(key)} after a later one of {record.producer}")
                    last[record.producer] = record.number


def _named(key: Key) -> str:
    return f"{key[0].hex()[:6]}-{key[1]}"
