"""The compatibility table of README.md: which of Kafka's APIs are served, in which versions, from the code's list."""

from klamm.handlers import TABLE
from klamm.wire.apis import API_BY_KEY, Api

SERVED = {
    "reading and writing": (0, 1, 2, 3, 18, 21, 22, 23),
    "groups": (8, 9, 10, 11, 12, 13, 14, 15, 16, 42, 47, 68, 69),
    "topics and settings": (19, 20, 32, 33, 35, 37, 43, 44, 45, 46, 74, 75),
    "the cluster": (55, 57, 60, 64, 80, 81),
    "between nodes": (52, 53, 54, 56, 58, 59, 62, 63, 67),
}
ABSENT = {
    "transactions": (24, 25, 26, 27, 28, 61, 65, 66),
    "security": (17, 29, 30, 31, 36, 38, 39, 40, 41, 50, 51),
    "share groups and streams groups": (*range(76, 80), *range(83, 93)),
    "quotas": (48, 49),
    "several directories a node": (34, 73),
    "telemetry": (71, 72),
    "between nodes": (70, 82),
}


def apis_table() -> str:
    """Markdown. An API that is in no row goes into one of its own, so that none is forgotten."""
    served = [_row(name, keys) for name, keys in _rows(SERVED, set(TABLE))]
    absent = [
        f"| {name} | {', '.join(API_BY_KEY[key].name for key in keys)} |"
        for name, keys in _rows(ABSENT, set(API_BY_KEY) - set(TABLE))
    ]
    lines = [
        f"{len(TABLE)} of the {len(API_BY_KEY)} APIs of Kafka 4.3, each in every version that Kafka 4.3 serves:",
        "",
    ]
    lines += ["| for | APIs and versions |", "|---|---|", *served, "", "Not there:", ""]
    return "\n".join([*lines, "| for | APIs |", "|---|---|", *absent])


def _rows(groups: dict[str, tuple[int, ...]], keys: set[int]) -> list[tuple[str, list[int]]]:
    rows = [(name, [key for key in members if key in keys]) for name, members in groups.items()]
    rest = keys - {key for _, members in rows for key in members}
    return [row for row in [*rows, ("other", sorted(rest))] if row[1]]


def _row(name: str, keys: list[int]) -> str:
    return f"| {name} | {', '.join(f'{API_BY_KEY[key].name} {_versions(API_BY_KEY[key])}' for key in keys)} |"


def _versions(api: Api) -> str:
    return str(api.min_version) if api.min_version == api.max_version else f"{api.min_version}–{api.max_version}"
