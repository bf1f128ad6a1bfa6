"""Fetch (4-18) of the metadata log by a replica of it: part of the quorum's protocol, not of a partition's.

There is one partition and no session. The fetch tells the leader how far the replica is; it waits until there is more
to read, more is committed, or somebody else leads.
"""

from klamm.broker.answer import Answer, Changed, Later, Reply
from klamm.broker.call import Call
from klamm.handlers.quorum_messages import fetched_to_wire, quorum_fetch
from klamm.wire.messages.fetch import FetchRequest


def answer(request: FetchRequest, call: Call) -> Answer | None:
    """None if it is another fetch."""
    fetch = quorum_fetch(request, call.version)
    if fetch is None:
        return None
    quorum, version = call.broker.quorum, call.version
    # What it tells may be what was missing for a majority.
    call.broker.quorum_touched = True
    reply = quorum.fetch(fetch, call.now)
    if reply is not None:
        return Reply(fetched_to_wire(reply, version))
    return Later(
        until=Changed([quorum], lambda: quorum.has_news(fetch)),
        deadline_ms=call.now.monotonic_ms + fetch.max_wait_ms,
        then=lambda now, in_time: fetched_to_wire(quorum.fetched(fetch), version),
    )
