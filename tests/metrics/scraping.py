"""Prometheus' text format, read strictly, and pages as a scraper fetches them."""

import re
import urllib.error
import urllib.request
from dataclasses import dataclass, field

SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')
UNESCAPED = {r"\\": "\\", r"\"": '"', r"\n": "\n"}
OF_HISTOGRAMS = ("_bucket", "_sum", "_count")


@dataclass
class Scraped:
    kinds: dict[str, str] = field(default_factory=dict)
    """Families by name, in the page's order."""
    helps: dict[str, str] = field(default_factory=dict)
    samples: dict[tuple[str, frozenset[tuple[str, str]]], float] = field(default_factory=dict)
    families_of_samples: dict[str, str] = field(default_factory=dict)

    def value(self, name: str, **labels: object) -> float:
        return self.samples[name, frozenset((key, str(value)) for key, value in labels.items())]

    def labels_of(self, name: str) -> set[frozenset[str]]:
        """The sets of label names that a series has."""
        return {frozenset(key for key, _ in labels) for other, labels in self.samples if other == name}


def parsed(text: str) -> Scraped:
    """AssertionError where a scraper would refuse the page or misunderstand it."""
    assert text.endswith("\n")
    found = Scraped()
    family = ""
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            family, _, found_help = line[7:].partition(" ")
            assert family not in found.helps, f"{family} comes in two places"
            found.helps[family] = found_help
        elif line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            assert name == family, "a type follows its help"
            found.kinds[name] = kind
        else:
            _add(found, family, line)
    return found


def _add(found: Scraped, family: str, line: str) -> None:
    matched = SAMPLE.fullmatch(line)
    assert matched, line
    name, labels, value = matched.groups()
    endings = OF_HISTOGRAMS if found.kinds[family] == "histogram" else ("",)
    assert name in [family + ending for ending in endings], f"{name} stands among {family}"
    pairs = LABEL.findall(labels or "")
    assert "".join(f'{key}="{text}",' for key, text in pairs).rstrip(",") == (labels or ""), line
    key = name, frozenset((label, re.sub(r"\\.", lambda each: UNESCAPED[each[0]], text)) for label, text in pairs)
    assert key not in found.samples, f"{line} is there twice"
    found.samples[key] = float(value)
    found.families_of_samples[name] = family


def scraped(port: int) -> Scraped:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        return parsed(answer.read().decode())


def asked(port: int, path: str) -> tuple[int, str]:
    """Status and body; status 0 where nobody listens."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()
    except urllib.error.URLError:
        return 0, ""
