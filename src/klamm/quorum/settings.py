"""The quorum's settings as numbers."""

from typing import NamedTuple

from klamm.config import BrokerConfig


class QuorumSettings(NamedTuple):
    election_timeout_ms: int
    backoff_max_ms: int
    fetch_timeout_ms: int
    request_timeout_ms: int
    retry_ms: int
    fetch_bytes: int
    snapshot_fetch_bytes: int
    snapshot_after_bytes: int
    snapshot_after_ms: int
    retention_bytes: int
    retention_ms: int

    @classmethod
    def of(cls, config: BrokerConfig) -> "QuorumSettings":
        return cls(
            election_timeout_ms=max(config.integer("controller.quorum.election.timeout.ms"), 1),
            backoff_max_ms=max(config.integer("controller.quorum.election.backoff.max.ms"), 1),
            fetch_timeout_ms=max(config.integer("controller.quorum.fetch.timeout.ms"), 1),
            request_timeout_ms=max(config.integer("controller.quorum.request.timeout.ms"), 1),
            retry_ms=max(config.integer("controller.quorum.retry.backoff.ms"), 1),
            fetch_bytes=config.integer("controller.quorum.fetch.max.bytes"),
            snapshot_fetch_bytes=config.integer("controller.quorum.fetch.snapshot.max.bytes"),
            snapshot_after_bytes=config.integer("metadata.log.max.record.bytes.between.snapshots"),
            snapshot_after_ms=config.integer("metadata.log.max.snapshot.interval.ms"),
            retention_bytes=config.integer("metadata.max.retention.bytes"),
            retention_ms=config.integer("metadata.max.retention.ms"),
        )

    @property
    def fetch_wait_ms(self) -> int:
        """How long a fetch may wait for news. The leader is silent for so long when nothing happens."""
        return max(self.fetch_timeout_ms // 2, 1)

    @property
    def patience_ms(self) -> float:
        """How long a leader believes in followers that do not fetch."""
        return self.fetch_timeout_ms * 1.5
