"""One node's part in the quorum: its epoch and role, and how it moves from one to the next.

Epoch and vote are on the disk before anything follows from them: every `become_…` writes first and changes afterwards,
so a disk that fails leaves the role as it was. What the moves are made for stands elsewhere: `answering.py` for the
requests of others, `hearing.py` for their answers, `timing.py` for time that passes, `membership.py` for voters.

How a dead leader is replaced quickly without a living one being disturbed: nobody begins an epoch before a majority
has said (pre-vote) that it would vote so. A follower says so only if it has not heard of its leader for the fetch
timeout, or has evidence of its own that the leader's process is dead. Evidence reaches every follower by itself, since
each has a connection to the leader that closes; whoever has it first asks, and asks those again who did not have it yet
a few milliseconds later.
"""

from random import Random

from klamm.facts import Tell
from klamm.ids import NO_BROKER, ZERO_UUID, BrokerId, Epoch, Now, Offset, Uuid
from klamm.log.files import Files
from klamm.quorum import membership
from klamm.quorum.candidate import INSISTING_MS, Round
from klamm.quorum.claims import Claims
from klamm.quorum.election import (
    BEYOND_REACH,
    FILE_NAME,
    LAST_EPOCH,
    Election,
    UnreadableElection,
    read_election,
    remembers,
    write_election,
)
from klamm.quorum.facts import ElectionBegun, LeaderElected, LeaderFollowed, LeaderResigned, QuorumDiskFailed
from klamm.quorum.follower import Following
from klamm.quorum.identity import NodeIdentity, ReplicaKey
from klamm.quorum.journal import Journal
from klamm.quorum.leader import Leading
from klamm.quorum.messages import NOBODY, Address, EndEpoch, Outgoing, Request
from klamm.quorum.roles import INTO_A_NEW_EPOCH, WITHIN_AN_EPOCH, Role
from klamm.quorum.settings import QuorumSettings
from klamm.quorum.voters import KRAFT_VERSION, Voters
from klamm.records.control import EpochVoter, KRaftVersion, LeaderChange, QuorumRecord, quorum_batch

JITTER_MS = 5.0
"""Those who learn at the same moment that the leader is dead do not stand at the same moment."""


