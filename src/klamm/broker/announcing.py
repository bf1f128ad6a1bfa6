"""Telling those who wait for records that a partition is not what it was.

Consumers hear when the watermark, the start or the leader changes. Followers hear of every record, committed or not,
but not before every producer who is ready has had their turn: a fetch that went off with one small batch is not there
for the next ones. Of the watermark alone they hear with the next records, unless consumers read from them.
"""

from klamm.broker.waiting import Waiting
from klamm.partition.partition import Partition


def announce(partition: Partition, waiting: Waiting) -> None:
    """Something about this partition is different: tell fetches and fetch sessions of consumers that look at it."""
    waiting.changed(partition)
    if partition.sessions:
        for session, key in tuple(partition.sessions):
            session.active[key] = None
            waiting.changed(session)


def announce_to_followers(partition: Partition, waiting: Waiting, *, wake: bool = True) -> None:
    """The same for followers. Without `wake` it is only remembered for their next answer."""
    if wake:
        # A follower's fetch without a session waits for the log itself.
        waiting.changed(partition.log)
    if partition.follower_sessions:
        for session, key in tuple(partition.follower_sessions):
            session.active[key] = None
            if wake:
                waiting.changed(session)


def settle_for_followers(partition: Partition, waiting: Waiting) -> None:
    """After steps in which this partition, which has followers, may have changed."""
    is_news, wake = partition.news_for_followers()
    if is_news:
        announce_to_followers(partition, waiting, wake=wake)
