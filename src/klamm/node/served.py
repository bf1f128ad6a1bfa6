"""One API as this node serves it: who handles it, and how its requests were answered since the process began.

A step knows when it begins and not how long it takes. So the times of requests that waited for something are noted
here, from step to step; those of requests that were answered at once are noted by whoever has a clock.
"""

from klamm.handlers import Handler

BUCKETS = 64


class Times:
    """How long things took, counted by powers of two: bucket n holds what took less than 2^n microseconds, and not less
    than half of that."""

    __slots__ = ("buckets", "total_us")

    def __init__(self) -> None:
        self.buckets = [0] * BUCKETS
        self.total_us = 0

    def note(self, took_us: int, count: int = 1) -> None:
        """So many took so long, each of them."""
        self.buckets[took_us.bit_length()] += count
        self.total_us += took_us * count


class Served:
    __slots__ = ("answered", "handle", "passed_on", "times", "unanswered", "waited")

    def __init__(self, handle: Handler) -> None:
        self.handle = handle
        self.answered = 0
        """At once."""
        self.waited = 0
        """Or had to wait, and may wait yet."""
        self.passed_on = 0
        """To the controller."""
        self.unanswered = 0
        """Nobody wants an answer (acks=0)."""
        self.times = Times()

    @property
    def requests(self) -> int:
        return self.answered + self.waited + self.passed_on + self.unanswered
