"""docs/settings.md: every setting with its default, what it takes, who may alter it, where it is not as in Kafka."""

from collections.abc import Iterable

from klamm.config import Kind, Setting, Status, broker_settings, topic_settings
from klamm.config.cluster_table import CLUSTER_SETTINGS
from klamm.config.coordinator_table import COORDINATOR_SETTINGS
from klamm.config.differences import ALTERABLE_IN_KAFKA, DEFAULTS_IN_KAFKA, MEANT_DIFFERENTLY
from klamm.config.log_table import LOG_SETTINGS
from klamm.config.rules import allowed
from klamm.config.server_table import SERVER_SETTINGS
from klamm.config.topic_table import SYNONYMS, TOPIC_SETTINGS

OPENING = """\
# Settings

<!-- Made by `python -m tools.docs` from src/klamm/config. Change it there. -->

Kafka's names, and Kafka's defaults but for [a few](#where-klamm-is-not-as-kafka). A broker takes them from
`--config server.properties`, from `--set name=value`, and, those that may be altered, from any Kafka admin client while
it runs; `klamm up --set` gives them to every node. A topic's own are given with `klamm topic create --config` and
`klamm topic alter --config`.

A name that does not exist stops the broker from starting, with the nearest right one. A setting that has no meaning
here is named in a warning. One that promises what is not there yet, security above all, stops the broker from starting
unless it has its default. `klamm up` and `klamm.Cluster` set one themselves, `group.initial.rebalance.delay.ms=0`.

**altered**: `-` is read when the broker starts; `broker` may be altered while it runs, for one broker; `cluster` for
one broker or for all.
"""

LARGEST = {"2147483647": "no limit", "9223372036854775807": "no limit", "1.7976931348623157E308": "no limit"}
NOTES = {
    "Transactions": "Transactions are not there yet; these are read and checked, and wait for them.",
}


def settings_page() -> str:
    parts = [OPENING, "## Of a broker\n"]
    tables = (SERVER_SETTINGS, LOG_SETTINGS, CLUSTER_SETTINGS, COORDINATOR_SETTINGS)
    sections = [section for table in tables for section in _sections(table)]
    known = {name for _, names in sections for name in names}
    own = [each.name for each in broker_settings().values() if each.status is Status.WORKS and each.name not in known]
    sections += [("Not of Kafka", own)] if own else []
    parts += [_section(title, names, broker_settings()) for title, names in sections]
    parts.append(
        "## Of a topic\n\nWhat a topic does not set itself is taken from the broker's setting in the last column.\n"
    )
    parts += [_topic_section(title, names) for title, names in _sections(TOPIC_SETTINGS)]
    parts += [
        _differences(),
        _unmeant("Without effect", Status.NO_EFFECT, "Accepted, with a warning that gives the reason."),
    ]
    parts.append(_unmeant("Refused", Status.NOT_YET, "A value other than the default stops the broker from starting."))
    return "\n".join(parts)


def _sections(table: str) -> list[tuple[str, list[str]]]:
    """The titles of a table, and the names below each in the order in which they stand there."""
    found: list[tuple[str, list[str]]] = []
    for line in table.splitlines():
        if line.startswith("# "):
            found.append((line[2:], []))
        elif line.startswith("    "):
            found[-1][1].append(line.split()[0].lstrip("~+"))
    return found


def _section(title: str, names: Iterable[str], settings: dict[str, Setting]) -> str:
    lines = [f"### {title}\n", *([NOTES[title] + "\n"] if title in NOTES else [])]
    lines += ["| setting | default | takes | altered | |", "|---|---|---|---|---|"]
    lines += [
        f"| `{each.name}` | {_default(each)} | {_takes(each)} | {_altered(each)} | {_meaning(each)} |"
        for each in map(settings.__getitem__, names)
    ]
    return "\n".join([*lines, ""])


def _topic_section(title: str, names: Iterable[str]) -> str:
    lines = [
        f"### {title}, of a topic\n",
        "| setting | default | takes | | else the broker's |",
        "|---|---|---|---|---|",
    ]
    for each in map(topic_settings().__getitem__, names):
        inherited = ", ".join(f"`{name}`" for name, _ in SYNONYMS.get(each.name, ()))
        lines.append(f"| `{each.name}` | {_default(each)} | {_takes(each)} | {_meaning(each)} | {inherited} |")
    return "\n".join([*lines, ""])


def _differences() -> str:
    lines = ["## Where Klamm is not as Kafka\n", "| setting | Klamm | Kafka | why |", "|---|---|---|---|"]
    for name, (kafka, why) in DEFAULTS_IN_KAFKA.items():
        lines.append(f"| `{name}` | {_default(broker_settings()[name])} | {_code(kafka or 'none')} | {why} |")
    for name, (who, why) in ALTERABLE_IN_KAFKA.items():
        lines.append(f"| `{name}` | not altered while it runs | altered by {who} | {why} |")
    for name, (_, why) in MEANT_DIFFERENTLY.items():
        lines.append(f"| `{name}` | other meaning | | {why} |")
    return "\n".join([*lines, ""])


def _unmeant(title: str, status: Status, what: str) -> str:
    """Names only, by the reason that they share."""
    by_reason: dict[str, list[str]] = {}
    for each in [*broker_settings().values(), *topic_settings().values()]:
        if each.status is status:
            by_reason.setdefault(each.documentation, []).append(f"`{each.name}`")
    lines = [f"## {title}\n", f"{what}\n", "| why | settings |", "|---|---|"]
    lines += [f"| {reason} | {', '.join(dict.fromkeys(names))} |" for reason, names in by_reason.items()]
    return "\n".join([*lines, ""])


def _default(setting: Setting) -> str:
    if setting.required:
        return "must be set"
    if setting.default in (None, ""):
        return "none"
    return LARGEST.get(setting.default or "", _code(setting.default or ""))


def _takes(setting: Setting) -> str:
    return (
        allowed(setting.kind, setting.rule).replace("|", "\\|") if setting.kind is not Kind.PASSWORD else "a password"
    )


def _altered(setting: Setting) -> str:
    return "-" if setting.alterable == "fixed" else setting.alterable


def _meaning(setting: Setting) -> str:
    differs = f" **Not as in Kafka:** {setting.differs}." if setting.differs else ""
    return setting.documentation.replace("|", "\\|") + differs


def _code(text: str) -> str:
    return f"`{text}`"
