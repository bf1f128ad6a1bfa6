"""The records of one plan on their way into the metadata log.

A batch that is there in one piece is proposed and replayed at once. One that comes in pieces, because a topic is there
as a whole or not at all, is encoded and counted as the pieces come, and proposed and taken up with the last: so the
step that makes it true is short, however large it is.
"""

from klamm.controller.controller import Controller
from klamm.controller.state import Draft
from klamm.ids import Now, Offset
from klamm.machine import Piece
from klamm.metadata.records import MetadataRecord
from klamm.quorum.raft import Proposal, Raft


class Proposing:
    def __init__(self, raft: Raft) -> None:
        self._raft = raft
        self._begun: tuple[Proposal, Draft] | None = None

    def take(self, piece: Piece[MetadataRecord], controller: Controller, now: Now) -> Offset | None:
        """The offset of the last record of a batch that is complete."""
        if piece.is_void:
            self._begun = None
        elif piece.ends_batch and self._begun is None:
            return self._propose(piece.records, controller, now)
        else:
            proposal, draft = self._begun = self._begun or (self._raft.begin_proposal(), Draft())
            proposal.add(piece.records, now)
            for record in piece.records:
                draft.replay(record)
            if piece.ends_batch:
                self._begun = None
                return self._propose_all(proposal, draft, controller, now)
        return None

    def _propose(self, records: list[MetadataRecord], controller: Controller, now: Now) -> Offset | None:
        if not records:
            return None
        offset = self._raft.propose(records, now)
        for record in records:
            controller.replay(record)
        return offset

    def _propose_all(self, proposal: Proposal, draft: Draft, controller: Controller, now: Now) -> Offset | None:
        if not proposal.records:
            return None
        offset = self._raft.propose_all(proposal, now)
        controller.adopt(draft)
        return offset
