"""A group of member processes over one topic: who is in it, whether it has come to rest, and the reckoning."""

import itertools
import time
from collections.abc import Callable, Mapping

from confluent_kafka import ConsumerGroupState, KafkaException
from confluent_kafka.admin import AdminClient

from tests.groups.member import PYTHON, Command, Member
from tests.groups.reckoning import Reckoned, reckoned

PARTITIONS = 10


class Gathering:
    """All members of one group there ever were; those who run share the partitions."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        group: str,
        *,
        commands: Mapping[str, Command] = PYTHON,
        partitions: int = PARTITIONS,
    ) -> None:
        self.group = group
        self.topic = topic
        self.members: list[Member] = []
        self.partitions = set(range(partitions))
        self._bootstrap = bootstrap
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._commands = commands
        self._numbers = itertools.count(1)

    def __enter__(self) -> "Gathering":
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            member.discard()

    @property
    def running(self) -> list[Member]:
        return [member for member in self.members if member.runs]

    def start(self, client: str, count: int = 1, **options: object) -> list[Member]:
        """Starts members by one client library; options are those of `members/telling.py`."""
        given = {"bootstrap": self._bootstrap, "topic": self.topic, "group": self.group}
        given |= {name.replace("_", "-"): str(value) for name, value in options.items()}
        new = [Member(f"{client}-{next(self._numbers)}", self._commands[client], given) for _ in range(count)]
        self.members += new
        return new

    def wait_shared(self, among: int, within_seconds: float = 30.0) -> None:
        """Until every partition has one owner among the members who run, and so many of them own any."""
        self._wait_owned(lambda sizes: sum(1 for size in sizes if size) == among, f"among {among}", within_seconds)

    def wait_spread(self, *sizes: int, within_seconds: float = 30.0) -> None:
        """Until every partition has one owner, and the members own so many each, the smallest first."""
        self._wait_owned(lambda owned: owned == list(sizes), f"as {sizes}", within_seconds)

    def wait_joined(self, count: int, within_seconds: float = 30.0) -> None:
        """Until the coordinator knows so many members, and that all of them have what is theirs."""
        deadline = time.monotonic() + within_seconds
        while (known := self._known()) != (count, ConsumerGroupState.STABLE):
            assert time.monotonic() < deadline, f"{known} after {within_seconds:.0f} s: {self.described()}"
            time.sleep(0.1)

    def wait_handled(self, ends: Mapping[int, int], within_seconds: float = 30.0) -> None:
        """Until somebody has handled the last record of every partition, and said that it is committed."""
        deadline = time.monotonic() + within_seconds
        while any(self.committed(partition) < end for partition, end in ends.items()):
            assert time.monotonic() < deadline, f"not committed to {ends}: {self.described()}"
            time.sleep(0.05)

    def committed(self, partition: int) -> int:
        """The highest offset that any member has committed."""
        return max(
            (
                offset
                for member in self.members
                for told in member.has_told("committed")
                for number, offset in told.offsets
                if number == partition
            ),
            default=0,
        )

    def reckoned(self, ends: Mapping[int, int]) -> Reckoned:
        """All members leave, then what they told is checked."""
        for member in self.running:
            member.told_to_go()
        for member in self.members:
            if not member.has_told("killed"):
                member.gone()
        return reckoned(self.members, ends)

    def described(self) -> str:
        lines = []
        for member in self.members:
            handled = {place: told.last for told in member.has_told("handled") for place in told.partitions}
            committed = {place: offset for told in member.has_told("committed") for place, offset in told.offsets}
            turns = [told for told in member.told if told.what not in ("handled", "committed")]
            lines.append(f"{member} handled {handled} committed {committed} {turns} {member.complaints[-2000:]}")
        return "\n".join(lines)

    def _known(self) -> tuple[int, ConsumerGroupState]:
        asked = self._admin.describe_consumer_groups([self.group], request_timeout=10)[self.group]
        try:
            found = asked.result(timeout=20)
        except KafkaException:
            # There is no coordinator, or it is still reading, or it is another one: librdkafka's admin client goes on
            # to ask the one it knew.
            self._admin = AdminClient({"bootstrap.servers": self._bootstrap})
            return -1, ConsumerGroupState.UNKNOWN
        return len(found.members), found.state

    def _wait_owned(self, is_right: Callable[[list[int]], bool], what: str, within_seconds: float) -> None:
        deadline = time.monotonic() + within_seconds
        while True:
            owned = [member.owned for member in self.running]
            each_once = sorted(itertools.chain(*owned)) == sorted(self.partitions)
            if each_once and is_right(sorted(len(partitions) for partitions in owned)):
                return
            assert time.monotonic() < deadline, f"not {what} within {within_seconds:.0f} s: {self.described()}"
            time.sleep(0.05)
