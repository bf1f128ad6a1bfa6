"""`pip install` for pages: nothing is installed, but what is asked for has to be there to be installed.

The tests run what the checkout has. A page that tells people to install `klamm[sparc]` would still be wrong, so names
and extras are looked up in pyproject.toml.
"""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parent.parent.parent / "pyproject.toml"


def main(words: list[str]) -> int:
    if not words or words[0] != "install":
        print(f"pip {' '.join(words)}: pages only install", file=sys.stderr)
        return 2
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    extras = set(project["optional-dependencies"])
    known = {
        name(text) for texts in [project["dependencies"], *project["optional-dependencies"].values()] for text in texts
    }
    for wanted in (word for word in words[1:] if not word.startswith("-")):
        if name(wanted) not in known | {"klamm"}:
            print(f"pip: {wanted} is neither klamm nor one of its dependencies", file=sys.stderr)
            return 1
        asked = re.search(r"\[(.*)\]", wanted)
        strange = set(asked[1].replace(" ", "").split(",")) - extras if asked and name(wanted) == "klamm" else set()
        if strange:
            print(f"pip: klamm has no extra {', '.join(strange)}", file=sys.stderr)
            return 1
        print(f"{wanted} could be installed")
    return 0


def name(requirement: str) -> str:
    found = re.match(r"[\w.-]+", requirement)
    return found[0].lower().replace("_", "-") if found else requirement


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
