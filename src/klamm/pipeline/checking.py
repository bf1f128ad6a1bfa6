"""`klamm pipeline check`, in words: what each output's columns are, and which query it belongs to."""

from typing import TYPE_CHECKING, Any

from klamm.pipeline.declaration import Output, Table
from klamm.pipeline.planning import Plan, PlannedQuery

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def told(plan: Plan) -> str:
    lines = [f"pipeline {plan.pipeline.name}: {_counted(plan.queries)}, and every function fits", ""]
    for query in plan.queries:
        lines += [*_of_query(query), *(_of_output(output, plan.schemas[output.label]) for output in query.outputs), ""]
    lines += [f"nothing is made from `{name}`: leave it out, or is an output missing?" for name in plan.unused]
    return "\n".join(lines).rstrip()


def _of_query(query: PlannedQuery) -> list[str]:
    topics = ", ".join(source.topic for source in query.sources)
    kinds = ", ".join(operator.partition("(")[0] for operator in query.operators)
    lines = [f"query {query.name} reads {topics}{f' and keeps state ({kinds}), {query.mode} mode' if kinds else ''}"]
    if query.quarantines is not None:
        source = query.quarantines
        lines.append(
            f"  what cannot be read goes to table {source.quarantine_table} and topic {source.quarantine_topic}"
        )
    return lines


def _of_output(output: Output, schema: "StructType") -> str:
    width = max(len(field.name) for field in schema.fields) if schema.fields else 0
    columns = [f"    {field.name:<{width}}  {field.dataType.simpleString()}" for field in schema.fields]
    return "\n".join([f"  {output.label}{_ways(output)}", *columns])


def _ways(output: Output) -> str:
    if not isinstance(output, Table):
        return ""
    key = ", ".join(output.key)
    which = "the last row of a key counts" if output.on_match == "update" else "the first row of a key stays"
    return f" ({output.format}, key {key}, {which})" if key else f" ({output.format}, rows are added)"


def document(plan: Plan) -> dict[str, Any]:
    return {
        "pipeline": plan.pipeline.name,
        "queries": [
            {
                "name": query.name,
                "topics": [source.topic for source in query.sources],
                "mode": query.mode,
                "state": list(query.operators),
                "quarantine": query.quarantines.quarantine_table if query.quarantines else None,
                "outputs": [
                    {
                        "kind": "table" if isinstance(output, Table) else "topic",
                        "name": output.name,
                        "columns": {
                            field.name: field.dataType.simpleString() for field in plan.schemas[output.label].fields
                        },
                    }
                    for output in query.outputs
                ],
            }
            for query in plan.queries
        ],
        "unused": list(plan.unused),
    }


def _counted(queries: tuple[PlannedQuery, ...]) -> str:
    return "one query" if len(queries) == 1 else f"{len(queries)} queries"
