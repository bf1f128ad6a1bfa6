"""What the driver asks of the tasks of a batch, and what they report. All of it is small."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from klamm.pipeline.tables.places import Held


@dataclass(frozen=True)
class Written:
    """What a batch changed. `was_done`: nothing, because it is in the table since an earlier run."""

    rows_added: int = 0
    rows_replaced: int = 0
    rows_left_out: int = 0
    """Whose key the table, or the batch itself, has in another row."""
    was_done: bool = False


@dataclass(frozen=True)
class Work:
    """`files` are those of `table` to look for keys in, or to merge; new ones go to `directory`.

    `mode` is append, ignore, update or deal; `schema` is pyarrow's.
    """

    table: str
    directory: str
    stem: str
    schema: Any
    mode: str
    key: tuple[str, ...] = ()
    key_digest: str = ""
    buckets: int = 1
    files: tuple[Held, ...] = ()
    may_merge: bool = True


@dataclass(frozen=True)
class NewFile:
    """A file that a task wrote into the work's directory. `stats` is JSON, as Delta wants it.

    It is no change if its rows were in the table before.
    """

    name: str
    size: int
    rows: int
    modified_ms: int
    stats: str
    is_change: bool = True


@dataclass
class Report:
    """What one task did, or all of them together."""

    added: list[NewFile] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    rows_added: int = 0
    rows_replaced: int = 0
    rows_left_out: int = 0
    null_keys: int = 0

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def of_all(reports: list[str]) -> "Report":
        together = Report()
        for text in reports:
            one = json.loads(text)
            together.added += [NewFile(**file) for file in one["added"]]
            together.removed += one["removed"]
            together.rows_added += one["rows_added"]
            together.rows_replaced += one["rows_replaced"]
            together.rows_left_out += one["rows_left_out"]
            together.null_keys += one["null_keys"]
        return together
