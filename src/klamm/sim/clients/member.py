"""A member of a group, whatever its protocol: it reads what it owns, and writes down how far it has come.

It looks for its coordinator, over and over; begins where the group has committed, or at the beginning; and commits its
positions every now and then. A position only moves over records that it has handled. How it comes to own partitions is
told by `member_classic.py` and `member_consumer.py`. It knows nothing of other members, nor of its own earlier lives.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from klamm.errors import ErrorCode
from klamm.ids import NO_BROKER, BrokerId, Offset, Uuid
from klamm.sim.clients.client import REQUEST_MS, Desk, Then
from klamm.sim.clients.consumer import Consumer, ConsumerSettings, Place
from klamm.sim.clients.group_history import Commit, GroupHistory, Reading, Spot, Standing
from klamm.sim.clients.group_requests import (
    OFFSET_COMMIT,
    OFFSET_FETCH,
    commit_errors,
    commit_request,
    coordinator_of,
    find_request,
    offset_request,
    offsets_of,
)
from klamm.sim.clients.history import History
from klamm.sim.promise import broken
from klamm.wire.apis import FIND_COORDINATOR

LOST_COORDINATOR = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
WAIT = frozenset({LOADING, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.UNSTABLE_OFFSET_COMMIT})
"""Later it may go well with the same coordinator."""
FENCED = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
    }
)
"""Whoever hears this does not own what it thinks."""
REFUSED = FENCED | {
    ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
}
"""What was asked for has certainly not happened. (Of other errors nobody knows: it may have been written.)"""
PATIENCE = 100
"""So often it asks again who leads, before it believes that what was committed is beyond the end of a log."""
BACKWARDS = 0.03
"""So often a commit asks for an earlier offset than it could."""


class Versions(NamedTuple):
    """What a client of some age speaks."""

    find: int
    join: int
    sync: int
    heartbeat: int
    leave: int
    commit: int
    offsets: int


@dataclass(frozen=True, slots=True)
class MemberSettings:
    group: str
    topic: str
    versions: Versions
    session_ms: int
    rebalance_ms: int
    beat_ms: int
    instance_id: str | None
    life: int
    """The how-manieth that sits on this seat of the group."""


class Member(Consumer):
    is_classic: bool

    def __init__(self, desk: Desk, settings: MemberSettings, history: History, groups: GroupHistory) -> None:
        super().__init__(desk, ConsumerSettings((settings.topic,), version=13, has_session=True), history)
        self.chance = desk.world.chance(f"{desk.name} {settings.life}")
        self.member = settings
        who = f"{desk.name}/{settings.life}"
        self.standing = Standing(
            who, settings.group, settings.instance_id, settings.session_ms, settings.rebalance_ms, self.is_classic
        )
        self.owned: dict[int, Place | None] = {}
        """What it owns, and where it stands there as soon as it knows."""
        self.coordinator: BrokerId = NO_BROKER
        self.member_id = ""
        self.epoch = -1
        self.turn = 0
        """Grows whenever answers to what was asked before do not matter any more."""
        self.is_leaving = False
        self.on_end: Callable[[], None] = lambda: None
        """Called if it ends by itself."""
        self.groups = groups
        self._is_finding = False
        self._beats = 0
        self._commits_no_more = False
        self.commits_under_way = 0
        self._commits = 0
        self._beyond: dict[int, int] = {}
        """How often it was told that it begins beyond the end."""
        self._committed: dict[int, Offset] = {}
        """What it has asked to be committed last."""

    def begin(self) -> None:
        super().begin()
        self.find_coordinator()
        self._commit_now_and_then()

    def leave(self) -> None:
        """Say goodbye, and end."""
        raise NotImplementedError

    def found_coordinator(self) -> None:
        raise NotImplementedError

    def was_fenced(self, code: ErrorCode) -> None:
        """A commit was answered with this: it is no member, or under another epoch."""
        raise NotImplementedError

    @property
    def is_settled(self) -> bool:
        return all(place is not None for place in self.owned.values())

    def tell(self, what: str) -> None:
        self.world.tell(f"{self.standing.who}: {what}")

    # The coordinator.

    def find_coordinator(self) -> None:
        if self._is_finding:
            return
        self._is_finding = True
        version = self.member.versions.find
        self.ask(self.any_broker(), FIND_COORDINATOR, version, find_request(version, self.member.group), self._found)

    def _found(self, answer: Any) -> None:
        self._is_finding = False
        broker = NO_BROKER if answer is None else coordinator_of(self.member.versions.find, answer)
        if broker not in self.brokers:
            self.later(self.chance.uniform(50.0, 200.0), self.find_coordinator)
        elif not self.is_leaving:
            self.coordinator = broker
            self.found_coordinator()

    def ask_coordinator(
        self, api: int, version: int, request: object, then: Then, within_ms: float = REQUEST_MS
    ) -> None:
        """`then` is not called any more once the turn has ended."""
        broker, turn = self.coordinator, self.turn
        assert broker != NO_BROKER

        def heard(answer: Any) -> None:
            if answer is None:
                self.lost_coordinator(broker)
            if turn == self.turn:
                then(answer)

        self.ask(broker, api, version, request, heard, within_ms, apart=True)

    def lost_coordinator(self, broker: BrokerId) -> None:
        if self.coordinator == broker:
            self.coordinator = NO_BROKER
            self.later(self.chance.uniform(20.0, 120.0), self.find_coordinator)

    def beat_later(self, delay_ms: float, beat: Callable[[], None]) -> None:
        """There is one alarm: what it was set to before does not count."""
        self._beats += 1
        number, turn = self._beats, self.turn
        self.later(delay_ms, lambda: beat() if (number, turn) == (self._beats, self.turn) else None)

    def is_of_coordinator(self, code: ErrorCode) -> bool:
        """Whether an error is not about the member, but about whom it asked. What is to be done again is up to who
        asked."""
        self.groups.reached["coordinator was loading"] += code is LOADING
        if code in LOST_COORDINATOR:
            self.lost_coordinator(self.coordinator)
        return code in LOST_COORDINATOR or code in WAIT

    def is_strange(self, code: ErrorCode, to: str) -> None:
        broken("I29", f"{self.standing.who} is answered {code.name} to {to}")

    # What it owns.

    def spot(self, index: int) -> Spot:
        return self.member.group, self.member.topic, index

    def spots(self, indexes: Iterable[int]) -> list[Spot]:
        return [self.spot(index) for index in sorted(indexes)]

    def own(self, indexes: Iterable[int]) -> None:
        """These as well, from where the group has committed on."""
        for index in sorted(indexes):
            self.owned.setdefault(index, None)
        self._find_positions()

    def disown(self, indexes: Iterable[int]) -> None:
        for index in list(indexes):
            self.owned.pop(index, None)
            self._committed.pop(index, None)
        self.places = self._wanted_places()

    def _wanted_places(self) -> dict[tuple[Uuid, int], Place]:
        return {place.key: place for place in self.owned.values() if place is not None}

    def _saw(self, place: Place, offset: Offset, value: bytes) -> None:
        super()._saw(place, offset, value)
        self.groups.on_handled(self.standing, place.key, offset)

    def _take(self, place: Place, part: Any) -> bool:
        if part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and place.epoch < 0:
            # It has not read anything here, so it cannot tell a former leader from one that has lost records.
            self._beyond[place.index] = self._beyond.get(place.index, 0) + 1
            if self._beyond[place.index] < PATIENCE:
                return False
        goes_on = super()._take(place, part)
        if not goes_on:
            # Its session knows an old epoch of the leader, perhaps: it is named anew.
            for talk in self._talks.values():
                talk.named.pop(place.key, None)
        return goes_on

    def _find_positions(self) -> None:
        missing = sorted(index for index, place in self.owned.items() if place is None)
        known = self.topics.get(self.member.topic)
        if not missing:
            return
        if self.coordinator == NO_BROKER or known is None or any(index not in known.partitions for index in missing):
            self._refresh()
            self._find_positions_later()
            return
        settings, asked_ms, broker = self.member, self.world.now_ms, self.coordinator
        request = offset_request(
            settings.versions.offsets, settings.group, (settings.topic, known.topic_id), missing, self.membership
        )
        was_behind = self.groups.is_behind(broker, settings.group)
        then = partial(self._heard_positions, missing, known.topic_id, asked_ms, was_behind)
        self.ask_coordinator(OFFSET_FETCH, settings.versions.offsets, request, then)

    def _find_positions_later(self) -> None:
        turn = self.turn
        self.later(self.chance.uniform(50.0, 150.0), lambda: self._find_positions() if turn == self.turn else None)

    @property
    def membership(self) -> tuple[str, int] | None:
        """What is told when offsets are asked for, if anything."""
        return None

    def _heard_positions(
        self, asked: list[int], topic_id: Uuid, asked_ms: float, was_behind: bool, answer: Any
    ) -> None:
        version = self.member.versions.offsets
        code, offsets = (ErrorCode.NONE, {}) if answer is None else offsets_of(version, answer)
        if code is not ErrorCode.NONE and not self.is_of_coordinator(code) and code not in REFUSED:
            self.is_strange(code, "OffsetFetch")
        if not offsets or code is not ErrorCode.NONE:
            self._find_positions_later()
            return
        for index in asked:
            offset, name = offsets[index]
            reading = Reading(self.standing.who, self.spot(index), offset, name, asked_ms, was_behind)
            self.groups.was_read(reading, self.world.now_ms)
            if index in self.owned and self.owned[index] is None:
                self._start(index, topic_id, offset)
        self._find_positions()
        self._refresh()

    def _start(self, index: int, topic_id: Uuid, offset: Offset) -> None:
        place = self.owned[index] = Place(self.member.topic, topic_id, index)
        place.offset = max(offset, 0)
        self._committed[index] = place.offset
        self.groups.on_start(self.standing, place.key, place.offset)

    # Committing.

    def _commit_now_and_then(self) -> None:
        self.later(self.chance.uniform(100.0, 900.0), self._commit_now_and_then)
        self.commit(self.owned, lambda: None)

    def stop_committing(self) -> None:
        self._commits_no_more = True

    def commit(self, indexes: Iterable[int], then: Callable[[], None]) -> None:
        """Where it stands in these, if it has moved since; `then` in any case, but not after the turn has ended."""
        offsets = {}
        for index in sorted(indexes):
            place = self.owned.get(index)
            if place is not None and place.offset != self._committed.get(index):
                offsets[index] = self._committed[index] = place.offset
        known = self.topics.get(self.member.topic)
        if not offsets or known is None or self.coordinator == NO_BROKER or self._commits_no_more:
            self._committed |= dict.fromkeys(offsets, -1)
            then()
            return
        if self.chance.random() < BACKWARDS:
            offsets = {index: self.chance.randint(0, offset) for index, offset in offsets.items()}
            self._committed |= dict.fromkeys(offsets, -1)
        commits = [self._new_commit(index, offset) for index, offset in offsets.items()]
        version, settings = self.member.versions.commit, self.member
        where = (settings.topic, known.topic_id)
        request = commit_request(version, settings.group, where, commits, self.member_id, settings.instance_id)
        turn = self.turn

        self.commits_under_way += 1

        def heard(answer: Any) -> None:
            self.commits_under_way -= 1
            self._heard_commit(commits, {} if answer is None else commit_errors(answer), turn)
            if turn == self.turn:
                then()

        broker = self.coordinator
        self.ask(broker, OFFSET_COMMIT, version, request, partial(self._or_lost, broker, heard), apart=True)

    def _or_lost(self, broker: BrokerId, then: Then, answer: Any) -> None:
        if answer is None:
            self.lost_coordinator(broker)
        then(answer)

    def _new_commit(self, index: int, offset: Offset) -> Commit:
        self._commits += 1
        name = f"{self.standing.who}/{self._commits}"
        commit = Commit(name, self.standing.who, self.spot(index), self.epoch, offset, self.world.now_ms)
        self.groups.sent(commit)
        return commit

    def _heard_commit(self, commits: list[Commit], codes: dict[int, ErrorCode], turn: int) -> None:
        """What became of commits is noted, whoever has asked for them; what it means for the member only now."""
        for commit in commits:
            code = codes.get(commit.spot[2])
            if code is ErrorCode.NONE:
                self.groups.was_acknowledged(commit, self.world.now_ms)
                continue
            if code in REFUSED:
                self.groups.was_refused(commit)
                self.groups.reached["zombie commit fenced"] += code in FENCED
            if commit.spot[2] in self._committed:
                self._committed[commit.spot[2]] = -1
        for code in sorted({code for code in codes.values() if code is not ErrorCode.NONE}):
            if turn != self.turn or self.is_of_coordinator(code):
                return
            if code in FENCED or code is ErrorCode.REBALANCE_IN_PROGRESS:
                self.was_fenced(code)
            elif code not in REFUSED:
                self.is_strange(code, "OffsetCommit")
