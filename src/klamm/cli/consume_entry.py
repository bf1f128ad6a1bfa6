"""Why a group has not let `klamm consume --group` in yet: its coordinator is asked, once, and what it says is said.

There may be no coordinator yet, or one that still reads its log; the group may be new, or have members of before that
count until their session is over.
"""

from klamm.cli.group_asking import FIND_COORDINATOR, Cluster, Refused, name_of
from klamm.cli.group_seen import groups_seen
from klamm.cli.saying import counted
from klamm.errors import ErrorCode
from klamm.local.asking import NoAnswer
from klamm.wire.messages.find_coordinator import FindCoordinatorRequest

SESSION = "one that left without a goodbye counts until its session ends, 45 s unless it asked for another time"


def entry_obstacle(cluster: Cluster, group: str, own_id: str) -> str:
    """In words. `own_id` is our id as a member, if we have one already: we do not wait for ourselves."""
    try:
        request = FindCoordinatorRequest(coordinator_keys=[group])
        (found,) = cluster.ask_anyone(FIND_COORDINATOR, 4, request).coordinators
        if found.error_code:
            return f"no broker coordinates it yet ({name_of(found.error_code)})"
        coordinator = f"its coordinator, broker {found.node_id} ({found.host}:{found.port}),"
        seen = groups_seen(cluster, [group])[group]
    except NoAnswer as problem:
        return f"no broker answers: {problem}"
    except Refused as problem:
        if ErrorCode.COORDINATOR_LOAD_IN_PROGRESS.name in str(problem):
            return f"{coordinator} is still reading its log"
        return str(problem)
    others = [] if seen is None else [member for member in seen.members if member.member_id != own_id]
    if not others:
        return f"{coordinator} has no other members of it, and waits a moment for more to come"
    return f"{coordinator} waits for {counted(len(others), 'other member')}; {SESSION}"
