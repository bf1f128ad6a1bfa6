"""Kafka's dump tool reads our metadata log: a small cluster's history, two starts, every kind of record we write."""

import json
from pathlib import Path
from random import Random
from typing import Any

from klamm.config import BrokerConfig, Change, Operation
from klamm.controller.brokers import BrokerHeartbeat, BrokerRegistration
from klamm.controller.controller import Controller
from klamm.controller.features import SUPPORTED
from klamm.controller.wishes import ConfigChanges, MorePartitions, NewTopic, TopicToDelete
from klamm.ids import Now, uuid_text
from klamm.machine import Decision, Plan
from klamm.metadata.image import EMPTY, ConfigResource, Endpoint, ResourceType
from klamm.metadata.records import MetadataRecord
from klamm.quorum.identity import NodeIdentity
from klamm.quorum.raft import DIRECTORY, Raft
from klamm.quorum.voters import Voters
from klamm.runtime.files import RealFiles
from tests.compat.java_tools import JavaTools

HOME = bytes(range(1, 17))
NOW = Now(0.0, 1_700_000_000_000)
CONFIG = BrokerConfig.from_properties([], {"node.id": "0"})


class SmallCluster:
    """Quorum and controller on a real disk, with every flush done at once."""

    def __init__(self, root: Path) -> None:
        self.files = RealFiles(root)
        identity = NodeIdentity(0, HOME, "a-cluster")
        voters = Voters.parsed("0@127.0.0.1:9092")
        self.raft = Raft.open(CONFIG, identity, voters, self.files, Random(3), NOW, clean=False)
        self.controller = Controller(CONFIG, "a-cluster", Random(5), EMPTY, NOW)
        self.raft.start(NOW)
        self.apply(replay=True)
        self.run(self.controller.activate(NOW))

    def run(self, decision: Decision[MetadataRecord, Any] | Plan[MetadataRecord, Any]) -> Any:
        if decision.records:
            self.raft.propose(decision.records, NOW)
            for record in decision.records:
                self.controller.replay(record)
            self.apply(replay=False)
        return decision.response

    def apply(self, *, replay: bool) -> None:
        while ready := self.raft.ready():
            if ready.flush is not None:
                self.files.flush(ready.flush.files)
                self.raft.flushed(ready.flush.up_to)
            for batch in ready.committed if replay else ():
                for record in batch.records:
                    self.controller.replay(record)

    def join(self, life: int) -> int:
        registration = BrokerRegistration(
            broker_id=0,
            incarnation_id=bytes([life]) * 16,
            cluster_id="a-cluster",
            endpoints=[Endpoint("PLAINTEXT", "127.0.0.1", 9092)],
            directories=[HOME],
            features=SUPPORTED,
            rack="R1",
        )
        plan = self.controller.register_broker(registration, lambda: self.raft.log.end_offset, NOW)
        epoch: int = self.run(plan).broker_epoch
        seen = self.raft.log.end_offset
        self.run(self.controller.heartbeat(BrokerHeartbeat(0, epoch, seen), lambda: seen, NOW))
        return epoch


def test_kafka_reads_our_metadata_log(tools: JavaTools, tmp_path: Path) -> None:
    cluster = SmallCluster(tmp_path)
    controller = cluster.controller
    epoch = cluster.join(life=1)
    cluster.run(controller.create_topics([NewTopic("invoice", 2, 1, configs=[("retention.ms", "86400000")])]))
    cluster.run(controller.create_topics([NewTopic("brief")]))
    cluster.run(controller.create_partitions([MorePartitions("invoice", 3)]))
    cluster.run(controller.delete_topics([TopicToDelete("brief")]))
    change = Change("retention.ms", Operation.DELETE, None)
    invoice = ConfigResource(ResourceType.TOPIC, "invoice")
    cluster.run(controller.incremental_alter_configs([ConfigChanges(invoice, [change])]))
    cluster.run(controller.allocate_producer_ids(0, epoch))
    topic_id = uuid_text(controller.image.topics["invoice"].topic_id)
    # It dies and comes back: a new epoch of the quorum, and new leader epochs of the partitions it led.
    cluster = SmallCluster(tmp_path)
    cluster.join(life=2)
    assert [state.leader_epoch for state in cluster.controller.image.topics["invoice"].partitions] == [1, 1, 1]

    log = tmp_path / DIRECTORY / f"{0:020}.log"
    arguments = ["--cluster-metadata-decoder", "--files", str(log)]
    out = tools.run("org.apache.kafka.tools.DumpLogSegments", *arguments).checked()
    assert "isvalid: false" not in out and "rror" not in out
    dumped = [json.loads(line.partition("payload: ")[2]) for line in out.splitlines() if "payload: {" in line]
    kinds = [record["type"] for record in dumped]
    assert kinds == [
        *["FEATURE_LEVEL_RECORD"] * 3,
        "REGISTER_BROKER_RECORD",
        "BROKER_REGISTRATION_CHANGE_RECORD",
        *["TOPIC_RECORD", "CONFIG_RECORD", "PARTITION_RECORD", "PARTITION_RECORD"],
        *["TOPIC_RECORD", "PARTITION_RECORD"],
        "PARTITION_RECORD",
        "REMOVE_TOPIC_RECORD",
        "CONFIG_RECORD",
        "PRODUCER_IDS_RECORD",
        *["PARTITION_CHANGE_RECORD"] * 3,
        "REGISTER_BROKER_RECORD",
        "BROKER_REGISTRATION_CHANGE_RECORD",
    ]
    assert dumped[0]["data"] == {"name": "metadata.version", "featureLevel": 30}
    assert dumped[1]["data"] == {"name": "eligible.leader.replicas.version", "featureLevel": 1}
    assert dumped[2]["data"] == {"name": "group.version", "featureLevel": 1}
    assert dumped[5]["data"] == {"name": "invoice", "topicId": topic_id}
    assert dumped[8]["data"] == {
        "partitionId": 1,
        "topicId": topic_id,
        "replicas": [0],
        "isr": [0],
        "removingReplicas": [],
        "addingReplicas": [],
        "leader": 0,
        "leaderEpoch": 0,
        "partitionEpoch": 0,
        "directories": [uuid_text(HOME)],
    }
    leader_changes = [line for line in out.splitlines() if "LeaderChange" in line]
    assert len(leader_changes) == 2 and all('"leaderId":0' in line for line in leader_changes)
