"""Which partition a record goes to: the one it names, the one its key hashes to, or any (S1 to S4).

The client decides, so the experiment asks a real one, with both of the usual ways to hash a key.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.text import Text

from klamm.lab.clients import Reader, Writer, value_of
from klamm.lab.drawing import counts, grid, titled
from klamm.lab.measured import Claim, Measured
from klamm.lab.stage import Layout, Stage

if TYPE_CHECKING:
    from confluent_kafka import Message

PLAN = """\
Three brokers start. Topics with four partitions get invoices in three ways: to a partition by its number; by a key, the
number of the store, twelve stores in turn, once with the hash of the Java client (murmur2) and once with that of
librdkafka (consistent); and with neither. Then every partition is read to its end."""

LAYOUT = Layout(brokers=3)
PARTITIONS = 4
STORES = tuple(f"STR{number:03}" for number in range(12))
ROUNDS = 20
PARTITIONERS = {"murmur2": "murmur2_random", "consistent": "consistent_random"}
"""As the client's setting `partitioner` calls them."""


@dataclass(frozen=True, slots=True)
class Keyed:
    partitioner: str
    partitions_of_key: dict[str, tuple[int, ...]]
    keys_out_of_order: tuple[str, ...]
    """Whose records do not lie in the order in which they were sent."""
    records: int


@dataclass(frozen=True, slots=True)
class Keys(Measured):
    sent: int
    """In each of the ways."""
    to_a_partition: dict[int, int]
    """Sent to it by number, and found in it."""
    misplaced: int
    keyed: tuple[Keyed, ...]
    without_key: dict[int, int]
    """Records by partition."""
    partitions_with_gaps: tuple[str, ...]
    """Whose offsets are not 0, 1, 2, …"""

    def claims(self) -> list[Claim]:
        every = set(range(PARTITIONS))
        return [
            Claim(
                "a record that names its partition is in it",
                self.misplaced == 0 and sum(self.to_a_partition.values()) == self.sent,
            ),
            *(
                Claim(
                    f"{each.partitioner}: the records of a key are in one partition, in the order they were sent",
                    each.records == self.sent
                    and set(each.partitions_of_key) == set(STORES)
                    and all(len(partitions) == 1 for partitions in each.partitions_of_key.values())
                    and not each.keys_out_of_order,
                )
                for each in self.keyed
            ),
            Claim(
                "records without a key are spread over all partitions",
                {partition for partition, count in self.without_key.items() if count} == every
                and sum(self.without_key.values()) == self.sent,
            ),
            Claim("every partition counts its own records: 0, 1, 2, and so on", not self.partitions_with_gaps),
        ]

    def pictures(self) -> list[Text]:
        headings = ("key", *(f"partition by {each.partitioner}" for each in self.keyed))
        rows = [
            (store, *(", ".join(map(str, each.partitions_of_key.get(store, ()))) for each in self.keyed))
            for store in STORES
        ]
        spread = counts({f"partition {partition}": count for partition, count in sorted(self.without_key.items())})
        return [grid(headings, rows), titled("records without a key", spread)]

    def lesson(self) -> str:
        return (
            "Order holds within a partition, so what has to stay in order shares a key: the client hashes it, and the "
            "same key is the same partition while there are as many of them. Clients that hash differently disagree, "
            f"here on {self.moved} of {len(STORES)} keys: where several kinds of them write one topic, set their "
            "partitioner."
        )

    def result(self) -> str:
        spread = ", ".join(str(self.without_key[partition]) for partition in sorted(self.without_key))
        split = sum(len(partitions) != 1 for each in self.keyed for partitions in each.partitions_of_key.values())
        return f"{self.misplaced} misplaced, {split} keys in more than one partition; without a key: {spread}"

    @property
    def moved(self) -> int:
        """Keys that are elsewhere with the other partitioner."""
        first, second = self.keyed
        return sum(first.partitions_of_key.get(key) != second.partitions_of_key.get(key) for key in STORES)


class Found(NamedTuple):
    """A record where a consumer found it."""

    partition: int
    offset: int
    store: str
    number: int
    """In the order in which they were sent."""


def measured(stage: Stage) -> Keys:
    by_number = _written(stage, "by-number", partition_of=lambda number: number % PARTITIONS)
    by_key = {
        name: _written(stage, f"by-{name}", {"partitioner": partitioner}, with_key=True)
        for name, partitioner in PARTITIONERS.items()
    }
    # The usual client stays with a partition for a moment, to fill its batches; not this one.
    with_neither = _written(stage, "with-neither", {"sticky.partitioning.linger.ms": 0})
    topics = {"by-number": by_number, "with-neither": with_neither, **{f"by-{name}": by_key[name] for name in by_key}}
    return Keys(
        sent=len(STORES) * ROUNDS,
        to_a_partition=_by_partition(by_number),
        misplaced=sum(each.partition != each.number % PARTITIONS for each in by_number),
        keyed=tuple(keyed(name, found) for name, found in by_key.items()),
        without_key=_by_partition(with_neither),
        partitions_with_gaps=tuple(f"{topic}-{gap}" for topic, found in topics.items() for gap in with_gaps(found)),
    )


def keyed(partitioner: str, found: Sequence[Found]) -> Keyed:
    of_store = {store: [each for each in found if each.store == store] for store in STORES}
    return Keyed(
        partitioner=partitioner,
        partitions_of_key={
            store: tuple(sorted({each.partition for each in its_own})) for store, its_own in of_store.items() if its_own
        },
        keys_out_of_order=tuple(
            store
            for store, its_own in of_store.items()
            if [each.number for each in sorted(its_own)] != sorted(each.number for each in its_own)
        ),
        records=len(found),
    )


def with_gaps(found: Sequence[Found]) -> list[int]:
    """Partitions whose records do not have the offsets 0, 1, 2, …"""
    offsets: dict[int, list[int]] = {}
    for each in found:
        offsets.setdefault(each.partition, []).append(each.offset)
    return [partition for partition, its_own in sorted(offsets.items()) if its_own != list(range(len(its_own)))]


def _by_partition(found: Sequence[Found]) -> dict[int, int]:
    counted = Counter(each.partition for each in found)
    return {partition: counted[partition] for partition in range(PARTITIONS)}


def _written(
    stage: Stage,
    topic: str,
    settings: Mapping[str, Any] | None = None,
    *,
    partition_of: Callable[[int], int] | None = None,
    with_key: bool = False,
) -> list[Found]:
    """A topic of its own, written with these settings; where everything went."""
    stage.create(topic, partitions=PARTITIONS)
    # Idempotence keeps the order when the client tries again.
    writer = Writer(stage.bootstrap(), "all", {"enable.idempotence": True, **(settings or {})})
    for number in range(len(STORES) * ROUNDS):
        store = STORES[number % len(STORES)]
        partition = None if partition_of is None else partition_of(number)
        writer.send(topic, f"{store} {number}", partition=partition, key=store if with_key else None)
    writer.wait_answered()
    with Reader(stage.bootstrap(), topic, range(PARTITIONS)) as reader:
        found = [_found(message) for message in reader.all()]
    spread = ", ".join(str(count) for count in _by_partition(found).values())
    stage.tell(f"{topic}: {len(writer.acknowledged)} invoices, in the four partitions {spread}")
    return found


def _found(message: "Message") -> Found:
    store, number = value_of(message).split()
    partition, offset = message.partition(), message.offset()
    assert partition is not None and offset is not None, "a record that was read has a place"
    return Found(partition, offset, store, int(number))
