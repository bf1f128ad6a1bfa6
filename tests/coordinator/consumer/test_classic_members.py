"""Members of the classic protocol in a group of the newer one see rebalances that are over at once."""

from typing import Any

import pytest

from klamm.coordinator.groups.member_timers import REJOIN, SESSION, SYNC
from klamm.coordinator.groups.subscription import Subscription, read_assignment, subscription_bytes
from klamm.coordinator.settings import UPGRADE, GroupSettings
from klamm.coordinator.wishes import (
    BeatWish,
    CommitWish,
    Joined,
    JoinWish,
    LeaveWish,
    LeavingMember,
    LeftMember,
    OffsetToCommit,
    SyncWish,
)
from klamm.errors import ErrorCode, KafkaError
from tests.coordinator.consumer.bench import GROUP, Bench, by_name, durable

ONLY_UP = GroupSettings(migrations=(UPGRADE,))


class Classic:
    """A consumer of the classic protocol, as its requests."""

    def __init__(self, bench: Bench, member_id: str = "", instance_id: str | None = None) -> None:
        self.bench = bench
        self.member_id = member_id
        self.instance_id = instance_id
        self.generation = -1
        self.protocol = "range"

    def wish(self, *topics: str, owned: dict[str, set[int]] | None = None, **more: Any) -> JoinWish:
        told = {name: frozenset(found) for name, found in (owned or {}).items()}
        metadata = subscription_bytes(Subscription(frozenset(topics), owned=told, version=1))
        fields: dict[str, Any] = {
            "client_id": "c",
            "client_host": "/h",
            "session_timeout_ms": 30_000,
            "rebalance_timeout_ms": 60_000,
            "protocol_type": "consumer",
            "protocols": [(self.protocol, metadata)],
            **more,
        }
        return JoinWish(GROUP, self.member_id, self.instance_id, **fields)

    def join(self, *topics: str, owned: dict[str, set[int]] | None = None, **more: Any) -> Joined:
        wish = self.wish(*topics, owned=owned, **more)
        joined = self.bench.done(self.bench.group.join(wish, "ticket", self.bench.now))
        assert isinstance(joined, Joined)
        if joined.error == ErrorCode.NONE:
            self.generation = joined.generation
        self.member_id = joined.member_id
        return joined

    def sync(self, protocol: str | None = None, protocol_type: str | None = "consumer") -> dict[str, set[int]]:
        wish = SyncWish(
            GROUP, self.generation, self.member_id, self.instance_id, protocol_type, protocol or self.protocol, {}
        )
        synced = self.bench.done(self.bench.group.sync(wish, "ticket", self.bench.now))
        return {name: set(found) for name, found in read_assignment(synced.assignment).partitions.items()}

    def beat(self) -> ErrorCode:
        wish = BeatWish(GROUP, self.generation, self.member_id, self.instance_id)
        try:
            code = self.bench.done(self.bench.group.beat(wish, "ticket", self.bench.now))
        except KafkaError as error:
            return error.code
        assert isinstance(code, ErrorCode)
        return code


def code_of(call: Any, *arguments: Any, **more: Any) -> ErrorCode:
    try:
        call(*arguments, **more)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def left(bench: Bench, *members: LeavingMember) -> list[LeftMember]:
    found = bench.done(bench.group.leave(LeaveWish(GROUP, members), "ticket", bench.now))
    assert isinstance(found, list)
    return found


def mixed(settings: GroupSettings | None = None) -> tuple[Bench, Classic]:
    """A member of each protocol, and everything where it belongs."""
    bench = Bench({"a": 4}, settings)
    bench.join("new", "a")
    old = Classic(bench, "old")
    assert old.join("a").generation == 3
    assert old.sync() == {}
    kept = by_name(bench.beat("new", 2, {"a": [0, 1, 2, 3]}).assignment or {})
    assert bench.beat("new", 2, kept).member_epoch == 3
    assert old.beat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert old.join("a").generation == 3
    assert old.sync() == {"a": {0, 1, 2, 3} - kept["a"]}
    assert old.beat() == ErrorCode.NONE
    assert bench.state_name == "Stable"
    return bench, old


