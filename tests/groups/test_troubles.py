"""Members that are killed, fall asleep or leave under load; what they had is taken over from where they committed."""

import time

import pytest

from tests.groups.feeder import Feeder
from tests.groups.gathering import PARTITIONS, Gathering
from tests.harness.node import Node

SESSION_SECONDS = 1.5
NEWER_SESSION_SECONDS = 3.0  # The broker's to say, in conftest.
KINDS = [
    ("confluent-kafka", "classic"),
    ("confluent-kafka", "consumer"),
    ("kafka-python", "classic"),
    ("aiokafka", "classic"),
]


@pytest.mark.parametrize(("client", "protocol"), KINDS, ids=["-".join(kind) for kind in KINDS])
def test_who_is_killed_or_sleeps_is_replaced_after_its_session_and_so_is_who_leaves(
    node: Node, ten: str, client: str, protocol: str
) -> None:
    """Members commit every half second only, so that there is something to handle twice."""
    session = SESSION_SECONDS if protocol == "classic" else NEWER_SESSION_SECONDS
    options = {"protocol": protocol, "session_ms": int(SESSION_SECONDS * 1000), "commit_every_ms": 500}
    with Gathering(node.bootstrap, ten, f"group-of-{ten}") as group, Feeder(node.bootstrap, ten, PARTITIONS) as feeder:
        group.start(client, 4, **options)
        group.wait_shared(among=4)
        group.wait_handled(dict.fromkeys(range(PARTITIONS), 5))
        killed, sleeping, leaving, staying = group.running

        killed.kill9()
        began = time.monotonic()
        group.wait_shared(among=3)
        assert time.monotonic() - began > session * 0.5

        leaving.leave()
        group.wait_shared(among=2)

        sleeping.pause()
        wait_until_all_is_of(staying, session + 30)
        time.sleep(0.5)
        sleeping.resume()
        group.wait_shared(among=2)

        group.wait_handled(feeder.stop())
        found = group.reckoned(feeder.ends)
        a_second = 1 / 0.02 * PARTITIONS
        print(f"{client} {protocol}: {found}")
        assert found.twice < 3 * a_second, "three times, what a second brings at most was not committed"


def wait_until_all_is_of(member, within_seconds: float) -> None:  # type: ignore[no-untyped-def]
    deadline = time.monotonic() + within_seconds
    while member.owned != set(range(PARTITIONS)):
        assert time.monotonic() < deadline, f"{member} does not own everything"
        time.sleep(0.05)
