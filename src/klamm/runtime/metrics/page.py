"""The page that is scraped, written in slices: ten thousand partitions must not hold up the node that has them."""

from collections.abc import Iterable, Iterator
from itertools import islice
from urllib.parse import parse_qs

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


def metrics_page(driver: Driver, facts: FactCounts, query: str = "") -> Iterator[str]:
    """In pieces that take less than a millisecond each to make; some are empty. With `name[]=…` in the query, as often
    as one likes, only the families of these names, as Prometheus' own libraries have it."""
    names = parse_qs(query).get("name[]")
    seen = Seen(driver, facts, driver.node.broker.partitions.in_any_order(), Tally(), now())
    for _ in seen.tally.add_up(driver.node.broker, seen.replicas):
        yield ""
    yield from in_pieces([each for each in FAMILIES if names is None or each.name in names], seen)


def in_pieces(families: Iterable[Family], seen: Seen) -> Iterator[str]:
    """Stops after every slice that was looked at, though there may be nothing to write of it."""
    written, looked_at = "", 0
    for each in families:
        for text, count in _written(each, seen):
            written += text
            looked_at += count
            if len(written) > PIECE_BYTES or looked_at >= SLICE:
                yield written
                written, looked_at = "", 0
    yield written


def _written(family: Family, seen: Seen) -> Iterator[tuple[str, int]]:
    """Slice by slice: its text, and how many were looked at."""
    name = family.name
    gathered = family.gather(seen)
    text = header(name, family.kind, family.what)
    while True:
        samples = list(islice(gathered, SLICE))
        lines = [f"{name}{sample[0]} {number(sample[1])}\n" for sample in samples if sample is not None]
        yield text + "".join(lines), len(samples)
        text = ""
        if len(samples) < SLICE:
            return
