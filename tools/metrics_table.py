"""The table of docs/metrics.md, from the families themselves: `python tools/metrics_table.py` writes it anew.

A test holds the page against it, and the families against what a broker really serves.
"""

from pathlib import Path

from klamm.runtime.metrics.family import FAMILIES
from klamm.runtime.metrics.page import PARTS

PAGE = Path(__file__).parent.parent / "docs" / "metrics.md"
BEGIN, END = "<!-- table: tools/metrics_table.py -->\n", "<!-- end of table -->\n"


def table() -> str:
    assert PARTS, "the families are listed when these are imported"
    lines = ["| metric | kind | labels | what it says |", "|---|---|---|---|"]
    for each in sorted(FAMILIES, key=lambda family: family.name):
        labels = ", ".join(f"`{name}`" for name in each.label_names)
        lines.append(f"| `{each.name}` | {each.kind} | {labels} | {each.what} |")
    return "\n".join(lines) + "\n"


def with_table(page: str) -> str:
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
