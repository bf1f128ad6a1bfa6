"""The client that must not notice: it asks, writes and reads in a loop, and checks every answer.

It runs as a process of its own (`python -m tests.fuzz.witness PORT BOUND_SECONDS`), so that nobody else's work is in
its times, until its standard input ends; then it prints what it saw as one line of JSON. A wrong answer, or one that
took longer than the bound, ends it at once with a message and exit code 1.
"""

import json
import select
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import Any

from klamm.records.builder import BatchBuilder
from klamm.records.record import records_of
from klamm.wire.messages.api_versions import ApiVersionsRequest
from klamm.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from klamm.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from klamm.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.hostile.raw import Raw

TOPIC = "witness"
PAUSE_SECONDS = 0.005
RECONNECT_AFTER = 200
"""Rounds; a new client has to be let in, too."""


class Disturbed(Exception):  # noqa: N818
    """What the client had to notice."""


@dataclass
class Seen:
    requests: int
    median_ms: float
    p99_ms: float
    longest_ms: float


@dataclass
class Witness:
    port: int
    bound_seconds: float
    next_offset: int = 0
    times: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._client = Raw(self.port, patience=self.bound_seconds)

    def round(self) -> None:
        """Four questions, with the answers a healthy broker gives."""
        versions = self._ask(ApiVersionsRequest(client_software_name="witness", client_software_version="1"), 3)
        _check(versions.error_code == 0 and len(versions.api_keys) > 10, versions)
        metadata = self._ask(
            MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=False), 9
        )
        (topic,) = metadata.topics
        _check(topic.error_code == 0 and [each.leader_id for each in topic.partitions] == [0], metadata)
        value = b"%d" % self.next_offset
        produced = self._ask(_produce(value), 9)
        (answer,) = produced.responses[0].partition_responses
        _check(answer.error_code == 0 and answer.base_offset == self.next_offset, produced)
        fetched = self._ask(_fetch(self.next_offset), 11)
        (found,) = fetched.responses[0].partitions
        _check(found.error_code == 0 and found.high_watermark == self.next_offset + 1, fetched)
        _check([each.value for each in records_of(found.records)] == [value], fetched)
        self.next_offset += 1
        if self.next_offset % RECONNECT_AFTER == 0:
            self._client.close()
            self._client = Raw(self.port, patience=self.bound_seconds)

    def seen(self) -> Seen:
        times = sorted(self.times)
        return Seen(
            len(times),
            round(times[len(times) // 2], 2),
            round(times[len(times) * 99 // 100], 2),
            round(times[-1], 2),
        )

    def _ask(self, request: object, version: int) -> Any:
        began = time.perf_counter()
        try:
            answer = self._client.ask(request, version)
        except (OSError, AssertionError) as error:
            waited = time.perf_counter() - began
            raise Disturbed(f"{type(request).__name__} after {waited:.1f} s: {error!r}") from error
        self.times.append((time.perf_counter() - began) * 1000)
        _check(self.times[-1] < self.bound_seconds * 1000, f"{type(request).__name__} took {self.times[-1]:.0f} ms")
        return answer


def _produce(value: bytes) -> ProduceRequest:
    builder = BatchBuilder()
    builder.append(b"key", value, time.time_ns() // 1_000_000)
    data = TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=0, records=builder.build())])
    return ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data])


def _fetch(offset: int) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    topic = FetchTopic(topic=TOPIC, partitions=[partition])
    return FetchRequest(max_wait_ms=1000, min_bytes=1, max_bytes=1 << 20, session_epoch=-1, topics=[topic])


def _check(holds: bool, what: object) -> None:
    if not holds:
        raise Disturbed(f"a wrong answer: {what}")


def main(port: int, bound_seconds: float) -> int:
    witness = Witness(port, bound_seconds)
    try:
        while not select.select([sys.stdin], [], [], PAUSE_SECONDS)[0]:
            witness.round()
    except Disturbed as disturbed:
        print(json.dumps({"disturbed": str(disturbed)}), flush=True)
        return 1
    print(json.dumps(asdict(witness.seen())), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), float(sys.argv[2])))
