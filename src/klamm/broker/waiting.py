"""Who waits for what. A waiter is released once, by its condition or by its deadline, and never from within another.

Watermark waiters stand in a queue per partition in order of offset, so moving a watermark looks only at those it
releases. Fetches stand apart, because any change of any of their partitions may be enough. What is released is
collected, and the node answers it when the step settles.
"""

from collections.abc import Callable
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import count

from klamm.broker.answer import Applied, Changed, Committed, Finished, Later, Wait
from klamm.broker.slices import Slices
from klamm.ids import NO_OFFSET, Now, Offset
from klamm.partition.partition import Partition

FORGOTTEN = 64
"""A heap keeps those who were answered by other means until they are this many more than those who wait."""


class Waiter:
    """One `Later`, its place in its connection's queue, and how many conditions are still open."""

    __slots__ = ("answered", "connection", "deliver", "later", "open")

    def __init__(self, later: Later, connection: int, deliver: Callable[[Now, bool], None]) -> None:
        self.later = later
        self.connection = connection
        self.deliver = deliver
        self.open = 1
        self.answered = False


class OffsetQueue:
    """Waiters for one growing number, smallest first."""

    __slots__ = ("_heap", "_order", "_sweep_at")

    def __init__(self) -> None:
        self._heap: list[tuple[Offset, int, Waiter]] = []
        self._order = count()
        self._sweep_at = FORGOTTEN

    def add(self, offset: Offset, waiter: Waiter) -> None:
        heappush(self._heap, (offset, next(self._order), waiter))
        if len(self._heap) >= self._sweep_at:
            # Producers that gave up, or went away, would otherwise stay here until the offset is reached.
            self._heap = [entry for entry in self._heap if not entry[2].answered]
            heapify(self._heap)
            self._sweep_at = 2 * len(self._heap) + FORGOTTEN

    def reached(self, offset: Offset) -> list[Waiter]:
        """Waiters that now have one open condition less."""
        heap = self._heap
        passed = []
        while heap and heap[0][0] <= offset:
            passed.append(heappop(heap)[2])
        return passed

    def everybody(self) -> list[Waiter]:
        waiters = [waiter for _, _, waiter in self._heap]
        self._heap.clear()
        return waiters

    def __bool__(self) -> bool:
        return bool(self._heap)


