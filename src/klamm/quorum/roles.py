"""Who may become what. A move that is not in the table is our mistake.

    unattached   knows an epoch and no leader of it; may have given its vote
    prospective  asks the others whether they would vote for it, and has not begun an epoch yet (KIP-996)
    candidate    has begun an epoch, voted for itself, and asks for votes
    leader       has more than half of the votes of its epoch
    follower     knows the leader of its epoch and fetches from it
    resigned     led this epoch and gave it up; it votes for nobody else in it

Any of them becomes unattached, or a follower, when it hears of a later epoch. Observers are unattached or followers.
"""

from enum import Enum


class Role(Enum):
    UNATTACHED = "unattached"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    LEADER = "leader"
    FOLLOWER = "follower"
    RESIGNED = "resigned"


WITHIN_AN_EPOCH: dict[Role, frozenset[Role]] = {
    Role.UNATTACHED: frozenset({Role.UNATTACHED, Role.PROSPECTIVE, Role.FOLLOWER}),
    Role.PROSPECTIVE: frozenset({Role.UNATTACHED, Role.FOLLOWER}),
    Role.CANDIDATE: frozenset({Role.LEADER, Role.FOLLOWER, Role.UNATTACHED}),
    Role.LEADER: frozenset({Role.RESIGNED}),
    Role.FOLLOWER: frozenset({Role.PROSPECTIVE, Role.UNATTACHED}),
    Role.RESIGNED: frozenset({Role.PROSPECTIVE, Role.UNATTACHED, Role.FOLLOWER}),
}
"""What a role may become while the epoch stays the same. Only a candidate leads, and nobody leads an epoch twice."""

INTO_A_NEW_EPOCH = frozenset({Role.UNATTACHED, Role.FOLLOWER, Role.CANDIDATE})
