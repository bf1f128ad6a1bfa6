"""How much memory members of groups take, and how much they may.

A member says about itself whatever it likes, and stays for its session, or five minutes while it waits for the others,
also when its connection is gone. Nobody has to prove anything to join. So what members of one group say and are
assigned has a bound, and that of all groups on this broker together. Whoever wants to join beyond it hears
GROUP_MAX_SIZE_REACHED; those who are in it may go on, and say as much as they did.

Sizes are estimates: the bytes of what was said, and a fixed sum for each member and for each id that was given out.
"""

from collections.abc import Callable, Iterable, Sequence

from klamm.coordinator.settings import GroupSettings
from klamm.coordinator.wishes import JOINS, NO_MEMBER, HeartbeatWish, JoinWish
from klamm.errors import ErrorCode, KafkaError

MEMBER_BYTES = 1_536
PENDING_BYTES = 768
NAME_BYTES = 64
PARTITION_BYTES = 160


class NoRoom(KafkaError):  # noqa: N818
    """One more member would be too much."""


class GroupMemory:
    """That of one shard."""

    def __init__(self, used_by_all: Callable[[], int] | None = None) -> None:
        self._sizes: dict[str, int] = {}
        self.used_bytes: int = 0
        self._used_by_all = used_by_all or (lambda: self.used_bytes)
        self.refused = 0

    def note(self, group_id: str, size_bytes: int) -> None:
        """The group takes so much now."""
        self.used_bytes += size_bytes - self._sizes.get(group_id, 0)
        if size_bytes:
            self._sizes[group_id] = size_bytes
        else:
            self._sizes.pop(group_id, None)

    def check(self, group_id: str, more_bytes: int, settings: GroupSettings) -> None:
        """Raise if the group cannot have so much more."""
        if more_bytes <= 0:
            return
        if self._sizes.get(group_id, 0) + more_bytes > settings.max_group_bytes:
            of, setting, most = "this group", "klamm.group.max.bytes", settings.max_group_bytes
        elif self._used_by_all() + more_bytes > settings.max_groups_bytes:
            of, setting, most = "all groups of this broker", "klamm.groups.max.bytes", settings.max_groups_bytes
        else:
            return
        self.refused += 1
        reason = f"There is no room for what one more member of {of} says about itself ({setting}={most})."
        raise NoRoom(ErrorCode.GROUP_MAX_SIZE_REACHED, reason)


def bytes_of_join(wish: JoinWish) -> int:
    """What the member of a classic group takes that joins like this."""
    if wish.must_know_its_id and wish.member_id == NO_MEMBER and wish.instance_id is None:
        return PENDING_BYTES
    return bytes_of_classic(wish.client_id, wish.instance_id, wish.protocols)


def bytes_of_classic(client_id: str, instance_id: str | None, protocols: Sequence[tuple[str, bytes]]) -> int:
    said = sum(NAME_BYTES + text_bytes(name) + len(metadata) for name, metadata in protocols)
    return MEMBER_BYTES + 2 * text_bytes(client_id) + 2 * text_bytes(instance_id or "") + said


def bytes_of_heartbeat(wish: HeartbeatWish) -> int:
    """What the member takes that says this; 0 where it says nothing new."""
    if wish.member_epoch != JOINS and wish.subscribed_topic_names is None and wish.subscribed_topic_regex is None:
        return 0
    return bytes_of_consumer(
        wish.client_id, wish.instance_id, wish.subscribed_topic_names or (), wish.subscribed_topic_regex
    )


def bytes_of_consumer(client_id: str, instance_id: str | None, names: Iterable[str], regex: str | None) -> int:
    said = sum(NAME_BYTES + text_bytes(name) for name in names) + text_bytes(regex or "")
    return MEMBER_BYTES + text_bytes(client_id) + text_bytes(instance_id or "") + said


def text_bytes(text: str) -> int:
    return len(text) if text.isascii() else 4 * len(text)
