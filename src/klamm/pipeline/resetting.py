"""`--reset`: a pipeline begins again. It forgets how far it has read, and its state; `--drop-tables` drops its tables.

Tables that stay are the rule, since they may hold what the topics do not have any more. Who reads the topics again
finds the old rows there: those with a key once, others twice. Tables that go are those that the pipeline writes, and
only if each of them is one that it has made (`tables/dropping.py`): if one is not, nothing is changed.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from klamm.pipeline.declaration import Pipeline
from klamm.pipeline.keeping import Directory, applications
from klamm.pipeline.problems import together

if TYPE_CHECKING:
    from klamm.pipeline.tables.dropping import Droppable

STAY = (
    "The tables stay with their rows: those whose key comes again are left alone, or replaced where a table updates; "
    "tables without a key get everything once more. --drop-tables removes the tables as well."
)


@dataclass(frozen=True, slots=True)
class Reset:
    drops_tables: bool = False

    def announced(self, directory: Directory, pipeline: Pipeline) -> str:
        """What would go, in a paragraph; nothing if there is nothing."""
        known, tables = directory.checkpoints, self._tables(directory, pipeline)
        if not known and not tables:
            return ""
        said = []
        if known:
            said.append(
                f"This forgets how far {together(known)} {_have(known)} read in {directory.path}, and the state."
            )
        if not self.drops_tables:
            said.append(STAY)
        elif tables:
            said.append(f"This removes from {directory.tables}: {_with_rows(tables)}.")
        else:
            said.append("There are no tables to remove.")
        others = self._others(directory.tables, pipeline)
        if others:
            said.append(f"What else is there stays, since this pipeline does not write it: {together(others)}.")
        return " ".join([*said, "Topics that it writes get everything once more."])

    def check(self, directory: Directory, pipeline: Pipeline) -> None:
        """NotOurs if a table that is to go is not the pipeline's."""
        self._tables(directory, pipeline)

    def carry_out(self, directory: Directory, pipeline: Pipeline, say: Callable[[str], None]) -> None:
        """Tables first. Whoever is killed in between finds tables missing in the next run, which says so; tables with
        everything in them twice would say nothing. All goes, or nothing does."""
        from klamm.pipeline.tables.dropping import put_aside, sweep

        tables, known = self._tables(directory, pipeline), directory.checkpoints
        with put_aside(tables):
            directory.forget()
        if self.drops_tables:
            sweep(directory.tables)
        if tables:
            say(f"removed: {_with_rows(tables)}")
        if known:
            say(f"forgotten: how far {together(known)} had read")

    def _tables(self, directory: Directory, pipeline: Pipeline) -> "list[Droppable]":
        """All of them looked at before one goes; NotOurs if one is not the pipeline's."""
        if not self.drops_tables:
            return []
        from klamm.pipeline.tables.dropping import droppable

        found = [droppable(directory.tables / name, applications(pipeline.name, name)) for name in pipeline.table_names]
        return [table for table in found if table is not None]

    def _others(self, tables: Path, pipeline: Pipeline) -> list[str]:
        if not self.drops_tables or not tables.is_dir():
            return []
        return sorted({each.name for each in tables.iterdir() if each.name[0] != "."} - set(pipeline.table_names))


def _with_rows(tables: "Iterable[Droppable]") -> str:
    return together(f"table {table.name} ({table.rows:,} row{'' if table.rows == 1 else 's'})" for table in tables)


def _have(names: list[str]) -> str:
    return "has" if len(names) == 1 else "have"
