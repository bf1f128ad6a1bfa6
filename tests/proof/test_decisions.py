"""Reading a metadata log from disk: fenced brokers and leaders of the quorum are counted from an offset on."""

from pathlib import Path

from proof.calm import decisions

from klamm.metadata import records
from klamm.metadata.records import FENCE, UNFENCE, BrokerRegistrationChangeRecord, PartitionChangeRecord
from klamm.records.builder import BatchBuilder
from klamm.records.control import LeaderChange, quorum_batch


def batch(offset: int, *written: records.MetadataRecord) -> bytes:
    builder = BatchBuilder(base_offset=offset)
    for record in written:
        builder.append(None, records.encode(record), 0)
    return bytes(builder.build())


def test_decisions_after_an_offset(tmp_path: Path) -> None:
    fence = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=FENCE)
    unfence = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=UNFENCE)
    elected = bytes(quorum_batch([LeaderChange(leader_id=1)], timestamp=0, base_offset=4))
    (tmp_path / "00000000000000000000.log").write_bytes(
        batch(0, fence, unfence) + batch(2, fence, PartitionChangeRecord(partition_id=0)) + elected + batch(5, unfence)
    )
    assert decisions(tmp_path, 0) == {"fenced": 2, "quorum_leaders": 1, "partition_changes": 1}
    assert decisions(tmp_path, 2) == {"fenced": 1, "quorum_leaders": 1, "partition_changes": 1}
    assert decisions(tmp_path, 4) == {"fenced": 0, "quorum_leaders": 1, "partition_changes": 0}
    assert decisions(tmp_path, 5) == {"fenced": 0, "quorum_leaders": 0, "partition_changes": 0}
