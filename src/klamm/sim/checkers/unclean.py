"""Unclean elections: where somebody allowed them, and what they excuse.

A leader that was elected though it may lack something says so in the metadata: it is recovering. From then on its
partition may have lost records, and nothing more is promised of those; that replicas are the same in the end still is.
A topic that does not allow it has such a leader only if it is the last one known (KIP-966), and loses nothing by it.
"""

from klamm.metadata.records import PartitionChangeRecord, TopicRecord, decode
from klamm.records.record import records_of
from klamm.sim.clients.history import Key
from klamm.sim.topics import LOOSE

RECOVERING = 1


class UncleanElections:
    def __init__(self, *excused: set[Key]) -> None:
        self._excused = excused
        self._loose: set[bytes] = set()
        self.count = 0
        self.last_known = 0
        """How often a last known leader came back to a topic that is not loose."""

    def committed(self, batch: bytes) -> None:
        """A batch of the metadata log, as soon as anybody calls it committed."""
        for each in records_of(batch):
            record = decode(each.value or b"")
            if isinstance(record, TopicRecord) and record.name in LOOSE:
                self._loose.add(record.topic_id)
            elif isinstance(record, PartitionChangeRecord) and record.leader_recovery_state == RECOVERING:
                self._elected(record)

    def _elected(self, record: PartitionChangeRecord) -> None:
        if record.topic_id not in self._loose:
            self.last_known += 1
            return
        self.count += 1
        for keys in self._excused:
            keys.add((record.topic_id, record.partition_id))
