"""What every client is asked to do here, whatever its own words for it are."""

from collections.abc import Sequence
from typing import Protocol

from tests.harness.workload import Received, Sent


class Driver(Protocol):
    """One client library. Consumers assign partitions; nothing here needs a group coordinator."""

    name: str

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[Sent], codec: str = "none", *, idempotent: bool = False
    ) -> list[int]:
        """Sends the records to the partitions they name, acks=all; the acknowledged offset of each."""

    def produce_unplaced(
        self, bootstrap: str, topic: str, keys_and_values: Sequence[tuple[bytes | None, bytes]], partitioner: str
    ) -> list[int]:
        """Sends records without a partition; the partition the client chose for each."""

    def consume(
        self, bootstrap: str, topic: str, partitions: Sequence[int], start: int | None = None
    ) -> dict[int, list[Received]]:
        """Reads the partitions from their earliest offset, or from `start`, to their end as it is now."""

    def offset_for_time(self, bootstrap: str, topic: str, partition: int, timestamp_ms: int) -> int | None:
        """The first offset whose timestamp is at least this one."""
