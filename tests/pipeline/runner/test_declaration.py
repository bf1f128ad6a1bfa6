"""What a declaration can get wrong is told in a paragraph that says what to do."""

from typing import Any

import pytest

from klamm.pipeline import Pipeline, Source, Table, Topic
from klamm.pipeline.problems import BadPipeline


def rows(orders: Any) -> Any:
    return orders


def more_rows(rows: Any) -> Any:
    return rows


def joined(orders: Any, rows: Any, factor: int = 2) -> Any:
    return orders


def misspelt(order: Any) -> Any:
    return order


def chicken(egg: Any) -> Any:
    return egg


def egg(chicken: Any) -> Any:
    return chicken


def nothing() -> Any:
    return None


def orders(orders: Any) -> Any:
    return orders


def of(*outputs: Any, **more: Any) -> Pipeline:
    return Pipeline(name="shop", **{"sources": [Source("orders", json="id string")], "outputs": outputs, **more})


def test_the_flow_is_what_parameters_say() -> None:
    pipeline = of(Table("all", joined, key="id"), Topic("more", more_rows), steps=[rows])
    flow = pipeline.flow
    assert flow.inputs == {"rows": ("orders",), "joined": ("orders", "rows"), "more_rows": ("rows",)}
    assert flow.order.index("rows") < flow.order.index("joined")
    assert flow.sources_of("more_rows") == ("orders",)
    assert pipeline.table_names == ["all", "orders_quarantine"]
    assert pipeline.topic_names == ["more", "orders.quarantine"]


def test_functions_run_once_each_on_whatever_frames_there_are() -> None:
    class Frame:
        isStreaming = False  # noqa: N815

    frame: Any = Frame()
    frames = {"orders": frame}
    assert of(Table("all", joined), steps=[rows]).flow.frame("joined", frames) is frame
    assert set(frames) == {"orders", "rows", "joined"}


def test_a_topic_s_name_becomes_a_parameter_s() -> None:
    assert Source("store-revenue.v1").name == "store_revenue_v1"
    assert Source("orders", name="incoming").name == "incoming"
    assert Table("orders", rows, key="id").key == ("id",)
    assert Table("orders", rows, key=["id", "day"]).key == ("id", "day")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: of(Table("all", misspelt)), "has a parameter `order`.* Did you mean `orders`?"),
        (lambda: of(Table("all", more_rows)), "parameter `rows`.* has to be in `steps`"),
        (lambda: of(Table("all", chicken), steps=[egg]), "in a circle: egg ← chicken ← egg"),
        (lambda: of(Table("all", nothing)), "takes no input.*`orders`"),
        (lambda: of(Table("all", orders)), "name of a source and of a function.*Rename the function"),
        (lambda: of(Table("all", lambda orders: orders)), "a lambda stands where a function has to"),
        (lambda: of(Table("all", rows), Table("all", joined)), "`all` names more than one table"),
        (lambda: of(Table("orders_quarantine", rows)), "`orders_quarantine` names more than one table"),
        (lambda: of(Topic("all", rows), Topic("all", rows)), "`all` names more than one topic"),
        (lambda: of(Topic("orders", rows)), "orders is read and written"),
        (lambda: of(Table("all", rows), sources=[Source("a"), Source("a")]), "`a` names more than one source"),
        (lambda: of(), "`outputs` is a list of at least one"),
        (lambda: of("all"), "`outputs` holds 'all'"),
        (lambda: of(Table("all", rows), sources=["orders"]), "`sources` holds 'orders'"),
        (lambda: Source("2026", json="id string"), "cannot be a parameter.*name="),
        (lambda: Source("a b"), "has the topic 'a b'"),
        (lambda: Source("a", checks={"bad": "x > 0"}), "checks and no `json`"),
        (lambda: Table("a/b", rows), "has the name 'a/b'"),
        (lambda: Table("all", rows, on_match="replace"), '"ignore" or "update", not \'replace\''),
        (lambda: Table("all", rows, on_match="update"), "no key to find them by"),
        (lambda: Table("all", rows, key="id", on_match="update", format="parquet"), "Parquet files cannot"),
        (lambda: Table("all", rows, format="csv"), '"delta" or "parquet"'),
    ],
)
def test_what_makes_no_sense(wrong: Any, said: str) -> None:
    with pytest.raises(BadPipeline, match=said) as refused:
        wrong()
    assert "\n" not in str(refused.value)


def test_two_functions_of_one_name() -> None:
    def rows(orders: Any) -> Any:
        return orders

    with pytest.raises(BadPipeline, match="two functions are called `rows`"):
        of(Table("all", rows), steps=[globals()["rows"]])


def test_a_function_that_forgot_to_return() -> None:
    def forgetful(orders: Any) -> Any:
        orders.select("id")

    class Frame:
        isStreaming = False  # noqa: N815

        def select(self, name: str) -> None:
            pass

    frame: Any = Frame()
    with pytest.raises(BadPipeline, match=r"`forgetful` \(test_declaration.py, line \d+\).*`return` missing"):
        of(Table("all", forgetful)).flow.frame("forgetful", {"orders": frame})