class Participant:
    def __init__(
        self,
        identity: NodeIdentity,
        settings: QuorumSettings,
        journal: Journal,
        files: Files,
        random: Random,
        now: Now,
        *,
        is_voter_role: bool,
        tell: Tell,
    ) -> None:
        self.identity = identity
        self.node_id = identity.node_id
        self.settings = settings
        self.journal = journal
        self.random = random
        self.now = now
        self.tell = tell
        self._files = files
        self._is_voter_role = is_voter_role
        self.election = Election()
        self.epoch: Epoch = 0
        self.role = Role.UNATTACHED
        self.leader_id: BrokerId = NO_BROKER
        self.high_watermark: Offset = journal.applied
        """Everything below it is committed. It never goes back."""
        self.round: Round | None = None
        self.following: Following | None = None
        self.leading: Leading | None = None
        self.outbox: list[Outgoing] = []
        self.stand_ms: float | None = None
        """When to stand, for those who have no leader to wait for and are not standing."""
        self.searching: Outgoing | None = None
        """An observer's question to anybody who may know the leader."""
        self.search_ms = now.monotonic_ms
        self.search_turn: int = identity.node_id
        """Whose turn it is to be asked who leads; observers begin at different voters."""
        self.search_losses = 0
        """How often in a row nobody answered."""
        self.claims = Claims()
        self.met: dict[BrokerId, Uuid] = {}
        """Directories of configured voters who spoke to us; needed until voters are recorded."""
        self._addresses: dict[BrokerId, Address] = {}
        self._doubted: tuple[BrokerId, Epoch, float] | None = None
        self._rounds = 0
        self._led_until_ms = now.monotonic_ms

    # What it is.

    @property
    def voters(self) -> Voters:
        return self.journal.voters.latest

    @property
    def is_voter(self) -> bool:
        return self._is_voter_role and self.voters.has(self.identity.key)

    @property
    def is_only_voter(self) -> bool:
        return self.is_voter and self.voters.is_recorded and len(self.voters) == 1

    @property
    def may_vote(self) -> bool:
        """A voter of a set that we have not heard of yet may vote too; a node without its disk may not."""
        return self._is_voter_role and self.journal.log.failed is None

    @property
    def voted_for(self) -> ReplicaKey:
        return ReplicaKey(self.election.voted_id, self.election.voted_directory_id)

    def address_of(self, node_id: BrokerId) -> Address | None:
        """Where a node is reached: as configured, as we heard, or as recorded."""
        configured = self.journal.voters.configured.get(node_id)
        recorded = self.voters.get(node_id)
        return (
            (configured.address if configured else None)
            or self._addresses.get(node_id)
            or (recorded.address if recorded else None)
        )

    def believes_in_leader(self) -> bool:
        """Whether somebody leads, as far as we can tell by what we were answered and who fetches from us."""
        if self.leading is not None:
            silent_ms = self.leading.supported_until_ms(self.voters, self.settings.fetch_timeout_ms)
            return self.now.monotonic_ms < silent_ms
        return self.following is not None and self.following.believes(self.now.monotonic_ms)

    def is_without_leader_for_long(self) -> bool:
        """Whether those who might have been elected had the time for it."""
        silent_ms = self.now.monotonic_ms - self._led_until_ms
        return self.leader_id == NO_BROKER and silent_ms >= self.settings.election_timeout_ms

    # Starting.

    def begin(self) -> None:
        """With what the disk remembers. A voter stands soon: asking beforehand it also learns who leads."""
        directory = self.journal.log.directory
        self.election = read_election(self._files, directory)
        if self.is_voter and len(self.voters) > 1 and self.journal.end_offset and not remembers(self._files, directory):
            # It may have voted in an epoch that left no trace in the log.
            raise UnreadableElection(f"{directory} holds a log and no {FILE_NAME}: a vote may be forgotten")
        if self.journal.position.epoch > LAST_EPOCH:
            raise UnreadableElection(f"{directory} ends in epoch {self.journal.position.epoch}, and {BEYOND_REACH}")
        self.epoch = max(self.election.epoch, self.journal.position.epoch)
        if self.epoch > self.election.epoch:
            # What was voted in an earlier epoch says nothing about this one.
            self.election = Election(self.epoch)
        if self.is_voter and len(self.voters) == 1:
            self.stand("it is the only voter")
        elif self.is_voter:
            self.stand_ms = self.now.monotonic_ms + self.random.uniform(0, JITTER_MS)

    # Moves.

    def become_unattached(self, epoch: Epoch, voted: ReplicaKey = NOBODY) -> None:
        if epoch == self.epoch and voted == NOBODY:
            voted = self.voted_for
        self._remember(epoch, voted)
        self._move(Role.UNATTACHED, epoch)
        self.stand_ms = self.now.monotonic_ms + self.election_timeout_ms()
        self.search_ms = self.now.monotonic_ms
        self.search_losses = 0

    def become_follower(self, epoch: Epoch, leader_id: BrokerId) -> None:
        assert leader_id not in (self.node_id, NO_BROKER)
        self._remember(epoch, self.voted_for if epoch == self.epoch else NOBODY)
        self._move(Role.FOLLOWER, epoch)
        self.leader_id = leader_id
        self._rounds = 0
        # So that not all followers of a silent leader stand at the same moment.
        timeout_ms = self.settings.fetch_timeout_ms * self.random.uniform(1.0, 1.2)
        self.following = Following(leader_id, self.now.monotonic_ms, timeout_ms)
        self.tell(LeaderFollowed(leader_id, epoch))

    def stand(self, reason: str) -> None:
        """Ask whether we would be elected. Alone, we are."""
        assert self.is_voter and self.journal.log.failed is None
        self.tell(ElectionBegun(self.epoch, reason))
        self._move(Role.PROSPECTIVE, self.epoch)
        self.round = self._new_round(pre_vote=True)
        self.maybe_go_on()

    def maybe_go_on(self) -> None:
        """From asking beforehand to standing, from standing to leading, when enough have agreed."""
        if self.role is Role.PROSPECTIVE and self.round is not None and self.round.is_won and self._may_begin_epoch():
            self._become_candidate()
        if self.role is Role.CANDIDATE and self.round is not None and self.round.is_won:
            self._become_leader(self.round)

    def stand_again(self) -> None:
        """The election was lost: after a while that others do not draw as well."""
        self._rounds += 1
        most_ms = min(self.settings.backoff_max_ms, self.settings.retry_ms * 2 ** min(self._rounds, 10))
        self.become_unattached(self.epoch)
        self.stand_ms = self.now.monotonic_ms + self.random.uniform(1.0, max(most_ms, 2.0))

    def insists(self) -> bool:
        """Whether it has just begun to stand. In the first election, where nobody makes way, also if it is about to."""
        now_ms = self.now.monotonic_ms
        if self.round is not None:
            return now_ms < self.round.began_ms + INSISTING_MS
        return not self.voters.is_recorded and self.stand_ms is not None and self.stand_ms <= now_ms + JITTER_MS

    def make_way(self) -> None:
        """Somebody else was encouraged to stand: for a while we do not, or both would take each other's votes."""
        if not self.voters.is_recorded:
            # The first leader needs everybody, and has to hear from everybody who they are.
            return
        stand_ms = self.now.monotonic_ms + INSISTING_MS + self.random.uniform(0, JITTER_MS)
        if self.role is Role.PROSPECTIVE:
            self.become_unattached(self.epoch)
            self.stand_ms = stand_ms
        elif self.following is not None:
            self.following.make_way(stand_ms)
        elif self.stand_ms is not None:
            self.stand_ms = max(self.stand_ms, stand_ms)

    def resign(self, reason: str) -> None:
        """Let the others know at once, the best successor first."""
        assert self.leading is not None
        successors = self.leading.successors(self.voters)
        request = EndEpoch(
            self.identity.cluster_id, self.node_id, self.epoch, successors, self.address_of(self.node_id)
        )
        self._move(Role.RESIGNED, self.epoch)
        self.stand_ms = self.now.monotonic_ms + self.election_timeout_ms()
        for key in successors:
            self.send(key.node_id, request, self.settings.election_timeout_ms)
        self.tell(LeaderResigned(self.epoch, reason))

    def learn(self, epoch: Epoch, leader_id: BrokerId, address: Address | None, answered_by: BrokerId) -> bool:
        """What a reply says about who leads. Whether it changed what we are."""
        if epoch < self.epoch:
            return False
        self.note_address(leader_id, address)
        if leader_id in (NO_BROKER, self.node_id) or self.address_of(leader_id) is None:
            if epoch == self.epoch:
                return False
            self.become_unattached(epoch)
            # Whoever began this epoch may still win it. If its log is too short for that, somebody else has to stand.
            self.stand_ms = self.now.monotonic_ms + self.election_timeout_ms() / 4
            return True
        is_known = epoch == self.epoch and self.role in (Role.LEADER, Role.FOLLOWER)
        # Others may not have noticed yet that it is gone. It would not answer that it leads.
        is_doubted = epoch == self.epoch and answered_by != leader_id and self._doubts(leader_id)
        if is_known or is_doubted:
            return False
        self.become_follower(epoch, leader_id)
        return True

    def doubt_leader(self, delay_ms: float = 0.0) -> None:
        """Its process is dead, or it says itself that it does not lead: find another."""
        now_ms = self.now.monotonic_ms
        stand_ms = now_ms + delay_ms + self.random.uniform(0, JITTER_MS)
        if self.following is not None:
            self._doubted = (self.leader_id, self.epoch, now_ms + self.settings.fetch_timeout_ms)
            self.following.gone(stand_ms)
        elif self.stand_ms is not None:
            self.stand_ms = min(self.stand_ms, stand_ms)

    def disk_failed(self, reason: str) -> None:
        """Without a disk to remember promises by, none is made."""
        if self.journal.log.failed is None:
            self.tell(QuorumDiskFailed(reason))
        self.journal.log.fail(reason)
        if self.role is Role.LEADER:
            self.resign(reason)
        elif self.role is not Role.RESIGNED:
            self._move(Role.UNATTACHED, self.epoch)
        self.stand_ms = None

    # Committing.

    def maybe_commit(self) -> bool:
        """What a majority holds by now, if this node leads. Whether it is more than before."""
        leading = self.leading
        if leading is None:
            return False
        majority = leading.committed(self.voters, self.journal.flushed_end)
        is_more = majority > max(leading.start_offset, self.high_watermark)
        if is_more:
            self.high_watermark = majority
            membership.committed(self)
        return is_more

    # Helpers.

    def send(self, to: BrokerId, request: Request, timeout_ms: float) -> Outgoing | None:
        address = self.address_of(to)
        if address is None:
            return None
        outgoing = Outgoing(to, address.host, address.port, request, timeout_ms)
        self.outbox.append(outgoing)
        return outgoing

    def note_address(self, node_id: BrokerId, address: Address | None) -> None:
        if node_id != NO_BROKER and address is not None and address.host:
            self._addresses[node_id] = address

    def meet(self, key: ReplicaKey) -> None:
        """A configured voter spoke to us: now we know its directory, and that it can be reached."""
        if not self.voters.is_recorded and key.node_id in self.voters and key.directory_id != ZERO_UUID:
            self.met[key.node_id] = key.directory_id
        if self.round is not None:
            self.round.is_there(key.node_id, self.now.monotonic_ms)
            self.maybe_go_on()

    def _become_candidate(self) -> None:
        epoch = self.epoch + 1
        alone = len(self.voters) == 1
        self._remember(epoch, self.identity.key, self.node_id if alone else NO_BROKER)
        self._move(Role.CANDIDATE, epoch)
        self.round = self._new_round(pre_vote=False)

    def _become_leader(self, won: Round) -> None:
        voters, records = self.voters, list[QuorumRecord]()
        if not voters.is_recorded:
            voters = voters.with_directories({**self.met, self.node_id: self.identity.directory_id})
            records = [KRaftVersion(kraft_version=KRAFT_VERSION), voters.record()]
        # Version 1 would hold the voters' directories, but Kafka's tools read no version but 0.
        change = LeaderChange(
            version=0,
            leader_id=self.node_id,
            voters=[EpochVoter(voter_id=each) for each in voters],
            granting_voters=[EpochVoter(voter_id=each) for each in sorted(won.granted)],
        )
        start = self.journal.end_offset
        batch = quorum_batch([change, *records], timestamp=self.now.wall_ms, leader_epoch=self.epoch)
        self.journal.append(batch, (), self.epoch, self.now)
        self._move(Role.LEADER, self.epoch)
        self._rounds = 0
        self.leader_id = self.node_id
        self.leading = Leading(self.identity.key, self.epoch, start, self.now)
        self.tell(LeaderElected(self.node_id, self.epoch, start))

    def _move(self, role: Role, epoch: Epoch) -> None:
        allowed = WITHIN_AN_EPOCH[self.role] if epoch == self.epoch else INTO_A_NEW_EPOCH
        assert role in allowed and epoch >= self.epoch, f"{self.role} in {self.epoch} becomes {role} in {epoch}"
        assert epoch == self.election.epoch, "the disk knows of it"
        if self.leader_id != NO_BROKER:
            self._led_until_ms = self.now.monotonic_ms
        self.role = role
        self.epoch = epoch
        self.leader_id = NO_BROKER
        self.round = self.following = self.leading = self.stand_ms = self.searching = None
        self.journal.forget_proposed()

    def _remember(self, epoch: Epoch, voted: ReplicaKey, leader_id: BrokerId = NO_BROKER) -> None:
        """Returns when epoch and vote are on the disk."""
        assert epoch >= self.election.epoch
        election = Election(epoch, leader_id, voted.node_id, voted.directory_id)
        if epoch == self.election.epoch:
            assert self.voted_for in (NOBODY, voted), "a vote is given once"
            if voted == self.voted_for:
                return
        write_election(self._files, self.journal.log.directory, election)
        self.election = election

    def _new_round(self, *, pre_vote: bool) -> Round:
        now_ms = self.now.monotonic_ms
        return Round(
            self.voters,
            self.node_id,
            self.epoch,
            pre_vote=pre_vote,
            now_ms=now_ms,
            deadline_ms=now_ms + self.election_timeout_ms(),
        )

    def _may_begin_epoch(self) -> bool:
        """Whether the voters are recorded, or can be: then the first thing a leader does is to record them."""
        knows_voters = self.voters.is_recorded or self.voters.keys() <= {*self.met, self.node_id}
        return knows_voters and self.epoch < LAST_EPOCH

    def _doubts(self, leader_id: BrokerId) -> bool:
        return (
            self._doubted is not None
            and (leader_id, self.epoch) == self._doubted[:2]
            and (self.now.monotonic_ms < self._doubted[2])
        )

    def election_timeout_ms(self) -> float:
        return self.settings.election_timeout_ms * self.random.uniform(1.0, 2.0)