def test_classic_member_gets_its_share() -> None:
    bench, _ = mixed()
    assert [member.is_classic for member in bench.group.described().members] == [False, True]
    assert durable(bench.reloaded()) == durable(bench.group)


def test_waiting_for_partitions_is_no_reason_to_rejoin() -> None:
    bench = Bench({"a": 4})
    bench.join("new", "a")
    old = Classic(bench, "old")
    old.join("a")
    assert old.sync() == {}
    assert old.beat() == ErrorCode.NONE


def test_classic_member_is_told_to_rejoin_and_gives_up_what_is_not_its_own() -> None:
    bench, old = mixed()
    had = old.sync()
    bench.join("newer", "a")
    assert old.beat() == ErrorCode.REBALANCE_IN_PROGRESS
    joined = old.join("a", owned=had)
    assert joined.generation == 3, "it has something to give up first"
    kept = old.sync()
    assert len(kept["a"]) == 1
    assert old.beat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert old.join("a", owned=kept).generation == 4
    assert old.sync() == kept
    assert old.beat() == ErrorCode.NONE


def test_member_without_id_is_given_one_first() -> None:
    bench, _ = mixed()
    before = len(bench.log)
    third = Classic(bench)
    assert third.join("a", must_know_its_id=True).error == ErrorCode.MEMBER_ID_REQUIRED
    assert len(bench.log) == before
    assert third.member_id
    assert third.join("a", must_know_its_id=True).error == ErrorCode.NONE
    assert third.member_id in bench.group.state.members


def test_refusals() -> None:
    bench, old = mixed()
    stranger = Classic(bench, "stranger")
    assert stranger.beat() == ErrorCode.UNKNOWN_MEMBER_ID
    assert code_of(stranger.sync) == ErrorCode.UNKNOWN_MEMBER_ID
    new = Classic(bench, "new")
    new.generation = 3
    assert new.beat() == ErrorCode.UNKNOWN_MEMBER_ID, "it speaks the other protocol"
    assert code_of(old.sync, "roundrobin") == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert code_of(old.sync, protocol_type="connect") == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert code_of(stranger.join, "a", protocol_type="connect") == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    stranger.protocol = "mine"
    assert code_of(stranger.join, "a") == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert code_of(stranger.join, "a", protocols=[("range", b"?")]) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    old.generation = 2
    assert old.beat() == ErrorCode.ILLEGAL_GENERATION
    assert code_of(old.sync) == ErrorCode.ILLEGAL_GENERATION


def test_migration_may_be_switched_off() -> None:
    bench = Bench({"a": 1}, GroupSettings(migrations=()))
    bench.join("new", "a")
    assert code_of(Classic(bench, "old").join, "a") == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_commits_of_classic_members() -> None:
    bench, _ = mixed()

    def committed(generation: int) -> ErrorCode:
        wish = CommitWish(GROUP, generation, "old", None, [OffsetToCommit("z", 0, 1)])
        return code_of(bench.group.check_commit, wish, bench.now)

    assert committed(3) == ErrorCode.NONE
    assert committed(2) == ErrorCode.ILLEGAL_GENERATION
    assert committed(4) == ErrorCode.ILLEGAL_GENERATION


