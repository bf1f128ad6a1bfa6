"""`python -m tools.docs`: writes what is made from the code, the tables of README.md and docs/settings.md.

With `--check` nothing is written, and the exit code is 1 if a page is not what the code says.
"""

import sys
from pathlib import Path

from tools.docs.apis import apis_table
from tools.docs.settings import settings_page

ROOT = Path(__file__).parent.parent.parent
BEGIN, END = "<!-- begin apis, made by `python -m tools.docs` -->", "<!-- end apis -->"


def made() -> dict[Path, str]:
    """Each page that is made, or has a made part, as it should be."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    assert begin and end, "README.md has lost the place of its table"
    return {
        ROOT / "README.md": f"{before}{BEGIN}\n{apis_table()}\n{END}{after}",
        ROOT / "docs" / "settings.md": settings_page(),
    }


def stale() -> list[Path]:
    return [path for path, text in made().items() if not path.exists() or path.read_text(encoding="utf-8") != text]


def main(words: list[str]) -> int:
    old = stale()
    for path in old:
        print(f"{path.relative_to(ROOT)} {'is not what the code says' if '--check' in words else 'written'}")
        if "--check" not in words:
            path.write_text(made()[path], encoding="utf-8")
    return 1 if old and "--check" in words else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
