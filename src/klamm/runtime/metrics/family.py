"""A family of metrics: its name, kind and meaning, and the function that gathers its samples from a node.

A file of families writes each as a function under `@family(…)`; the page has them in the order in which they were
written. Samples are yielded one by one, so that whoever writes the page can stop after some and go on later. What they
are gathered from may have changed meanwhile: a function must not hold on to a dictionary of the node's while it yields.
Where there is nothing to say of something it yields None: looking took time, too, and is counted.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from klamm.broker.broker import Broker
from klamm.exposition import labels
from klamm.ids import Now
from klamm.partition.partition import Partition
from klamm.runtime.driver import Driver
from klamm.runtime.metrics.tally import Tally
from klamm.runtime.observe import FactCounts

COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"

Sample: TypeAlias = tuple[str, float]
"""What stands behind the family's name (labels, mostly), and the value."""


class Seen(NamedTuple):
    """What is looked at: a node as it runs."""

    driver: Driver
    facts: FactCounts
    replicas: list[Partition]
    tally: Tally
    now: Now

    @property
    def broker(self) -> Broker:
        return self.driver.node.broker


Gather: TypeAlias = Callable[[Seen], Iterator[Sample | None]]


class Family(NamedTuple):
    name: str
    kind: str
    what: str
    label_names: tuple[str, ...]
    gather: Gather


FAMILIES: list[Family] = []


def family(name: str, kind: str, what: str, *label_names: str) -> Callable[[Gather], Gather]:
    def listed(gather: Gather) -> Gather:
        FAMILIES.append(Family(name, kind, what, label_names, gather))
        return gather

    return listed


def one(name: str, kind: str, what: str) -> Callable[[Callable[[Seen], float]], Gather]:
    """The same for a family of a single sample without labels: its function returns the value."""

    def listed(value_of: Callable[[Seen], float]) -> Gather:
        def gather(seen: Seen) -> Iterator[Sample]:
            yield "", value_of(seen)

        return family(name, kind, what)(gather)

    return listed


def labelled(pairs: Mapping[str, object], value: float) -> Sample:
    return labels(pairs), value


def place_of(partition: Partition) -> str:
    """Labels of one partition. A topic's name has no letter that would need care."""
    topic, index = partition.topic_partition
    return f'{{topic="{topic}",partition="{index}"}}'
