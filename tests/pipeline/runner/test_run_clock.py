"""The clock of a run, which is ours here: no batch is older than the run that it is in."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest

from klamm.pipeline import running
from klamm.pipeline.progress import QueryStanding, Standing, UnderWay


class Started:
    """Queries of which the first is in its batch for twelve seconds until all are started."""

    def __init__(self, clock: list[float]) -> None:
        self.standing = Standing("shop", {"orders": QueryStanding("orders", ("orders",))}, ())
        self.failure = None
        self._clock, self._looks, self._batch_began = clock, 0, 0.0

    @property
    def is_over(self) -> bool:
        return self._looks > 1

    def start(self, stops: object) -> None:
        self._batch_began = self._clock[0] + 1.0
        self._clock[0] += 13.0

    def poll(self) -> list[str]:
        self._looks += 1
        self.standing.queries["orders"].under_way = UnderWay(0, self._clock[0] - self._batch_began)
        return []

    def stop(self) -> None:
        pass


def test_a_batch_is_never_older_than_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, seen = [100.0], []

    def sleep(seconds: float) -> None:
        clock[0] += seconds

    def watch(standing: Standing, spoke: list[str]) -> None:
        now = standing.queries["orders"].under_way
        assert now is not None
        seen.append((standing.seconds, now.seconds))

    monkeypatch.setattr(running, "time", SimpleNamespace(monotonic=lambda: clock[0], sleep=sleep))
    monkeypatch.setattr(running, "Reaching", lambda *_: nullcontext())
    job = SimpleNamespace(wishes=SimpleNamespace(bootstrap=""))
    signals = SimpleNamespace(were_seen=False)
    running._carried_out(cast(Any, job), cast(Any, Started(clock)), watch, cast(Any, signals), print)
    assert seen[0] == (13.0, 12.0)
    assert all(run >= batch for run, batch in seen)
