"""What a pipeline file says: where records come from, which functions they go through, where the results stay.

    pipeline = Pipeline(
        name="orders",
        sources=[Source("orders", json="id string, total double", checks={"the total is negative": "total >= 0"})],
        outputs=[Table("orders", big_orders, key="id")],
    )

The functions take data frames and give one back. The name of a parameter says what it gets: the name of a source (with
`_` for `-` and `.`), or of another function. So the flow is what Python's own signatures say, and a test calls the
functions with frames of its own.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

from klamm.pipeline.flow import Flow
from klamm.pipeline.problems import BadPipeline, listed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    Transform = Callable[..., DataFrame]

IGNORE, UPDATE = "ignore", "update"
DELTA, PARQUET = "delta", "parquet"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


@dataclass(frozen=True)
class Source:
    """A topic. With `json` its columns are those of the schema and a struct `source` (topic, partition, offset,
    timestamp, key); what does not parse or fails a check is quarantined. Without, they are the connector's."""

    topic: str
    json: "StructType | str | None" = None
    _: KW_ONLY
    checks: Mapping[str, str] = field(default_factory=dict)
    """What is wrong, in words, to the SQL condition that holds for a good record. Neither false nor null is good."""
    name: str = ""
    """What functions call it; else the topic with `_` for `-` and `.`."""
    options: Mapping[str, str] = field(default_factory=dict)
    """More options of the source, as {"startingOffsets": "latest"}; it starts with the earliest unless told."""
    examples: Sequence[object] = ()
    """Values for `klamm pipeline test`: dicts (written as JSON), strings or bytes (taken as they are)."""

    def __post_init__(self) -> None:
        _named("a source", "topic", self.topic)
        if not self.name:
            object.__setattr__(self, "name", re.sub(r"\W", "_", self.topic))
        if not self.name.isidentifier():
            raise BadPipeline(
                f"the source of topic {self.topic} is called {self.name!r}, which cannot be a parameter of a function. "
                f'Give it a name that can: Source("{self.topic}", name="{"t_" + self.name}").'
            )
        if self.checks and self.json is None:
            raise BadPipeline(
                f"source {self.name} has checks and no `json`: they are about the columns of its schema. "
                f'Say which: Source("{self.topic}", json="id string, …", checks=…).'
            )

    @property
    def quarantine_table(self) -> str:
        return f"{self.name}_quarantine"

    @property
    def quarantine_topic(self) -> str:
        return f"{self.topic}.quarantine"


@dataclass(frozen=True)
class Table:
    """Rows of a function, in a table: each record's exactly once, and with a `key` one row a key."""

    name: str
    function: "Transform"
    _: KW_ONLY
    key: str | Sequence[str] = ()
    on_match: str = IGNORE
    """What happens to a row whose key is there already: `ignore` keeps the old one, `update` replaces it."""
    format: str = DELTA
    expect: Sequence[Mapping[str, object]] | None = None
    """The rows that `klamm pipeline test` has to give from the sources' examples; columns left out are not compared."""

    def __post_init__(self) -> None:
        _named("a table", "name", self.name)
        object.__setattr__(self, "key", (self.key,) if isinstance(self.key, str) else tuple(self.key))
        if self.on_match not in (IGNORE, UPDATE):
            raise BadPipeline(f'table {self.name}: on_match is "ignore" or "update", not {self.on_match!r}.')
        if self.format not in (DELTA, PARQUET):
            raise BadPipeline(f'table {self.name}: format is "delta" or "parquet", not {self.format!r}.')
        if self.on_match == UPDATE and not self.key:
            raise BadPipeline(
                f"table {self.name} updates rows, and has no key to find them by. "
                f'Name the columns that tell one row from another: key="id", or key=("id", "day").'
            )
        if self.on_match == UPDATE and self.format == PARQUET:
            raise BadPipeline(
                f"table {self.name} updates rows, which Parquet files cannot. "
                'Leave format="parquet" out: Delta, the default, can.'
            )

    @property
    def label(self) -> str:
        return f"table {self.name}"


@dataclass(frozen=True)
class Topic:
    """Rows of a function, as records: columns `value`, and `key`, `headers`, `partition` where there are such."""

    name: str
    function: "Transform"
    _: KW_ONLY
    options: Mapping[str, str] = field(default_factory=dict)
    """More options of the sink."""
    expect: Sequence[Mapping[str, object]] | None = None

    def __post_init__(self) -> None:
        _named("a topic", "name", self.name)

    @property
    def label(self) -> str:
        return f"topic {self.name}"


Output = Table | Topic


@dataclass(frozen=True)
class Pipeline:
    name: str
    _: KW_ONLY
    sources: Sequence[Source]
    outputs: Sequence[Output]
    steps: "Sequence[Transform]" = ()
    bootstrap: str = ""
    """The cluster, unless the command line names another."""

    def __post_init__(self) -> None:
        _named("a pipeline", "name", self.name)
        _are("sources", self.sources, Source)
        _are("outputs", self.outputs, Output)
        _once("source", [source.name for source in self.sources])
        _once("table", self.table_names)
        _once("topic", self.topic_names)
        circles = sorted({source.topic for source in self.sources} & set(self.topic_names))
        if circles:
            raise BadPipeline(
                f"topic {circles[0]} is read and written by the same pipeline, which would never end. "
                "Write to a topic of another name."
            )
        functions = [*self.steps, *(output.function for output in self.outputs)]
        object.__setattr__(self, "_flow", Flow([source.name for source in self.sources], functions))

    @property
    def flow(self) -> Flow:
        flow: Flow = self._flow  # type: ignore[attr-defined]
        return flow

    @property
    def quarantining(self) -> list[Source]:
        """Sources whose records may turn out to be bad."""
        return [source for source in self.sources if source.json is not None]

    @property
    def table_names(self) -> list[str]:
        named = [output.name for output in self.outputs if isinstance(output, Table)]
        return named + [source.quarantine_table for source in self.quarantining]

    @property
    def topic_names(self) -> list[str]:
        """Those that it writes."""
        named = [output.name for output in self.outputs if isinstance(output, Topic)]
        return named + [source.quarantine_topic for source in self.quarantining]

    def source(self, name: str) -> Source:
        return next(source for source in self.sources if source.name == name)

    def apply(self, spark: "SparkSession", rows: "Mapping[str, Any]") -> "dict[str, DataFrame]":
        """For tests of transforms: each output's rows (and `NAME_quarantine` of each source), made from values of each
        source as in `examples`, or from a data frame of your own in place of a source's."""
        from klamm.pipeline.trying import applied

        return applied(self, spark, rows)


def _named(what: str, which: str, name: object) -> None:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise BadPipeline(
            f"{what} has the {which} {name!r}. Letters, digits, `-`, `_` and `.` make a {which}, starting with a "
            "letter or digit."
        )


def _are(what: str, things: object, kind: Any) -> None:
    if not isinstance(things, list | tuple) or not things:
        raise BadPipeline(f"`{what}` is a list of at least one, as in {what}=[{_EXAMPLES[what]}].")
    for thing in things:
        if not isinstance(thing, kind):
            raise BadPipeline(f"`{what}` holds {thing!r}, which is none of them: write {what}=[{_EXAMPLES[what]}].")


_EXAMPLES = {"sources": 'Source("orders", json="id string")', "outputs": 'Table("orders", orders_of_today, key="id")'}


def _once(what: str, names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise BadPipeline(f"{listed(twice)} names more than one {what}. Give each a name of its own.")
