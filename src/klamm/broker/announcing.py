"""Telling those who wait for records that a partition is not what it was.

Consumers hear when the watermark, the start or the leader changes. Followers hear of every record, committed or not,
but not before every producer who is ready has had their turn: a fetch that went off with one small batch is not there
for the next ones. Of the watermark alone they hear with the next records, unless consumers read from them.
"""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from klamm.broker.waiting import Waiting
from klamm.partition.partition import Partition


def announce_all(partitions: Sequence[Partition], waiting: Waiting) -> None:
    """Something about these partitions is different: tell fetches and fetch sessions of consumers that look at them."""
    waiting.changed(*partitions, *_sessions(partitions, _OF_CONSUMERS))


def announce_to_followers(partitions: Sequence[Partition], waiting: Waiting) -> None:
    """The same for followers."""
    # A follower's fetch without a session waits for the log itself.
    waiting.changed(*[partition.log for partition in partitions], *_sessions(partitions, _OF_FOLLOWERS))


def settle_for_followers(partitions: Sequence[Partition], waiting: Waiting) -> None:
    """After steps in which these partitions, which have followers, may have changed."""
    heard = []
    for partition in partitions:
        is_news, wake = partition.news_for_followers()
        if is_news and wake:
            heard.append(partition)
        elif is_news:
            # It is only remembered for their next answer.
            _sessions((partition,), _OF_FOLLOWERS)
    if heard:
        announce_to_followers(heard, waiting)


_OF_CONSUMERS = attrgetter("sessions")
_OF_FOLLOWERS = attrgetter("follower_sessions")


def _sessions(partitions: Sequence[Partition], held_by: Callable[[Partition], Any]) -> list[Any]:
    """Note in all sessions that hold these partitions that they changed; each of the sessions once, since a session may
    hold thousands, and looks at all that changed when it is woken."""
    found: dict[int, Any] = {}
    for partition in partitions:
        for session, key in held_by(partition) or ():
            session.active[key] = None
            found[id(session)] = session
    return list(found.values())
