"""What this software can do, and what the cluster has agreed on.

A feature is supported in a range by each node and finalized at one level by a record; a level of 0 is no record.
`metadata.version` stands at Kafka 4.3's, because the records are Kafka's of that version, and
`eligible.leader.replicas.version` at 1 (KIP-966), `group.version` at 1 (KIP-848). `transaction.version` and the others
are named when what they promise is there: clients change their ways when they see them.

A level goes up when everybody supports it. It goes down only where nothing that was written would be lost: the
metadata version never, eligible leader replicas while no partition lives on them.
"""

from collections.abc import Sequence

from klamm.controller.state import State
from klamm.controller.wishes import FeatureUpdate, UpgradeType
from klamm.errors import ErrorCode, KafkaError
from klamm.machine import Decision
from klamm.metadata.image import FeatureRange, Image
from klamm.metadata.records import FeatureLevelRecord, MetadataRecord

METADATA_VERSION = "metadata.version"
# 4.3-IV0; the lowest is 3.3-IV3, as in Kafka.
LATEST_METADATA_VERSION = 30
OLDEST_METADATA_VERSION = 7
ELIGIBLE_LEADER_REPLICAS = "eligible.leader.replicas.version"
GROUP_VERSION = "group.version"

SUPPORTED: dict[str, FeatureRange] = {
    ELIGIBLE_LEADER_REPLICAS: FeatureRange(0, 1),
    GROUP_VERSION: FeatureRange(0, 1),
    METADATA_VERSION: FeatureRange(OLDEST_METADATA_VERSION, LATEST_METADATA_VERSION),
}


def bootstrap_records() -> list[MetadataRecord]:
    """The first records of a new cluster, which say how to read all the others."""
    return [
        FeatureLevelRecord(name=METADATA_VERSION, feature_level=LATEST_METADATA_VERSION),
        FeatureLevelRecord(name=ELIGIBLE_LEADER_REPLICAS, feature_level=1),
        FeatureLevelRecord(name=GROUP_VERSION, feature_level=1),
    ]


def has_eligible_leader_replicas(image: Image) -> bool:
    return image.features.get(ELIGIBLE_LEADER_REPLICAS, 0) >= 1


def update(
    state: State, wishes: Sequence[FeatureUpdate], *, validate_only: bool = False
) -> Decision[MetadataRecord, None]:
    """All levels or none. Raises KafkaError."""
    names = [wish.name for wish in wishes]
    if len(set(names)) != len(names):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A feature is named twice.")
    for wish in wishes:
        problem = _problem(state, wish)
        if problem is not None:
            reason = f"{wish.name} cannot be set to level {wish.level}: {problem}"
            raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, reason)
    records: list[MetadataRecord] = [
        FeatureLevelRecord(name=wish.name, feature_level=wish.level)
        for wish in wishes
        if wish.level != state.image.features.get(wish.name, 0)
    ]
    return Decision(None, [] if validate_only else records)


def _problem(state: State, wish: FeatureUpdate) -> str | None:
    image, current = state.image, state.image.features.get(wish.name, 0)
    if wish.kind not in (UpgradeType.UPGRADE, UpgradeType.SAFE_DOWNGRADE, UpgradeType.UNSAFE_DOWNGRADE):
        return "the upgrade type is not known."
    supporters = {"the controller": SUPPORTED} | {
        f"broker {broker_id}": broker.features for broker_id, broker in image.brokers.items()
    }
    for who, supported in supporters.items():
        low, high = supported.get(wish.name, FeatureRange(0, 0))
        if not low <= wish.level <= high:
            return f"{who} supports {low} to {high}."
    if wish.level > current and wish.kind != UpgradeType.UPGRADE:
        return f"it stands at {current}, so that would be no downgrade."
    if wish.level < current:
        return _problem_of_going_down(state, wish, current)
    return None


def _problem_of_going_down(state: State, wish: FeatureUpdate, current: int) -> str | None:
    if wish.kind == UpgradeType.UPGRADE:
        return f"it stands at {current}, and going down has to be asked for as a downgrade."
    if wish.name == METADATA_VERSION:
        return "records of the present version would be lost."
    if wish.name == ELIGIBLE_LEADER_REPLICAS and state.leaderless:
        return "partitions without a leader would never have one again."
    return None
