"""Five batches of one partition in flight over connections that are cut: what the Java producer does, without Java.

The producer here keeps five requests under way. When its connection goes it makes a new one and sends again, in order
and with the same sequence numbers, whatever has no answer yet; it cannot know which of them the broker has.
More seeds: KLAMM_CUT_SEEDS=20.
"""

import os
from collections import deque
from typing import Any

import pytest

from klamm.errors import ErrorCode
from tests.harness.fixtures import StartNode
from tests.harness.proxy import CuttingProxy
from tests.harness.raw import Raw, Waiting
from tests.harness.requests import batch_of, create, new_producer_id, produce_request, values_in

IN_FLIGHT = 5
BATCHES = 400
A_BATCH = 10
SEEDS = range(1, 1 + int(os.environ.get("KLAMM_CUT_SEEDS", "2")))


class PipelinedProducer:
    """Sends numbered batches, at most five ahead of the answers."""

    def __init__(self, port: int, topic: str, producer_id: int) -> None:
        self._port = port
        self._topic = topic
        self._producer_id = producer_id
        self.base_offsets: dict[int, int] = {}
        self.connections = 0

    def send_all(self, count: int) -> None:
        while len(self.base_offsets) < count:
            self.connections += 1
            try:
                with Raw(self._port, timeout_seconds=10) as raw:
                    self._send_until_cut(raw, count)
            except ConnectionError:
                continue  # Again, from the first one without an answer.

    def _send_until_cut(self, raw: Raw, count: int) -> None:
        under_way: deque[tuple[int, Waiting]] = deque()
        following = len(self.base_offsets)
        while len(self.base_offsets) < count:
            while len(under_way) < IN_FLIGHT and following < count:
                under_way.append(
                    (following, raw.send("Produce", 9, produce_request(self._topic, self._batch(following))))
                )
                following += 1
            number, waiting = under_way.popleft()
            (answer,) = raw.receive(waiting).responses[0].partition_responses
            assert answer.error_code == ErrorCode.NONE, (number, answer)
            self.base_offsets[number] = answer.base_offset

    def _batch(self, number: int) -> bytes:
        values = [b"%06d" % (number * A_BATCH + place) + bytes(200) for place in range(A_BATCH)]
        fields: dict[str, Any] = {
            "producer_id": self._producer_id,
            "producer_epoch": 0,
            "base_sequence": number * A_BATCH,
        }
        return bytes(batch_of(*values, **fields))


@pytest.mark.parametrize("seed", SEEDS)
def test_trap_23_five_in_flight_over_cut_connections(start_node: StartNode, topic: str, seed: int) -> None:
    node = start_node()
    with Raw(node.port) as raw:
        create(raw, topic)
        producer_id = new_producer_id(raw)
    with CuttingProxy(seed, mean_request_bytes=60_000, mean_response_bytes=800) as proxy:
        proxy.connect_to(node.port)
        proxy.start_cutting()
        producer = PipelinedProducer(int(proxy.address.rpartition(":")[2]), topic, producer_id)
        producer.send_all(BATCHES)
        assert max(cut.in_flight for cut in proxy.cuts) >= IN_FLIGHT, "the pipeline was never full"
        assert producer.connections > 10, "there were too few cuts to show anything"
    assert producer.base_offsets == {number: number * A_BATCH for number in range(BATCHES)}
    with Raw(node.port) as raw:
        held = values_in(raw, topic)
    assert [value[:6] for value in held if value] == [b"%06d" % number for number in range(BATCHES * A_BATCH)]
