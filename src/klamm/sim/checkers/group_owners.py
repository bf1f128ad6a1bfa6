"""Who owns a partition: one member of a group at a time.

I27. A member owns what its coordinator told it to, until it says that it does not any more, joins again, is fenced or
replaced, or its time is up: its session, or the time it has to give something up. All of that is seen from the member,
which hears late; so a claim counts only as long as the coordinator cannot have given up on it. Of two that use one
instance id, of which one speaks the classic protocol, the first is not judged any more: nobody outside can tell when it
was replaced.
"""

from collections.abc import Callable

from klamm.sim.clients.group_history import GroupHistory, Spot, Standing
from klamm.sim.promise import broken


class GroupOwners:
    def __init__(self, history: GroupHistory, is_excused: Callable[[str], bool]) -> None:
        self._is_excused = is_excused
        """Whether a group's coordinator may have forgotten something."""
        self._owners: dict[Spot, dict[Standing, int]] = {}
        self._static: dict[tuple[str, str | None], set[Standing]] = {}
        """All that have, or had, an instance id."""
        self._replaced: set[Standing] = set()
        history.on_released = self.released
        history.on_replaced = self.replaced

    def told(self, standing: Standing, epoch: int, spots: list[Spot], now_ms: float) -> None:
        if standing in self._replaced:
            return
        for spot in spots:
            owners = self._owners.setdefault(spot, {})
            owners[standing] = epoch
            if standing.until_ms > now_ms and not self._is_excused(standing.group):
                self._owns_alone(standing, spot, owners, now_ms)

    def _owns_alone(self, standing: Standing, spot: Spot, owners: dict[Standing, int], now_ms: float) -> None:
        for other, epoch in owners.items():
            if other is not standing and other.until_ms > now_ms:
                broken(
                    "I27",
                    f"{standing.who} is told to own {spot[1]}-{spot[2]} of {spot[0]} under epoch {owners[standing]}, "
                    f"and {other.who} owns it under {epoch}",
                )

    def released(self, standing: Standing, spots: list[Spot]) -> None:
        for spot in spots:
            self._owners.get(spot, {}).pop(standing, None)

    def replaced(self, standing: Standing) -> None:
        """Whoever has its instance id is fenced as soon as the coordinator hears of this one; unless both speak the
        newer protocol: then this one has to wait."""
        others = self._static.setdefault((standing.group, standing.instance_id), set())
        for other in others - {standing}:
            if other.is_classic or standing.is_classic:
                self._replaced.add(other)
                for owners in self._owners.values():
                    owners.pop(other, None)
        others.add(standing)
