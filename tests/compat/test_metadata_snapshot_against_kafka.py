"""Kafka's dump tool reads our snapshots of the metadata: header, voters, records, footer."""

import json
from pathlib import Path
from random import Random

from klamm.config import BrokerConfig
from klamm.facts import Fact
from klamm.ids import Now, uuid_text
from klamm.metadata.records import ConfigRecord, FeatureLevelRecord, MetadataRecord
from klamm.quorum.facts import SnapshotTaken
from klamm.quorum.identity import NodeIdentity
from klamm.quorum.raft import DIRECTORY, Raft
from klamm.quorum.voters import Voter, Voters
from klamm.runtime.files import RealFiles
from tests.compat.java_tools import JavaTools

HOME = bytes(range(1, 17))
NOW = Now(0.0, 1_700_000_000_000)
CONFIG = BrokerConfig.from_properties([], {"node.id": "0"})


def test_kafka_reads_our_snapshots(tools: JavaTools, tmp_path: Path) -> None:
    files, facts = RealFiles(tmp_path), list[Fact]()
    voters = Voters.of([Voter(0, host="127.0.0.1", port=9093)])
    identity = NodeIdentity(0, HOME, "a-cluster")
    raft = Raft.open(CONFIG, identity, voters, files, Random(5), NOW, clean=False, tell=facts.append)
    raft.start(NOW)
    records: list[MetadataRecord] = [
        FeatureLevelRecord(name="metadata.version", feature_level=30),
        *(ConfigRecord(4, "", f"name-{number}", "v" * 1_000) for number in range(100)),
    ]
    raft.propose(records, NOW)
    while ready := raft.ready():
        if ready.flush is not None:
            files.flush(ready.flush.files)
            raft.flushed(ready.flush.up_to)
    raft.take_snapshot(records, raft.high_watermark - 1, raft.epoch, NOW)
    while not any(isinstance(fact, SnapshotTaken) for fact in facts):
        raft.tick(NOW)

    (snapshot,) = (tmp_path / DIRECTORY).glob("*.checkpoint")
    assert snapshot.name == f"{104:020}-{1:010}.checkpoint"
    arguments = ["--cluster-metadata-decoder", "--files", str(snapshot)]
    out = tools.run("org.apache.kafka.tools.DumpLogSegments", *arguments).checked()
    assert "isvalid: false" not in out and "rror" not in out
    dumped = [json.loads(line.partition("payload: ")[2]) for line in out.splitlines() if "payload: {" in line]
    assert [record["data"]["name"] for record in dumped] == ["metadata.version", *(f"name-{n}" for n in range(100))]
    for part in ("SnapshotHeader", "KRaftVersion", "KRaftVoters", "SnapshotFooter", uuid_text(HOME), "127.0.0.1"):
        assert part in out, f"no {part} in {out[:2_000]}"
