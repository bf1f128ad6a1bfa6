"""Every experiment, for real, as a person's shell runs it; and the figures behind its claims, looked at again."""

from collections.abc import Callable
from typing import Any
from zlib import crc32

import pytest
from kafka.partitioner.default import murmur2

from klamm.lab.catalogue import EXPERIMENTS
from klamm.lab.isr import LAG_SECONDS
from klamm.lab.keys import STORES
from tests.cli.running import klamm


@pytest.fixture(scope="module", params=EXPERIMENTS)
def document(request: pytest.FixtureRequest) -> Any:
    ended = klamm("lab", request.param, "--json")
    assert ended.code == 0, f"{ended.out}\n{ended.err}"
    return ended.json


def test_what_was_measured(document: Any) -> None:
    assert document["holds"] is True and all(claim["holds"] for claim in document["claims"])
    assert document["kept"] is None
    CHECKS[document["experiment"]](document["measured"])


def acks(measured: Any) -> None:
    none, one, every = measured["tallies"]
    assert [each["acks"] for each in (none, one, every)] == ["0", "1", "all"]
    assert [each["sent"] for each in (none, one, every)] == [150] * 3
    for hasty in (none, one):
        assert hasty["acknowledged"] == 150, "told to be delivered, each of them"
        assert 0 < hasty["lost"] <= 50, "what was sent while nobody copied"
        assert hasty["readable"] == 150 - hasty["lost"]
    assert every["acknowledged_before_the_leader_died"] == 100, "nobody copied, so nothing was acknowledged"
    assert (every["acknowledged"], every["readable"], every["lost"], every["doubled"]) == (150, 150, 0, 0)
    assert measured["in_sync_when_the_leader_died"] == [3, 4, 5]
    assert set(measured["next_leaders"]) <= {4, 5}


def committed(measured: Any) -> None:
    ends = [moment["log_ends"] for moment in measured["moments"]]
    assert [end["3"] for end in ends] == [5, 8, 8, 7], "written, and cut off after it came back"
    assert [end["4"] for end in ends] == [end["5"] for end in ends] == [5, 5, 7, 7]
    assert [moment["high_watermark"] for moment in measured["moments"]] == [5, 5, 7, 7]
    assert measured["seen_while_uncommitted"] == 0
    assert measured["seen_in_the_end"][5:] == ["afterwards 0", "afterwards 1"]


def isr(measured: Any) -> None:
    stopped, looks = measured["stopped"], measured["looks"]
    assert stopped != measured["leader"]
    away = [look for look in looks if stopped not in look["in_sync"]]
    assert away and stopped in looks[0]["in_sync"] and stopped in looks[-1]["in_sync"]
    assert measured["left_after_seconds"] >= LAG_SECONDS / 2
    assert measured["behind"] >= measured["acknowledged_without_it"] >= 600
    gaps = [look["log_ends"][str(measured["leader"])] - look["log_ends"][str(stopped)] for look in away]
    assert max(gaps) > 300, "and it was seen from outside"
    assert measured["sent"] == measured["acknowledged"] == measured["readable"]
    assert set(measured["log_ends"].values()) == {measured["readable"]}


def min_insync(measured: Any) -> None:
    steps = measured["steps"]
    assert [step["in_sync"] for step in steps] == [[3, 4, 5], [3, 4], [3], [3, 4]]
    assert [step["acks_all"] for step in steps] == ["ok", "ok", "NOT_ENOUGH_REPLICAS", "ok"]
    assert [step["acks_1"] for step in steps] == ["ok"] * 4
    assert [step["readable"] for step in steps] == [2, 4, 4, 7]


def failover(measured: Any) -> None:
    assert measured["killed"] == 0 == measured["last_leader"] and measured["next_leader"] in (1, 2)
    assert measured["sent"] == measured["acknowledged"] == measured["readable"] == measured["read_meanwhile"] >= 600
    assert measured["lost"] == measured["doubled"] == 0
    assert measured["next_leader"] in {look["leader"] for look in measured["looks"]}


def racks(measured: Any) -> None:
    order = [0, 3, 1, 4, 2, 5]
    replicas = [each["replicas"] for each in measured["placed"]]
    assert replicas == [[order[(p + j) % 6] for j in range(3)] for p in range(10)], "the table of S8"
    assert all(each["leader"] in (0, 1, 2) for each in measured["without_the_rack"])
    assert all(set(each["in_sync"]) <= {0, 1, 2} for each in measured["without_the_rack"])
    assert measured["returned"] == measured["placed"]
    assert (measured["acknowledged"], measured["readable"], measured["lost"]) == (300, 300, 0)


def keys(measured: Any) -> None:
    assert measured["to_a_partition"] == {str(partition): 60 for partition in range(4)}
    for keyed in measured["keyed"]:
        assert len(keyed["partitions_of_key"]) == 12 and keyed["records"] == 240
        assert all(len(partitions) == 1 for partitions in keyed["partitions_of_key"].values())
        hashed = HASHES[keyed["partitioner"]]
        assert keyed["partitions_of_key"] == {store: [hashed(store.encode()) % 4] for store in STORES}
    assert sum(measured["without_key"].values()) == 240 and all(measured["without_key"].values())


def groups(measured: Any) -> None:
    sizes = [sorted(len(share) for share in each["shares"].values()) for each in measured["rounds"]]
    assert sizes == [[2, 2], [1, 1, 1, 1], [0, 1, 1, 1, 1], [1, 1, 1, 1]]
    assert measured["killed"] not in measured["rounds"][3]["shares"]
    for each in measured["rounds"]:
        assert all(len(readers) == 1 for readers in each["readers"].values()) and len(each["readers"]) == 4
    assert measured["sent"] == measured["read_by_the_first_group"] == measured["read_by_the_second_group"] == 160


HASHES: dict[str, Callable[[bytes], int]] = {
    "murmur2": lambda key: murmur2(key) & 0x7FFFFFFF,
    "consistent": crc32,
}

CHECKS = {
    "acks": acks,
    "committed": committed,
    "isr": isr,
    "min-insync": min_insync,
    "failover": failover,
    "racks": racks,
    "keys": keys,
    "groups": groups,
}
