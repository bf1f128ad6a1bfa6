"""Who votes: a set that the configuration begins, and that records in the log change from then on.

Until voters are recorded, they are known by their numbers only, and a decision takes all of them: a majority of nodes
that cannot be told from freshly wiped ones proves nothing. From the first VotersRecord on, a voter is a number and a
directory, and a majority decides. The set that counts is the latest in the log, committed or not (KIP-853); when the
log is cut, so is the history of sets.

One voter is added or removed at a time, so that every majority before shares a voter with every majority after.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from klamm.config.rules import voter as parsed_voter
from klamm.ids import ZERO_UUID, BrokerId, Offset, Uuid
from klamm.quorum.identity import ReplicaKey
from klamm.quorum.messages import Address
from klamm.records import control

LISTENER = "CONTROLLER"
KRAFT_VERSION = 1
"""The version of the protocol in which voters are recorded."""


class Voter(NamedTuple):
    node_id: BrokerId
    directory_id: Uuid = ZERO_UUID
    host: str = ""
    port: int = 0

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.node_id, self.directory_id)

    @property
    def address(self) -> Address | None:
        return Address(self.host, self.port) if self.host else None


class Voters(Mapping[BrokerId, Voter]):
    """A value: voters by number, in the order of their numbers."""

    __slots__ = ("_by_id", "is_recorded")

    def __init__(self, by_id: Mapping[BrokerId, Voter], *, is_recorded: bool) -> None:
        self._by_id = dict(sorted(by_id.items()))
        self.is_recorded = is_recorded
        """Whether a VotersRecord says so: then their directories are known."""

    @classmethod
    def of(cls, voters: Iterable[Voter]) -> "Voters":
        return cls({voter.node_id: voter for voter in voters}, is_recorded=False)

    @classmethod
    def parsed(cls, text: str) -> "Voters":
        """From the setting `controller.quorum.voters`."""
        entries = [parsed_voter(part.strip()) for part in text.split(",") if part.strip()]
        if None in entries:
            raise ValueError(f"{text!r} is not a list of id@host:port")
        return cls.configured(entry for entry in entries if entry is not None)

    @classmethod
    def configured(cls, entries: Iterable[tuple[BrokerId, str, int]]) -> "Voters":
        return cls.of(Voter(node_id, host=host, port=port) for node_id, host, port in entries)

    @classmethod
    def recorded(cls, record: control.Voters) -> "Voters":
        found = {}
        for each in record.voters:
            place = each.endpoints[0] if each.endpoints else control.VoterEndpoint()
            found[each.voter_id] = Voter(each.voter_id, each.voter_directory_id, place.host, place.port)
        return cls(found, is_recorded=True)

    def record(self) -> control.Voters:
        assert self.is_recorded
        versions = control.SupportedVersions(min_supported_version=0, max_supported_version=KRAFT_VERSION)
        return control.Voters(
            voters=[
                control.Voter(
                    voter_id=voter.node_id,
                    voter_directory_id=voter.directory_id,
                    endpoints=[control.VoterEndpoint(name=LISTENER, host=voter.host, port=voter.port)]
                    if voter.host
                    else [],
                    kraft_version_feature=versions,
                )
                for voter in self.values()
            ]
        )

    @property
    def needed(self) -> int:
        """How many have to agree: more than half, or everybody as long as none is recorded."""
        return len(self) // 2 + 1 if self.is_recorded else len(self)

    def has(self, key: ReplicaKey) -> bool:
        """Whether this very replica votes, its disk included."""
        voter = self.get(key.node_id)
        return voter is not None and voter.directory_id in (key.directory_id, ZERO_UUID)

    def with_directories(self, known: Mapping[BrokerId, Uuid]) -> "Voters":
        """As they are to be recorded."""
        return Voters(
            {one.node_id: one._replace(directory_id=known[one.node_id]) for one in self.values()}, is_recorded=True
        )

    def with_voter(self, voter: Voter) -> "Voters":
        assert voter.node_id not in self and self.is_recorded
        return Voters({**self._by_id, voter.node_id: voter}, is_recorded=True)

    def without(self, node_id: BrokerId) -> "Voters":
        assert node_id in self and self.is_recorded
        return Voters({each: voter for each, voter in self.items() if each != node_id}, is_recorded=True)

    def __getitem__(self, node_id: BrokerId) -> Voter:
        return self._by_id[node_id]

    def __iter__(self) -> Iterator[BrokerId]:
        return iter(self._by_id)

    def __len__(self) -> int:
        return len(self._by_id)

    def __repr__(self) -> str:
        return f"<voters {','.join(map(str, self))}{'' if self.is_recorded else ' unrecorded'}>"


class VoterHistory:
    """The sets along the log, each with the offset of its record. The configured one comes before all."""

    __slots__ = ("_offsets", "_sets", "configured")

    def __init__(self, configured: Voters) -> None:
        self.configured = configured
        self._offsets: list[Offset] = []
        self._sets: list[Voters] = []

    @property
    def latest(self) -> Voters:
        return self._sets[-1] if self._sets else self.configured

    @property
    def latest_offset(self) -> Offset:
        """Where the latest set is recorded; -1 for the configured one."""
        return self._offsets[-1] if self._offsets else -1

    def has_had(self, key: ReplicaKey) -> bool:
        """Whether this very replica voted once."""
        return any(voters.has(key) for voters in self._sets)

    def as_of(self, end_offset: Offset) -> Voters:
        """The set that everything below the offset adds up to."""
        number = bisect_left(self._offsets, end_offset)
        return self._sets[number - 1] if number else self.configured

    def note(self, offset: Offset, voters: Voters) -> None:
        assert offset > self.latest_offset and voters.is_recorded
        self._offsets.append(offset)
        self._sets.append(voters)

    def truncate_to(self, end_offset: Offset) -> None:
        number = bisect_left(self._offsets, end_offset)
        del self._offsets[number:], self._sets[number:]

    def restart_with(self, voters: Voters, end_offset: Offset) -> None:
        """A snapshot has taken the place of everything below the offset."""
        self._offsets, self._sets = [], []
        if voters.is_recorded:
            self.note(end_offset - 1, voters)
