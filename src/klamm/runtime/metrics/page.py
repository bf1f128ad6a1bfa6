"""The page that is scraped, written in slices: ten thousand partitions must not hold up the node that has them."""

from collections.abc import Iterator
from itertools import islice

from klamm.exposition import header, number
from klamm.runtime.driver import Driver, now
from klamm.runtime.metrics import cluster, groups, process, replicas, traffic
from klamm.runtime.metrics.family import FAMILIES, Family, Seen
from klamm.runtime.metrics.tally import SLICE, Tally
from klamm.runtime.observe import FactCounts

# Each of them lists its families when it is imported, in this order or another.
PARTS = (cluster, groups, process, replicas, traffic)

PIECE_BYTES = 4096
"""Small families are sent together."""


def metrics_page(driver: Driver, facts: FactCounts) -> Iterator[str]:
    """In pieces that take less than a millisecond each to make; some are empty."""
    seen = Seen(driver, facts, driver.node.broker.partitions.in_any_order(), Tally(), now())
    for _ in seen.tally.add_up(driver.node.broker, seen.replicas):
        yield ""
    written = ""
    for each in FAMILIES:
        for text in _written(each, seen):
            written += text
            if len(written) > PIECE_BYTES:
                yield written
                written = ""
    yield written


def _written(family: Family, seen: Seen) -> Iterator[str]:
    name = family.name
    samples = family.gather(seen)
    text = header(name, family.kind, family.what)
    while True:
        lines = [f"{name}{behind} {number(value)}\n" for behind, value in islice(samples, SLICE)]
        yield text + "".join(lines)
        text = ""
        if len(lines) < SLICE:
            return
