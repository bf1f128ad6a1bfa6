"""What this software can do, and what the cluster has agreed on.

A feature is supported in a range by each node and finalized at one level by a record; a level of 0 is no record.
`metadata.version` stands at Kafka 4.3's, because the records are Kafka's of that version. `transaction.version`,
`group.version` and the others are named when what they promise is there: clients change their ways when they see them.
"""

from klamm.metadata.image import FeatureRange
from klamm.metadata.records import FeatureLevelRecord, MetadataRecord

METADATA_VERSION = "metadata.version"
# 4.3-IV0; the lowest is 3.3-IV3, as in Kafka.
LATEST_METADATA_VERSION = 30
OLDEST_METADATA_VERSION = 7

SUPPORTED: dict[str, FeatureRange] = {
    METADATA_VERSION: FeatureRange(OLDEST_METADATA_VERSION, LATEST_METADATA_VERSION),
}


def bootstrap_records() -> list[MetadataRecord]:
    """The first records of a new cluster, which say how to read all the others."""
    return [FeatureLevelRecord(name=METADATA_VERSION, feature_level=LATEST_METADATA_VERSION)]
