"""What comes and goes: records and bytes by topic, requests by API, connections.

The series without a topic is the sum of all topics, those that are deleted included, as Kafka's exporters have it.
"""

from collections.abc import Callable, Iterator

from klamm.exposition import histogram
from klamm.node.served import Times
from klamm.partition.traffic import Traffic
from klamm.runtime.metrics.family import COUNTER, GAUGE, HISTOGRAM, Gather, Sample, Seen, family, labelled, one
from klamm.wire.apis import API_BY_KEY

BOUNDS_US = [1 << power for power in range(4, 25)]
"""16 µs to 17 s."""


def _by_topic(value_of: Callable[[Traffic], int]) -> Gather:
    def gather(seen: Seen) -> Iterator[Sample]:
        yield "", value_of(seen.tally.traffic)
        by_topic = seen.broker.partitions.traffic
        for topic in list(by_topic):
            if (traffic := by_topic.get(topic)) is not None:
                yield f'{{topic="{topic}"}}', value_of(traffic)

    return gather


for _name, _what, _value_of in (
    ("messagesin", "Records that producers wrote here.", lambda traffic: traffic.messages_in),
    ("bytesin", "Bytes of batches that producers wrote here.", lambda traffic: traffic.bytes_in),
    ("bytesout", "Bytes of batches that consumers were given.", lambda traffic: traffic.bytes_out),
    ("replicationbytesin", "Bytes taken from leaders elsewhere.", lambda traffic: traffic.replication_bytes_in),
    ("replicationbytesout", "Bytes given to followers elsewhere.", lambda traffic: traffic.replication_bytes_out),
):
    family(f"kafka_server_brokertopicmetrics_{_name}_total", COUNTER, _what, "topic")(_by_topic(_value_of))


@family("kafka_network_requestmetrics_requests_total", COUNTER, "Requests that came over connections.", "request")
def requests(seen: Seen) -> Iterator[Sample]:
    for key, served in sorted(seen.driver.counts.items()):
        yield labelled({"request": API_BY_KEY[key].name}, served.requests)


@family(
    "kafka_network_requestmetrics_totaltimems",
    HISTOGRAM,
    "Milliseconds from the arrival of a request to its answer. Fetches wait for records, acks=all for replicas. "
    "Those passed on to the controller are not timed.",
    "request",
)
def request_times(seen: Seen) -> Iterator[Sample]:
    for key, served in sorted(seen.driver.counts.items()):
        yield from timed({"request": API_BY_KEY[key].name}, served.times, unit_us=1_000)


@one("klamm_requests_waiting", GAUGE, "Requests that wait for records, for replicas or for members of their group.")
def waiting(seen: Seen) -> float:
    return len(seen.broker.waiting)


@one("klamm_unfinished_requests_bytes", GAUGE, "What has arrived of requests that are not whole yet.")
def unfinished(seen: Seen) -> float:
    return seen.driver.server.unfinished_bytes


@one("klamm_connections_waiting_for_room", GAUGE, "Connections in the middle of a request, not read while others are.")
def waiting_for_room(seen: Seen) -> float:
    return seen.driver.server.waiting_for_room


@one("kafka_server_socketservermetrics_connection_count", GAUGE, "Connections that others have opened to this node.")
def connections(seen: Seen) -> float:
    return seen.driver.server.accepted_count


@one("kafka_server_socketservermetrics_connection_creation_total", COUNTER, "Connections that were ever taken.")
def connections_ever(seen: Seen) -> float:
    return seen.driver.server.accepted_total


@one("klamm_peer_connections", GAUGE, "Connections that this node has opened to other nodes.")
def peer_connections(seen: Seen) -> float:
    return seen.driver.server.dialed_count


@family("klamm_node_step_seconds", HISTOGRAM, "How long the node took for one event and what followed from it.")
def steps(seen: Seen) -> Iterator[Sample]:
    yield from timed({}, seen.driver.steps, unit_us=1_000_000)


def timed(pairs: dict[str, object], times: Times, unit_us: int) -> list[Sample]:
    """As a histogram in a unit of so many microseconds."""
    first, last = BOUNDS_US[0].bit_length(), BOUNDS_US[-1].bit_length()
    buckets = times.buckets
    counts = [sum(buckets[:first]), *buckets[first:last], sum(buckets[last:])]
    bounds = [bound / unit_us for bound in BOUNDS_US]
    return histogram(pairs, bounds, counts, times.total_us / unit_us)
