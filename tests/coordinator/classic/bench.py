"""A shard with a log and a clock that are ours. What is decided is written and replayed, unless we say otherwise.

A ticket is a number. It is answered once, or it waits: the bench says so at every answer. When an append fails every
ticket of that verdict hears so and nothing is replayed, as the broker does it.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from klamm.coordinator.records import GroupRecord, decoded, encoded
from klamm.coordinator.settings import GroupSettings
from klamm.coordinator.shard import Shard
from klamm.coordinator.wishes import (
    BeatWish,
    CommitWish,
    DescribedClassicGroup,
    Joined,
    JoinWish,
    LeaveWish,
    LeavingMember,
    OffsetsWish,
    OffsetToCommit,
    Synced,
    SyncWish,
    Verdict,
)
from klamm.errors import ErrorCode, KafkaError
from klamm.ids import Now
from tests.coordinator.consumer.bench import WALL_MS, image_of

GROUP = "readers"
SESSION_MS = 10_000
REBALANCE_MS = 60_000
FIRST_MS = 3_000
"""What an empty group waits for more members, by default."""
RANGE = (("range", b"r"),)
TOPICS = {"orders": 4, "clicks": 2}


class Bench:
    def __init__(self, seed: int = 0, **settings: Any) -> None:
        self.passed_ms = 0.0
        self.settings = GroupSettings(**settings)
        self.random = Random(seed)
        self.image = image_of(TOPICS)
        self.log: list[GroupRecord] = []
        self.append_fails = False
        self.replies: dict[int, Any] = {}
        self.tickets = 0
        self.term = 0
        """How often another broker took over."""
        self.terms: dict[int, int] = {}
        """In which term a ticket was answered."""
        self.shard = self.new_shard()
        self.shard.begin(self.image, self.now)

    @property
    def now(self) -> Now:
        return Now(self.passed_ms, WALL_MS + int(self.passed_ms))

    def new_shard(self) -> Shard:
        return Shard(self.settings, self.random, self.image)

    # Carrying out.

    def ask(self, decide: Any, wish: Any) -> int:
        ticket = self.tickets
        self.tickets += 1
        try:
            verdict = decide(wish, ticket, self.now)
        except KafkaError as error:
            self.give(ticket, error)
        else:
            self.carry_out(verdict)
        return ticket

    def carry_out_records(self, *records: GroupRecord) -> None:
        """As if somebody had decided so."""
        self.carry_out(Verdict([], list(records)))

    def carry_out(self, verdict: Verdict) -> None:
        if verdict.records and self.append_fails:
            for ticket, _ in verdict.response:
                self.give(ticket, KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return
        for record in verdict.records:
            back = decoded(*encoded(record))
            assert back == record, "the log keeps it all"
            self.log.append(back)
            self.shard.replay(back)
        assert self.shard.settle(self.now) is None, "nothing changes its kind here"
        for ticket, reply in verdict.response:
            self.give(ticket, reply)

    def give(self, ticket: object, reply: object) -> None:
        assert isinstance(ticket, int) and ticket < self.tickets
        assert ticket not in self.replies, f"ticket {ticket} heard {self.replies[ticket]} and now {reply}"
        self.replies[ticket] = reply
        self.terms[ticket] = self.term

    def check_parked(self) -> None:
        """Who has no answer waits in a group, and who waits has no answer."""
        waiting = self.shard.everybody_waiting()
        assert sorted(waiting) == [each for each in range(self.tickets) if each not in self.replies]  # type: ignore[type-var]

    def pass_ms(self, passed_ms: float) -> None:
        until_ms = self.passed_ms + passed_ms
        for _ in range(100_000):
            due_ms = self.shard.next_due_ms
            if due_ms is None or due_ms > until_ms:
                self.passed_ms = until_ms
                return
            self.passed_ms = max(self.passed_ms, due_ms)
            self.tick()
        raise AssertionError("the clock does not get on")

    def tick(self) -> None:
        """As the broker does it: everything that is due now."""
        for _ in range(1_000):
            verdict = self.shard.tick(self.now)
            if verdict is None:
                return
            self.carry_out(verdict)
        raise AssertionError("there is always something due")

    def fail_over(self) -> None:
        """Another broker takes over: who waits is sent there, and it knows what the log says."""
        for ticket in self.shard.everybody_waiting():
            self.give(ticket, KafkaError(ErrorCode.NOT_COORDINATOR))
        self.shard = self.replayed()
        self.shard.begin(self.image, self.now)
        self.term += 1

    def replayed(self) -> Shard:
        shard = self.new_shard()
        for record in self.log:
            shard.replay(record)
        return shard

    # Asking.

    def join(
        self,
        member_id: str = "",
        instance_id: str | None = None,
        protocols: Sequence[tuple[str, bytes]] = RANGE,
        protocol_type: str = "consumer",
        **more: Any,
    ) -> int:
        """Versions below 4, unless said otherwise: whoever joins is in."""
        wish = JoinWish(
            GROUP,
            member_id,
            instance_id,
            "client",
            "/127.0.0.1",
            more.pop("session_ms", SESSION_MS),
            more.pop("rebalance_ms", REBALANCE_MS),
            protocol_type,
            protocols,
            **more,
        )
        return self.ask(lambda wish, ticket, now: self.shard.join(wish, ticket, now), wish)

    def sync(
        self,
        joined: Joined,
        assignments: Mapping[str, bytes] | None = None,
        instance_id: str | None = None,
        generation: int | None = None,
        protocol: tuple[str | None, str | None] = (None, None),
    ) -> int:
        generation = joined.generation if generation is None else generation
        wish = SyncWish(GROUP, generation, joined.member_id, instance_id, *protocol, assignments or {})
        return self.ask(lambda wish, ticket, now: self.shard.sync(wish, ticket, now), wish)

    def beat(self, member_id: str, generation: int, instance_id: str | None = None) -> ErrorCode:
        wish = BeatWish(GROUP, generation, member_id, instance_id)
        return self.code(self.ask(lambda wish, ticket, now: self.shard.beat(wish, ticket, now), wish))

    def leave(self, *members: LeavingMember) -> list[ErrorCode]:
        wish = LeaveWish(GROUP, members)
        reply = self.replies[self.ask(lambda wish, ticket, now: self.shard.leave(wish, ticket, now), wish)]
        if isinstance(reply, KafkaError):
            return [reply.code] * len(members)
        assert [each[:2] for each in reply] == list(members)
        return [each.error for each in reply]

    def commit(
        self, *offsets: OffsetToCommit, member_id: str = "", generation: int = -1, **more: Any
    ) -> list[ErrorCode] | ErrorCode:
        instance_id = more.pop("instance_id", None)
        offsets = offsets or (OffsetToCommit("orders", 0, 7),)
        wish = CommitWish(more.pop("group_id", GROUP), generation, member_id, instance_id, offsets, **more)
        reply = self.replies[self.ask(lambda wish, ticket, now: self.shard.commit(wish, ticket, now), wish)]
        return reply.code if isinstance(reply, KafkaError) else reply

    def offsets(self, group_id: str = GROUP, partitions: Sequence[tuple[str, int]] | None = None) -> Any:
        wish = OffsetsWish(group_id, partitions=partitions)
        return self.replies[self.ask(lambda wish, ticket, now: self.shard.offsets(wish, ticket, now), wish)]

    # What was answered.

    def waits(self, ticket: int) -> bool:
        return ticket not in self.replies

    def code(self, ticket: int) -> ErrorCode:
        reply = self.replies[ticket]
        if isinstance(reply, KafkaError | ErrorCode):
            return reply.code if isinstance(reply, KafkaError) else reply
        return reply.error if isinstance(reply, Joined) else ErrorCode.NONE

    def joined(self, ticket: int) -> Joined:
        reply = self.replies[ticket]
        assert isinstance(reply, Joined) and not reply.error, reply
        return reply

    def assignment(self, ticket: int) -> bytes:
        reply = self.replies[ticket]
        assert isinstance(reply, Synced), reply
        return reply.assignment

    def described(self, shard: Shard | None = None) -> DescribedClassicGroup:
        verdict = (shard or self.shard).describe_classic(GROUP, "ticket", self.now)
        [(_, reply)] = verdict.response
        assert isinstance(reply, DescribedClassicGroup)
        return reply

    @property
    def state(self) -> str:
        return self.described().state

    # Groups that are somewhere already.

    def joined_after(self, *members: Joined) -> int:
        """The generation that begins when these join again."""
        tickets = [self.join(member.member_id) for member in members]
        [generation] = {self.joined(ticket).generation for ticket in tickets}
        return generation

    def gathered(self, count: int = 2, instances: bool = False, **more: Any) -> list[Joined]:
        """A new generation of so many members; the first of them leads. Nobody has synced."""
        names = [f"machine-{number}" if instances else None for number in range(count)]
        tickets = [self.join(instance_id=name, **more) for name in names]
        self.pass_ms(3 * FIRST_MS)
        return [self.joined(ticket) for ticket in tickets]

    def stable(self, count: int = 2, instances: bool = False, **more: Any) -> list[Joined]:
        members = self.gathered(count, instances, **more)
        for member in reversed(members):
            self.sync(member, {each.member_id: b"to %d" % place for place, each in enumerate(members)})
        assert self.state == "Stable"
        return members
