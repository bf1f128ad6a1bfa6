"""A member says something, and the group moves as far as it can: the four steps every heartbeat and every join takes.

The member's profile is written if it changed. If that, or the cluster, changed the topics the group reads, the group
comes to its next epoch. If the group is ahead of its target, and it is time, the next target is computed. And the
member is led towards the target. All of it is computed on values, and comes back as records.
"""

from collections.abc import Mapping

from klamm.coordinator.groups.consumer_member import (
    Member,
    Partitions,
    current_record,
    member_tombstones,
    profile_record,
    target_record,
)
from klamm.coordinator.groups.consumer_state import ConsumerState, epoch_record
from klamm.coordinator.groups.group import Surroundings
from klamm.coordinator.groups.reconciliation import IsFree, reconciled
from klamm.coordinator.groups.subscribed import (
    Resolved,
    existing,
    ids_of,
    names_of,
    pattern_record,
    resolved,
    topics_hash,
)
from klamm.coordinator.groups.target import is_time_for_a_target, next_target, preferred_assignor, target_records
from klamm.coordinator.records import GroupRecord
from klamm.ids import Epoch, Now, Offset

PATTERNS_REST_MS = 10_000
"""New topics are looked for this far apart at least: matching all of them is work, and they are often made together."""


class Advance:
    """One member's step. It is used once: make it, `run` it, take its records."""

    def __init__(self, state: ConsumerState, surroundings: Surroundings, topics_offset: Offset, now: Now) -> None:
        """`topics_offset` is where topics, or the racks they are in, last changed as far as we know."""
        self._state = state
        self._surroundings = surroundings
        self._image = surroundings.image
        self._topics_offset = topics_offset
        self._now = now
        self._predecessor: str | None = None
        self._epoch: Epoch = state.epoch
        self._patterns = state.patterns
        self._members = state.members
        self._targets = state.targets
        self.records: list[GroupRecord] = []
        self.topics_are_known = False
        """Whether it was found that the group's hash is that of its topics now."""

    def take_over(self, old: Member, member_id: str) -> Member:
        """A static member is succeeded by another, which has and is meant to have the same."""
        member = old.succeeded_by(member_id)
        if member_id == old.member_id:
            return member  # It comes back itself.
        target = self._state.targets.get(old.member_id, {})
        group = self._state.group_id
        self._predecessor = old.member_id
        self._targets = {id_: kept for id_, kept in self._targets.items() if id_ != old.member_id} | {member_id: target}
        self._members = {id_: kept for id_, kept in self._members.items() if id_ != old.member_id} | {member_id: member}
        self.records += member_tombstones(group, [old.member_id])
        self.records.append(profile_record(group, member))
        self.records.append(target_record(group, member_id, target))
        self.records.append(current_record(group, member))
        return member

    def run(self, before: Member, after: Member, owned: Partitions | None, *, look_at_topics: bool) -> Member:
        """The member as it will be. `after` is as it was before, with what it says about itself now."""
        is_new = before.member_id not in self._state.members
        if after.profile != before.profile or (is_new and self._predecessor is None):
            self.records.append(profile_record(self._state.group_id, after))
        if after is not before or is_new:
            self._members = self._members | {after.member_id: after}
        changed = after.profile.topic_names != before.profile.topic_names
        changed |= after.profile.topic_regex != before.profile.topic_regex
        found_more = self._update_patterns(before.profile.topic_regex, after.profile.topic_regex)
        if changed or found_more or look_at_topics:
            self._maybe_next_epoch(must=changed or found_more)
        target_epoch, target = self._target_for(after)
        member = self._reconciled(after, target_epoch, target, owned, changed)
        if member != after:
            self.records.append(current_record(self._state.group_id, member))
        return member

    def _update_patterns(self, before: str | None, after: str | None) -> bool:
        """Whether there are patterns that mean other topics than they did."""
        group, patterns = self._state.group_id, dict(self._patterns)
        if before != after:
            for unused in self._state.unused_patterns(self._members.values()):
                del patterns[unused]
                self.records.append(pattern_record(group, unused, None))
        looked_for = set(patterns) if _are_old(patterns, self._topics_offset, self._surroundings, self._now) else set()
        if after is not None and after not in patterns:
            looked_for.add(after)
        is_news = False
        for pattern in sorted(looked_for):
            found = resolved(pattern, self._image, self._now)
            is_news |= pattern not in patterns or patterns[pattern].topics != found.topics
            patterns[pattern] = found
            self.records.append(pattern_record(group, pattern, found))
        self._patterns = patterns
        return is_news

    def _maybe_next_epoch(self, *, must: bool) -> None:
        topics = existing(self._members.values(), self._patterns, self._image)
        found = topics_hash(topics, self._image)
        self.topics_are_known = not must and found == self._state.topics_hash
        if must or found != self._state.topics_hash:
            self._epoch += 1
            self.records.append(epoch_record(self._state.group_id, self._epoch, found))

    def _target_for(self, member: Member) -> tuple[Epoch, Partitions]:
        state, settings, now_ms = self._state, self._surroundings.settings, self._now.wall_ms
        is_due = is_time_for_a_target(state.target_at_ms, settings.assignment_interval_ms, now_ms)
        if self._epoch <= state.target_epoch or not is_due:
            return state.target_epoch, self._targets.get(member.member_id, {})
        members = list(self._members.values())
        assignor = preferred_assignor(members, settings.assignors)
        targets = next_target(members, self._targets, self._patterns, self._image, assignor)
        self.records += target_records(state.group_id, self._targets, targets, self._epoch, now_ms)
        return self._epoch, targets.get(member.member_id, {})

    def _reconciled(
        self, member: Member, epoch: Epoch, target: Partitions, owned: Partitions | None, changed: bool
    ) -> Member:
        if member.is_reconciled_to(epoch) and not changed:
            return member
        return reconciled(
            member,
            epoch,
            target,
            subscribed=ids_of(names_of(member, self._patterns), self._image),
            subscription_changed=changed,
            owned=owned,
            is_free=self._is_free_for(member.member_id),
        )

    def _is_free_for(self, member_id: str) -> IsFree:
        """What its predecessor had is its own."""
        allowed = (None, member_id, self._predecessor)
        return lambda topic_id, partition: self._state.holder_of(topic_id, partition) in allowed


def _are_old(patterns: Mapping[str, Resolved], topics_offset: Offset, surroundings: Surroundings, now: Now) -> bool:
    """Whether to look again what patterns match: after a long time, or because there are other topics."""
    if not patterns:
        return False
    age_ms = now.wall_ms - max(found.at_ms for found in patterns.values())
    if not 0 <= age_ms <= surroundings.settings.regex_refresh_ms:
        # A negative age was written by a clock that was wrong.
        return True
    return age_ms > PATTERNS_REST_MS and any(found.version < topics_offset for found in patterns.values())