class TestTimers:
    def test_own_session(self) -> None:
        bench, _ = mixed(ONLY_UP)
        bench.pass_ms(29_999)
        bench.beat("new", 3)
        assert [(timer.kind, timer.member_id) for timer in bench.pass_ms(1)] == [(SESSION, "old")]

    def test_who_does_not_rejoin(self) -> None:
        bench, old = mixed(ONLY_UP)
        bench.join("newer", "a")
        for _ in range(3):
            assert old.beat() == ErrorCode.REBALANCE_IN_PROGRESS
            assert not [timer for timer in bench.pass_ms(19_999) if timer.member_id == "old"]
        assert old.beat() == ErrorCode.REBALANCE_IN_PROGRESS
        assert REJOIN in [timer.kind for timer in bench.pass_ms(3) if timer.member_id == "old"]
        assert old.beat() == ErrorCode.UNKNOWN_MEMBER_ID

    def test_who_does_not_sync(self) -> None:
        bench, old = mixed(ONLY_UP)
        old.join("a", rebalance_timeout_ms=5_000)
        assert [timer.kind for timer in bench.pass_ms(5_000)] == [SYNC]
        assert old.beat() == ErrorCode.UNKNOWN_MEMBER_ID

    def test_who_syncs_is_left_alone(self) -> None:
        bench, old = mixed(ONLY_UP)
        old.join("a", owned=old.sync(), rebalance_timeout_ms=5_000)
        old.sync()
        bench.pass_ms(5_000)
        assert old.beat() == ErrorCode.NONE


class TestLeaving:
    def test_classic_member_leaves(self) -> None:
        bench, _ = mixed()
        answer = left(bench, LeavingMember("old"), LeavingMember("nobody"))
        assert answer == [
            LeftMember("old", None, ErrorCode.NONE),
            LeftMember("nobody", None, ErrorCode.UNKNOWN_MEMBER_ID),
        ]
        assert sorted(bench.group.state.members) == ["new"]
        assert by_name(bench.beat("new", 3, {}).assignment or {}) == {"a": {0, 1, 2, 3}}

    def test_static_member_is_removed_by_its_instance_id(self) -> None:
        bench, _ = mixed()
        bench.join("third", "a", instance_id="i")
        answer = left(bench, LeavingMember("other", "i"), LeavingMember("", "i"), LeavingMember("", "j"))
        assert [found.error for found in answer] == [
            ErrorCode.FENCED_INSTANCE_ID,
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_MEMBER_ID,
        ]
        assert "third" not in bench.group.state.members

    def test_nobody_left_is_nothing_written(self) -> None:
        bench, _ = mixed()
        before = len(bench.log)
        left(bench, LeavingMember("nobody"))
        assert len(bench.log) == before


class TestStatic:
    def test_restarted_classic_member_takes_over_from_itself(self) -> None:
        bench = Bench({"a": 4}, ONLY_UP)
        bench.join("new", "b")
        old = Classic(bench, "", "i")
        old.join("a")
        assert old.sync() == {"a": {0, 1, 2, 3}}
        again = Classic(bench, "", "i")
        again.join("a")
        assert again.sync() == {"a": {0, 1, 2, 3}}
        assert again.member_id != old.member_id
        assert old.beat() == ErrorCode.FENCED_INSTANCE_ID
        assert code_of(old.join, "a") == ErrorCode.FENCED_INSTANCE_ID
        assert durable(bench.reloaded()) == durable(bench.group)

    @pytest.mark.parametrize("settings", [ONLY_UP, GroupSettings()])
    def test_upgraded_client_takes_over_from_its_classic_self(self, settings: GroupSettings) -> None:
        bench = Bench({"a": 4}, settings)
        bench.join("other", "b")
        old = Classic(bench, "", "i")
        old.join("a")
        old.sync()
        new = bench.join("new", "a", instance_id="i")
        assert by_name(new.assignment or {}) == {"a": {0, 1, 2, 3}}
        assert not bench.group.state.members["new"].is_classic
        assert old.beat() == ErrorCode.FENCED_INSTANCE_ID


def test_without_downgrade_classic_members_go_on_alone() -> None:
    bench, old = mixed(ONLY_UP)
    had = old.sync()
    bench.beat("new", -1)
    assert bench.group.listed().group_type == "consumer"
    assert old.beat() == ErrorCode.REBALANCE_IN_PROGRESS
    old.join("a", owned=had)
    assert old.sync() == {"a": {0, 1, 2, 3}}
    assert old.beat() == ErrorCode.NONE
    assert bench.state_name == "Stable"