class Waiting:
    def __init__(self) -> None:
        self.slices = Slices(self._park)
        self.own_slices = Slices(self._park)
        self._committed: dict[Partition, OffsetQueue] = {}
        self._durable: dict[Partition, OffsetQueue] = {}
        self._applied = OffsetQueue()
        self._applied_offset = NO_OFFSET
        self._fetches: dict[object, dict[Waiter, None]] = {}
        self._deadlines: list[tuple[float, int, Waiter]] = []
        self._order = count()
        self._open = 0
        self._by_connection: dict[int, set[Waiter]] = {}
        self._released: list[tuple[Waiter, bool]] = []

    def add(self, waiter: Waiter, deadline_ms: float) -> None:
        until = waiter.later.until
        if isinstance(until, Changed):
            for subject in until.subjects:
                self._fetches.setdefault(subject, {})[waiter] = None
        elif isinstance(until, Applied):
            self._applied.add(until.offset, waiter)
        elif isinstance(until, Finished):
            self.slices.add(
                until.work, partial(self._finished, waiter), lambda: waiter.answered, connection=waiter.connection
            )
        else:
            queues = self._committed if isinstance(until, Committed) else self._durable
            waiter.open = len(until.targets)
            for partition, offset in until.targets:
                queue = queues.get(partition)
                if queue is None:
                    queue = queues[partition] = OffsetQueue()
                queue.add(offset, waiter)
        heappush(self._deadlines, (deadline_ms, next(self._order), waiter))
        self._open += 1
        if len(self._deadlines) > 2 * self._open + FORGOTTEN:
            self._deadlines = [entry for entry in self._deadlines if not entry[2].answered]
            heapify(self._deadlines)
        self._by_connection.setdefault(waiter.connection, set()).add(waiter)
        if isinstance(until, Applied):
            self.applied(self._applied_offset)

    # What happened.

    def watermark_moved(self, partition: Partition) -> None:
        self._reached(self._committed, partition, partition.high_watermark)

    def became_durable(self, partition: Partition) -> None:
        self._reached(self._durable, partition, partition.durable_end)

    def changed(self, *subjects: object) -> None:
        """Partitions, or fetch sessions that have them, are not what they were when somebody began to wait for them.
        Who waits for several of these looks once."""
        waiters: dict[Waiter, None] = {}
        for subject in subjects:
            fetches = self._fetches.get(subject)
            if fetches:
                waiters |= fetches
        for waiter in waiters:
            until = waiter.later.until
            assert isinstance(until, Changed)
            if until.holds():
                self._release(waiter, in_time=True)

    def failed(self, partition: Partition) -> None:
        """Nothing will be committed here any more by this node: everybody hears so now, not at their deadline."""
        self._give_up(self._committed, partition)
        self._give_up(self._durable, partition)

    def cannot_commit(self, partition: Partition) -> None:
        """Too few replicas are in sync for the watermark to move. Who waits for it hears so now; the disk goes on."""
        if self._committed:
            self._give_up(self._committed, partition)

    def applied(self, offset: Offset) -> None:
        self._applied_offset = offset
        for waiter in self._applied.reached(offset):
            self._release(waiter, in_time=True)

    def nothing_applies_any_more(self) -> None:
        for waiter in self._applied.everybody():
            self._release(waiter, in_time=False)

    def expire(self, now: Now) -> None:
        deadlines = self._deadlines
        while deadlines and deadlines[0][0] <= now.monotonic_ms:
            self._release(heappop(deadlines)[2], in_time=False)

    def connection_closed(self, connection: int) -> None:
        for waiter in self._by_connection.pop(connection, ()):
            self._forget(waiter)

    # What follows.

    def take_released(self) -> list[tuple[Waiter, bool]]:
        """Those to be answered now, with whether their condition held, in the order they were released."""
        released, self._released = self._released, []
        return released

    def next_deadline_ms(self) -> float | None:
        deadlines = self._deadlines
        while deadlines and deadlines[0][2].answered:
            heappop(deadlines)
        return deadlines[0][0] if deadlines else None

    def __len__(self) -> int:
        return self._open

    def _park(self, wait: Wait, go_on: Callable[[], None], connection: int) -> None:
        later = Later(wait.until, wait.deadline_ms, lambda now, in_time: None)
        self.add(Waiter(later, connection, lambda now, in_time: go_on()), wait.deadline_ms)

    def _finished(self, waiter: Waiter, error: Exception | None, now: Now) -> None:
        if error is not None:
            waiter.later.then = partial(_raise, error)
        self._release(waiter, in_time=True)

    def _reached(self, queues: dict[Partition, OffsetQueue], partition: Partition, offset: Offset) -> None:
        queue = queues.get(partition)
        if queue is None:
            return
        for waiter in queue.reached(offset):
            waiter.open -= 1
            if not waiter.open:
                self._release(waiter, in_time=True)
        if not queue:
            del queues[partition]

    def _give_up(self, queues: dict[Partition, OffsetQueue], partition: Partition) -> None:
        queue = queues.pop(partition, None)
        for waiter in queue.everybody() if queue else ():
            # The other partitions of the same request may yet succeed.
            waiter.open -= 1
            if not waiter.open:
                self._release(waiter, in_time=True)

    def _release(self, waiter: Waiter, *, in_time: bool) -> None:
        if waiter.answered:
            return
        self._forget(waiter)
        of_connection = self._by_connection.get(waiter.connection)
        if of_connection is not None:
            of_connection.discard(waiter)
            if not of_connection:
                del self._by_connection[waiter.connection]
        self._released.append((waiter, in_time))

    def _forget(self, waiter: Waiter) -> None:
        waiter.answered = True
        self._open -= 1
        until = waiter.later.until
        if isinstance(until, Changed):
            for subject in until.subjects:
                fetches = self._fetches.get(subject)
                if fetches is not None:
                    fetches.pop(waiter, None)
                    if not fetches:
                        del self._fetches[subject]


def _raise(error: Exception, now: Now, in_time: bool) -> object:
    """In the place of a response: whoever delivers it says how a handler's failure ends."""
    raise error
