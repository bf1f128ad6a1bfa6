"""A broker under attack: how to reach it, how much memory it holds, and whether it still serves everybody else."""

import os
import re
import time
from pathlib import Path

from klamm.wire.messages.api_versions import ApiVersionsRequest
from klamm.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from klamm.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from klamm.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from klamm.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.harness.node import Node
from tests.hostile.raw import Raw

MEBIBYTE = 1 << 20
CEILING_MIB = 256.0
"""What the broker may hold at most, whatever is done to it."""

ANSWERED_WITHIN_SECONDS = 15.0
"""How long somebody else may have to wait for an answer meanwhile. Generous: test machines are busy."""

NAMED = 12
"""The last Produce, Fetch version that names topics; easier to write down than ids."""


class Target:
    def __init__(self, node: Node) -> None:
        self.node = node
        self._witness = self.connect()
        self._said_before = len(node.log)

    @property
    def port(self) -> int:
        return self.node.port

    def connect(self, *, patience: float = 10.0, receive_buffer: int | None = None) -> Raw:
        return Raw(self.port, patience=patience, receive_buffer=receive_buffer)

    # Others.

    def check_others_are_served(self) -> None:
        """A client from before and a new one get right answers in time, and the broker found no bug in itself."""
        self.check_witness_is_served()
        with self.connect() as newcomer:
            self._check_served(newcomer)
        assert "bug in Klamm" not in self.said and "Traceback" not in self.said, self.said[-5000:]

    @property
    def said(self) -> str:
        """What the broker logged since."""
        return self.node.log[self._said_before :]

    def check_witness_is_served(self) -> None:
        self._check_served(self._witness)

    def reconnect(self) -> None:
        """For a test in which the witness was rightly closed."""
        self._witness.close()
        self._witness = self.connect()

    def close(self) -> None:
        self._witness.close()

    def _check_served(self, client: Raw) -> None:
        began = time.monotonic()
        versions = client.ask(ApiVersionsRequest(client_software_name="witness", client_software_version="1"), 3)
        assert not versions.error_code and versions.api_keys
        metadata = client.ask(MetadataRequest(topics=[]), 9)
        assert [broker.port for broker in metadata.brokers] == [self.port]
        waited = time.monotonic() - began
        assert waited < ANSWERED_WITHIN_SECONDS, f"somebody else waited {waited:.1f} s"

    def is_up(self) -> bool:
        """Whether the process lives. A dead one that nobody has waited for yet has no memory."""
        status = Path(f"/proc/{self.node.pid}/status")
        return status.exists() and "VmRSS" in status.read_text()

    def cpu_seconds(self) -> float:
        """What it has computed so far, however busy the machine is."""
        fields = Path(f"/proc/{self.node.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    # Memory.

    def reset_peak(self) -> None:
        Path(f"/proc/{self.node.pid}/clear_refs").write_text("5")

    def peak_mib(self) -> float:
        """The most memory it held since it started, or since `reset_peak`."""
        return self._memory_mib("VmHWM")

    def resident_mib(self) -> float:
        return self._memory_mib("VmRSS")

    def check_memory(self) -> None:
        peak = self.peak_mib()
        assert peak < CEILING_MIB, f"the broker held {peak:.0f} MiB"

    def _memory_mib(self, line: str) -> float:
        status = Path(f"/proc/{self.node.pid}/status").read_text()
        found = re.search(rf"{line}:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) / 1024

    # What tests need again and again.

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> None:
        """Settings are given with underscores for dots."""
        settings = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=settings)
        with self.connect() as client:
            response = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 4)
            assert [each.error_code for each in response.topics] == [0], response
            wait_for_leader(client, name)


def wait_for_leader(client: Raw, topic: str) -> None:
    """Asks for the topic until its first partition is led, as a client would."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    for _ in range(1000):
        (answer,) = client.ask(request, 9).topics
        if not answer.error_code and answer.partitions and not answer.partitions[0].error_code:
            return
    raise AssertionError(f"{topic} was not created: {answer}")


def produce(topic: str, records: object, *, acks: int = 1, index: int = 0) -> ProduceRequest:
    data = PartitionProduceData(index=index, records=records)
    return ProduceRequest(acks=acks, timeout_ms=5_000, topic_data=[TopicProduceData(name=topic, partition_data=[data])])


def fetch(topic: str, offset: int = 0, *, wait_ms: int = 0, max_bytes: int = 50 * MEBIBYTE) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=[partition])],
    )
