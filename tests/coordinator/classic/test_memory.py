"""What members take has a bound, for each group and for all of them, and goes when they go."""

import tracemalloc
from typing import Any

from klamm.coordinator.memory import GroupMemory
from klamm.coordinator.settings import GroupSettings
from klamm.coordinator.wishes import HeartbeatWish, JoinWish, LeavingMember
from klamm.errors import ErrorCode, KafkaError
from tests.coordinator.classic.bench import FIRST_MS, GROUP, Bench

MEBIBYTE = 1 << 20
LARGE = 30_000


def large(number: int) -> list[tuple[str, bytes]]:
    return [("range", number.to_bytes(4, "big") + bytes(LARGE - 4))]


def refusal(bench: Bench, ticket: int) -> ErrorCode | None:
    """None if it was let in, be it that it waits for the others."""
    reply = bench.replies.get(ticket)
    if isinstance(reply, KafkaError):
        # (It would keep what was asked, as long as it is kept itself.)
        reply.__traceback__ = None
    return None if bench.waits(ticket) else bench.code(ticket) or None


def check_sum(bench: Bench) -> None:
    group = bench.shard._groups.get(GROUP)
    members: Any = [] if group is None else list(group._is)  # type: ignore[attr-defined]
    pending = 0 if group is None else len(group._is.pending)  # type: ignore[attr-defined]
    assert bench.shard.memory.used_bytes == sum(each.counted_bytes for each in members) + 768 * pending


def test_ten_thousand_members_with_thirty_kilobytes_each_take_no_more_than_one_group_may() -> None:
    """They wait for one another, and their connections may be long gone."""
    bench = Bench(max_group_bytes=4 * MEBIBYTE)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        codes = [refusal(bench, bench.join(protocols=large(number))) for number in range(500)]
        assert tracemalloc.get_traced_memory()[0] - before < 6 * MEBIBYTE
    finally:
        tracemalloc.stop()
    let_in = codes.index(ErrorCode.GROUP_MAX_SIZE_REACHED)
    assert 120 < let_in < 140 and set(codes[let_in:]) == {ErrorCode.GROUP_MAX_SIZE_REACHED}
    assert bench.shard.memory.refused == 500 - let_in
    check_sum(bench)


def test_ids_that_are_given_out_are_counted_too() -> None:
    bench = Bench(max_group_bytes=MEBIBYTE // 2)
    bench.gathered(1)
    codes = [bench.replies[bench.join(must_know_its_id=True)] for _ in range(2_000)]
    refused = [each for each in codes if isinstance(each, KafkaError)]
    assert refused and {each.code for each in refused} == {ErrorCode.GROUP_MAX_SIZE_REACHED}
    assert len(codes) - len(refused) < MEBIBYTE // 2 // 768
    check_sum(bench)
    bench.pass_ms(60_000)
    check_sum(bench)


def test_who_is_in_a_full_group_may_join_again_and_who_leaves_makes_room() -> None:
    bench = Bench(max_group_bytes=100_000)
    tickets = [bench.join(protocols=large(number)) for number in range(4)]
    assert refusal(bench, tickets[3]) == ErrorCode.GROUP_MAX_SIZE_REACHED
    bench.pass_ms(3 * FIRST_MS)
    members = [bench.joined(ticket) for ticket in tickets[:3]]
    again = [bench.join(each.member_id, protocols=large(number + 7)) for number, each in enumerate(members)]
    check_sum(bench)
    bench.pass_ms(FIRST_MS)
    assert bench.joined(again[0]).generation == 2
    larger = bench.join(members[0].member_id, protocols=[("range", bytes(2 * LARGE))])
    assert bench.code(larger) == ErrorCode.GROUP_MAX_SIZE_REACHED
    bench.leave(LeavingMember(members[0].member_id, None))
    check_sum(bench)
    assert bench.waits(bench.join(protocols=large(9)))


def test_a_group_that_is_gone_takes_nothing() -> None:
    bench = Bench()
    for member in bench.gathered(3):
        bench.leave(LeavingMember(member.member_id, None))
    check_sum(bench)
    assert bench.shard.memory.used_bytes == 0
    bench.gathered(2)
    assert bench.shard.memory.used_bytes > 0
    bench.fail_over()
    check_sum(bench)


def test_all_groups_together_have_a_bound() -> None:
    bench = Bench(max_group_bytes=MEBIBYTE, max_groups_bytes=3 * MEBIBYTE)
    codes = []
    for number in range(200):
        wish = JoinWish(f"g{number % 20}", "", None, "c", "/h", 10_000, 10_000, "consumer", large(number))
        codes.append(refusal(bench, bench.ask(bench.shard.join, wish)))
    assert codes.count(None) < 3 * MEBIBYTE // LARGE
    assert bench.shard.memory.used_bytes <= 3 * MEBIBYTE


def test_a_member_of_the_consumer_protocol_is_counted_by_what_it_subscribes_to() -> None:
    bench = Bench(max_group_bytes=MEBIBYTE)
    names = [f"topic-{number:05d}" for number in range(5_000)]
    codes = []
    for number in range(10):
        wish = HeartbeatWish(GROUP, f"m{number}", 0, rebalance_timeout_ms=1_000, subscribed_topic_names=names, owned={})
        codes.append(refusal(bench, bench.ask(bench.shard.heartbeat, wish)))
    let_in = codes.count(None)
    assert 1 <= let_in <= 3 and set(codes[let_in:]) == {ErrorCode.GROUP_MAX_SIZE_REACHED}
    gone = HeartbeatWish(GROUP, "m0", -1)
    bench.ask(bench.shard.heartbeat, gone)
    assert bench.shard.memory.used_bytes < let_in * MEBIBYTE // 2


def test_what_other_shards_take_counts() -> None:
    memory = GroupMemory(lambda: 900)
    settings = GroupSettings(max_group_bytes=10_000, max_groups_bytes=1_000)
    memory.check("g", 100, settings)
    try:
        memory.check("g", 101, settings)
    except KafkaError as error:
        assert error.code == ErrorCode.GROUP_MAX_SIZE_REACHED and "klamm.groups.max.bytes=1000" in str(error.message)
    else:
        raise AssertionError("there was room")
