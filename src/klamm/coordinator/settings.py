"""What the brokers' settings say about groups, read once."""

from dataclasses import dataclass

from klamm.config import BrokerConfig

UPGRADE, DOWNGRADE = "UPGRADE", "DOWNGRADE"
MIGRATIONS = {"DISABLED": (), UPGRADE: (UPGRADE,), DOWNGRADE: (DOWNGRADE,), "BIDIRECTIONAL": (UPGRADE, DOWNGRADE)}


@dataclass(frozen=True, slots=True)
class GroupSettings:
    initial_rebalance_delay_ms: int = 3_000
    min_session_ms: int = 6_000
    max_session_ms: int = 1_800_000
    max_size: int = 2**31 - 1
    max_group_bytes: int = 16 << 20
    max_groups_bytes: int = 128 << 20
    protocols: tuple[str, ...] = ("classic", "consumer")
    consumer_heartbeat_ms: int = 5_000
    consumer_session_ms: int = 45_000
    consumer_max_size: int = 2**31 - 1
    assignors: tuple[str, ...] = ("uniform", "range")
    migrations: tuple[str, ...] = (UPGRADE, DOWNGRADE)
    assignment_interval_ms: int = 0
    regex_refresh_ms: int = 600_000
    offsets_retention_ms: int = 7 * 24 * 3_600_000
    offsets_check_ms: int = 600_000
    metadata_max_bytes: int = 4_096
    commit_timeout_ms: int = 5_000

    @classmethod
    def of(cls, config: BrokerConfig) -> "GroupSettings":
        return cls(
            initial_rebalance_delay_ms=config.integer("group.initial.rebalance.delay.ms"),
            min_session_ms=config.integer("group.min.session.timeout.ms"),
            max_session_ms=config.integer("group.max.session.timeout.ms"),
            max_size=config.integer("group.max.size"),
            max_group_bytes=config.integer("klamm.group.max.bytes"),
            max_groups_bytes=config.integer("klamm.groups.max.bytes"),
            protocols=tuple(config.strings("group.coordinator.rebalance.protocols")),
            consumer_heartbeat_ms=config.integer("group.consumer.heartbeat.interval.ms"),
            consumer_session_ms=config.integer("group.consumer.session.timeout.ms"),
            consumer_max_size=config.integer("group.consumer.max.size"),
            assignors=tuple(config.strings("group.consumer.assignors")),
            migrations=MIGRATIONS[(config.text("group.consumer.migration.policy") or "DISABLED").upper()],
            assignment_interval_ms=config.integer("group.consumer.assignment.interval.ms"),
            regex_refresh_ms=config.integer("group.consumer.regex.refresh.interval.ms"),
            offsets_retention_ms=config.integer("offsets.retention.minutes") * 60_000,
            offsets_check_ms=config.integer("offsets.retention.check.interval.ms"),
            metadata_max_bytes=config.integer("offset.metadata.max.bytes"),
            commit_timeout_ms=config.integer("offsets.commit.timeout.ms"),
        )
