"""A run that is to stop lets the batch finish that it is at, and begins no other."""

import threading
from typing import Any

import pytest

from klamm.pipeline.declaration import Source
from klamm.pipeline.flow import Flow
from klamm.pipeline.planning import PlannedQuery
from klamm.pipeline.tables import Written
from klamm.pipeline.writing import BatchWriter, Gate, Stopped


def test_who_comes_after_it_closed_waits_and_writes_nothing() -> None:
    gate = Gate()
    gate.pass_through("orders")
    gate.close()
    ended: list[BaseException] = []

    def batch() -> None:
        try:
            gate.pass_through("orders")
        except Stopped as stopped:
            ended.append(stopped)

    thread = threading.Thread(target=batch)
    thread.start()
    while "orders" not in gate.waiting:
        pass
    assert thread.is_alive() and not ended
    gate.release()
    thread.join(10)
    assert len(ended) == 1


def test_which_batch_it_is_at_is_known_meanwhile() -> None:
    seen: list[Any] = []

    class Kept:
        def write(self, rows: Any, batch_id: int) -> Any:
            assert writer.at is not None
            seen.append(writer.at[0])
            return Written(5)

    def rows(orders: Any) -> Any:
        return orders

    class Frame:
        isStreaming = False  # noqa: N815

    from klamm.pipeline.declaration import Table

    query = PlannedQuery("orders", (Source("orders"),), (Table("all", rows),), None)
    tables: Any = {"all": Kept()}
    writer = BatchWriter(query, Flow(["orders"], [rows]), Gate(), tables, lambda *each: None)
    frame: Any = Frame()
    writer(frame, 7)
    assert seen == [7] and writer.at is None


def test_what_went_wrong_in_a_batch_is_kept_as_it_was_and_what_was_written_of_it() -> None:
    class Kept:
        def write(self, rows: Any, batch_id: int) -> Any:
            return Written(5)

    class Wrong:
        def write(self, rows: Any, batch_id: int) -> Any:
            raise ValueError("the disk is full")

    def rows(orders: Any) -> Any:
        return orders

    from klamm.pipeline.declaration import Table

    class Frame:
        isStreaming = False  # noqa: N815

        def persist(self) -> None:
            pass

        unpersist = persist

    query = PlannedQuery("orders", (Source("orders"),), (Table("some", rows), Table("all", rows)), None)
    tables: Any = {"some": Kept(), "all": Wrong()}
    writer = BatchWriter(query, Flow(["orders"], [rows]), Gate(), tables, lambda *each: None)
    frame: Any = Frame()
    with pytest.raises(ValueError, match="disk is full"):
        writer(frame, 0)
    assert isinstance(writer.failure, ValueError) and not writer.done
    assert writer.begun.added == {"table some": 5}
