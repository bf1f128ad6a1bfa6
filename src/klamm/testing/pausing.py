"""One node's share of the loop that embedded nodes have in common: it can be paused, and the others go on.

A node that is paused hears nothing: not its sockets, not its alarms, not the end of a flush. The system goes on taking
connections and bytes for it, as it does for a process that is stopped. When it goes on, it reads its sockets before it
looks at the clock, as one does that was stopped.
"""

from collections.abc import Callable

from klamm.runtime.loop import NEVER, Alarm, Loop, OnReady


class PausableLoop(Loop):
    def __init__(self, shared: Loop) -> None:
        # Everything that a loop has is the shared one's; ours is who watches what.
        self._shared = shared
        self._watched: dict[int, tuple[int, OnReady, bool]] = {}
        self._rings_at_ms: dict[Alarm, float] = {}
        """When alarms would have rung, while paused."""
        self._own_alarms: set[Alarm] = set()
        self._put_off: list[Callable[[], None]] = []
        self.is_paused = False

    # In the loop's thread.

    def pause(self) -> None:
        if self.is_paused:
            return
        self.is_paused = True
        for descriptor in self._watched:
            self._shared.forget(descriptor)
        for alarm in self._own_alarms:
            self._rings_at_ms[alarm], alarm.at_ms = alarm.at_ms, NEVER

    def resume(self) -> None:
        if not self.is_paused:
            return
        self.is_paused = False
        for descriptor, (interest, on_ready, first) in self._watched.items():
            self._shared.watch(descriptor, interest, on_ready, first=first)
        self.run_put_off()
        # Alarms are looked at when this turn ends, sockets when the next one begins, and then alarms again.
        self._shared.at_end_of_turn(self._set_alarms)

    def run_put_off(self) -> None:
        calls, self._put_off = self._put_off, []
        for call in calls:
            call()

    def _set_alarms(self) -> None:
        rings_at_ms, self._rings_at_ms = self._rings_at_ms, {}
        for alarm, at_ms in rings_at_ms.items():
            alarm.at_ms = min(alarm.at_ms, at_ms)

    # What a node wants of its loop.

    def watch(self, descriptor: int, interest: int, on_ready: OnReady, *, first: bool = False) -> None:
        self._watched[descriptor] = interest, on_ready, first
        if not self.is_paused:
            self._shared.watch(descriptor, interest, on_ready, first=first)

    def change(self, descriptor: int, interest: int) -> None:
        self._watched[descriptor] = interest, *self._watched[descriptor][1:]
        if not self.is_paused:
            self._shared.change(descriptor, interest)

    def forget(self, descriptor: int) -> None:
        del self._watched[descriptor]
        if not self.is_paused:
            self._shared.forget(descriptor)

    def alarm(self, call: Callable[[], None]) -> Alarm:
        alarm = self._shared.alarm(call)
        self._own_alarms.add(alarm)
        return alarm

    def drop_alarm(self, alarm: Alarm) -> None:
        self._own_alarms.discard(alarm)
        self._rings_at_ms.pop(alarm, None)
        self._shared.drop_alarm(alarm)

    def call_soon(self, call: Callable[[], None]) -> None:
        self._shared.call_soon(lambda: self._call(call))

    def at_end_of_turn(self, call: Callable[[], None]) -> None:
        self._shared.at_end_of_turn(lambda: self._call(call))

    def run_calls(self) -> None:
        self._shared.run_calls()
        self.run_put_off()

    def _call(self, call: Callable[[], None]) -> None:
        if self.is_paused:
            self._put_off.append(call)
        else:
            call()
