"""One shard: groups come into being and go, their offsets expire, and the log alone says which there are."""

from typing import Any

import pytest

from klamm.coordinator.records import (
    ClassicMemberValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    GroupRecord,
    OffsetCommitKey,
)
from klamm.coordinator.wishes import LeavingMember, ListedGroup, OffsetDeletionWish, OffsetsWish, OffsetToCommit
from klamm.errors import ErrorCode, KafkaError
from tests.coordinator.classic.bench import FIRST_MS, GROUP, SESSION_MS, Bench
from tests.coordinator.consumer.bench import image_of

HOUR_MS = 3_600_000
SUBSCRIBED = b"\0\0\0\0\0\1\0\6orders\xff\xff\xff\xff"
"""What a consumer says that reads the topic `orders`."""


def deleted(bench: Bench, group_id: str = GROUP) -> ErrorCode:
    return bench.code(bench.ask(lambda wish, ticket, now: bench.shard.delete(wish, ticket, now), group_id))


def offsets_deleted(bench: Bench, *places: tuple[str, int]) -> Any:
    wish = OffsetDeletionWish(GROUP, places)
    reply = bench.replies[bench.ask(lambda wish, ticket, now: bench.shard.delete_offsets(wish, ticket, now), wish)]
    return reply.code if isinstance(reply, KafkaError) else reply


def listed(bench: Bench) -> list[ListedGroup]:
    [(_, reply)] = bench.shard.listed("ticket", bench.now).response
    assert isinstance(reply, list)
    return reply


def test_a_group_comes_into_being_with_its_first_offset() -> None:
    bench = Bench()
    assert listed(bench) == []
    bench.commit()
    assert listed(bench) == [ListedGroup(GROUP, "", "Empty", "classic")]
    bench.fail_over()
    assert listed(bench) == [ListedGroup(GROUP, "", "Empty", "classic")]


def test_a_group_does_not_come_into_being_by_somebody_it_does_not_know() -> None:
    bench = Bench()
    assert bench.code(bench.join("made-up")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert listed(bench) == []


def test_a_group_written_before_there_were_two_timeouts_has_one_for_both() -> None:
    bench = Bench()
    member = ClassicMemberValue("m", None, "c", "/h", 0, SESSION_MS, b"r", b"all")
    value = GroupMetadataValue("consumer", 3, "range", "m", -1, [member])
    bench.log.append(GroupRecord(GroupMetadataKey(GROUP), value))
    bench.fail_over()
    newcomer = bench.join(rebalance_ms=0)
    bench.pass_ms(1)
    assert bench.waits(newcomer), "the member has time to join"


def test_deleting_a_group_takes_its_offsets_and_leaves_tombstones() -> None:
    bench = Bench()
    assert deleted(bench) == ErrorCode.GROUP_ID_NOT_FOUND
    [member] = bench.stable(1)
    bench.commit(member_id=member.member_id, generation=1)
    assert deleted(bench) == ErrorCode.NON_EMPTY_GROUP
    bench.leave(LeavingMember(member.member_id))
    assert deleted(bench) == ErrorCode.NONE
    assert bench.log[-2:] == [
        GroupRecord(OffsetCommitKey(GROUP, "orders", 0), None),
        GroupRecord(GroupMetadataKey(GROUP), None),
    ]
    for _ in range(2):
        assert deleted(bench) == ErrorCode.GROUP_ID_NOT_FOUND and bench.offsets() == {}
        bench.fail_over()


def test_a_group_that_somebody_is_about_to_join_is_not_deleted_from_under_it() -> None:
    bench = Bench()
    given = bench.replies[bench.join(must_know_its_id=True)]
    assert deleted(bench) == ErrorCode.NON_EMPTY_GROUP
    ticket = bench.join(given.member_id)
    bench.pass_ms(FIRST_MS)
    assert bench.joined(ticket).generation == 1


def test_offsets_of_topics_that_are_read_stay() -> None:
    bench = Bench()
    assert offsets_deleted(bench, ("orders", 0)) == ErrorCode.GROUP_ID_NOT_FOUND
    [member] = bench.stable(1, protocols=[("range", SUBSCRIBED)])
    both = [OffsetToCommit("orders", 0, 1), OffsetToCommit("clicks", 0, 2)]
    bench.commit(*both, member_id=member.member_id, generation=1)
    codes = [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE, ErrorCode.NONE]
    assert offsets_deleted(bench, ("orders", 0), ("clicks", 0), ("clicks", 1)) == codes
    assert set(bench.offsets()) == {("orders", 0)}
    bench.leave(LeavingMember(member.member_id))
    assert offsets_deleted(bench, ("orders", 0)) == [ErrorCode.NONE] and bench.offsets() == {}


@pytest.mark.parametrize("metadata", [b"", b"something new"])
def test_where_nobody_can_tell_what_is_read_all_of_it_may_be(metadata: bytes) -> None:
    bench = Bench()
    bench.stable(1, protocols=[("range", metadata)])
    assert offsets_deleted(bench, ("orders", 0)) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]


def test_groups_of_other_kinds_keep_all_while_they_have_members() -> None:
    bench = Bench()
    [member] = bench.stable(1, protocol_type="connect")
    assert offsets_deleted(bench, ("orders", 0)) == ErrorCode.NON_EMPTY_GROUP
    bench.leave(LeavingMember(member.member_id))
    assert offsets_deleted(bench, ("orders", 0)) == [ErrorCode.NONE]


