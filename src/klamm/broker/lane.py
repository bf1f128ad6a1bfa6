"""A lane: works that are done one after the other, in the order in which they came, while others take turns."""

from collections import deque


class Turn:
    """One work's place in a lane."""

    __slots__ = ("_lane",)

    def __init__(self, lane: "Lane") -> None:
        self._lane = lane

    @property
    def has_come(self) -> bool:
        return self._lane.turns[0] is self

    def end(self) -> "Turn | None":
        """Done, or given up; whose turn it is then, if that was not known before."""
        turns = self._lane.turns
        was_first = self.has_come
        turns.remove(self)
        return turns[0] if was_first and turns else None


class Lane:
    def __init__(self) -> None:
        self.turns: deque[Turn] = deque()

    @property
    def is_free(self) -> bool:
        return not self.turns

    def enter(self) -> Turn:
        turn = Turn(self)
        self.turns.append(turn)
        return turn
