"""Prometheus' text format: a family of samples is a line of help, a line that names its kind, and a line a sample."""

from collections.abc import Iterable, Mapping, Sequence

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def header(name: str, kind: str, what: str) -> str:
    escaped = what.replace("\\", "\\\\").replace("\n", "\\n")
    return f"# HELP {name} {escaped}\n# TYPE {name} {kind}\n"


def labels(pairs: Mapping[str, object]) -> str:
    """As they stand behind a name. Values may be anything that a stranger chose."""
    return "{" + ",".join(f'{name}="{_escaped(str(value))}"' for name, value in pairs.items()) + "}" if pairs else ""


def family_text(name: str, kind: str, what: str, samples: Iterable[tuple[Mapping[str, object], float]]) -> str:
    lines = (f"{name}{labels(each)} {number(value)}\n" for each, value in samples)
    return header(name, kind, what) + "".join(lines)


def number(value: float) -> str:
    """With every digit: a counter of bytes has more than six of them soon."""
    return str(value) if isinstance(value, int) else repr(value)


def histogram(
    pairs: Mapping[str, object], bounds: Sequence[float], counts: Sequence[int], total: float
) -> list[tuple[str, float]]:
    """The samples of one histogram, behind the family's name. The last of the counts has no bound."""
    assert len(counts) == len(bounds) + 1
    samples: list[tuple[str, float]] = []
    below = 0
    for bound, count in zip(bounds, counts, strict=False):
        below += count
        samples.append((f"_bucket{labels({**pairs, 'le': number(bound)})}", below))
    whole = sum(counts)
    behind = labels(pairs)
    return [
        *samples,
        (f"_bucket{labels({**pairs, 'le': '+Inf'})}", whole),
        (f"_sum{behind}", total),
        (f"_count{behind}", whole),
    ]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