def test_an_unknown_group_has_no_offsets_whoever_asks() -> None:
    bench = Bench()
    for wish in (OffsetsWish("nobody"), OffsetsWish("nobody", "member", 5)):
        ticket = bench.ask(lambda wish, ticket, now: bench.shard.offsets(wish, ticket, now), wish)
        assert bench.replies[ticket] == {}


def test_offsets_of_who_assigns_to_itself_grow_old_from_the_commit_on() -> None:
    bench = Bench(offsets_retention_ms=HOUR_MS, offsets_check_ms=1_000)
    bench.commit(OffsetToCommit("orders", 0, 1))
    bench.pass_ms(HOUR_MS / 2)
    bench.commit(OffsetToCommit("orders", 1, 1))
    bench.pass_ms(HOUR_MS / 2)
    assert set(bench.offsets()) == {("orders", 1)} and len(listed(bench)) == 1
    bench.pass_ms(HOUR_MS / 2)
    assert bench.offsets() == {} and listed(bench) == []
    assert bench.log[-1] == GroupRecord(GroupMetadataKey(GROUP), None)


def test_offsets_of_a_group_grow_old_from_when_it_is_empty() -> None:
    bench = Bench(offsets_retention_ms=HOUR_MS, offsets_check_ms=1_000)
    [member] = bench.stable(1, protocols=[("range", SUBSCRIBED)], session_ms=1_800_000)
    both = [OffsetToCommit("orders", 0, 1), OffsetToCommit("clicks", 0, 2)]
    bench.commit(*both, member_id=member.member_id, generation=1)
    for _ in range(3):
        bench.pass_ms(HOUR_MS / 2 - 1)
        assert bench.beat(member.member_id, 1) == ErrorCode.NONE
    assert set(bench.offsets()) == {("orders", 0)}, "the other topic is not read"
    bench.leave(LeavingMember(member.member_id))
    bench.pass_ms(HOUR_MS - 1_000)
    assert set(bench.offsets()) == {("orders", 0)}
    bench.fail_over()
    bench.pass_ms(2_000)
    assert bench.offsets() == {} and listed(bench) == []


def test_a_great_many_expire_little_by_little() -> None:
    bench = Bench(offsets_retention_ms=HOUR_MS, offsets_check_ms=HOUR_MS)
    for number in range(2_500):
        bench.commit(group_id=f"group-{number}")
    before = len(bench.log)
    bench.pass_ms(HOUR_MS)
    assert 1_000 <= len(bench.log) - before <= 1_001
    for _ in range(10):
        bench.pass_ms(20)
    assert listed(bench) == []


def test_topics_that_are_gone_take_their_offsets_with_them() -> None:
    bench = Bench()
    bench.commit(OffsetToCommit("orders", 0, 1), OffsetToCommit("clicks", 1, 2))
    bench.carry_out(bench.shard.follow(image_of({"clicks": 2}), ["orders"], bench.now))
    assert set(bench.offsets()) == {("clicks", 1)}
    assert bench.log[-1] == GroupRecord(OffsetCommitKey(GROUP, "orders", 0), None)
    bench.carry_out(bench.shard.follow(image_of({"clicks": 2, "new": 1}), [], bench.now))
    assert set(bench.offsets()) == {("clicks", 1)}


def test_an_empty_group_of_the_newer_protocol_gives_way_to_a_classic_one() -> None:
    bench = Bench()
    bench.carry_out_records(GroupRecord(ConsumerGroupMetadataKey(GROUP), ConsumerGroupMetadataValue(5)))
    assert listed(bench)[0].group_type == "consumer"
    bench.commit()
    ticket = bench.join()
    assert GroupRecord(ConsumerGroupMetadataKey(GROUP), None) in bench.log
    bench.pass_ms(FIRST_MS)
    bench.sync(bench.joined(ticket))
    assert listed(bench) == [ListedGroup(GROUP, "consumer", "Stable", "classic")]
    assert set(bench.offsets()) == {("orders", 0)}
    bench.fail_over()
    assert listed(bench) == [ListedGroup(GROUP, "consumer", "Stable", "classic")]


def test_only_classic_groups_are_described_as_such() -> None:
    bench = Bench()
    with pytest.raises(KafkaError, match="not found"):
        bench.described()
    bench.carry_out_records(GroupRecord(ConsumerGroupMetadataKey(GROUP), ConsumerGroupMetadataValue(5)))
    with pytest.raises(KafkaError, match="not a classic group"):
        bench.described()


def test_a_described_group_shows_what_is_agreed_once_it_is() -> None:
    bench = Bench()
    bench.gathered(1)
    [member] = bench.described().members
    assert (bench.described().protocol, member.metadata, member.assignment) == ("", b"", b"")
    bench.pass_ms(SESSION_MS)
    assert bench.described().members == []
    bench.stable(1)
    [member] = bench.described().members
    assert (bench.described().protocol, member.metadata, member.assignment) == ("range", b"r", b"to 0")
    assert (member.client_id, member.client_host) == ("client", "/127.0.0.1")


def test_a_timer_of_a_group_that_is_gone_rings_in_vain() -> None:
    bench = Bench()
    bench.join(must_know_its_id=True)
    del bench.shard._groups[GROUP]
    before = len(bench.log)
    bench.pass_ms(SESSION_MS)
    assert len(bench.log) == before
