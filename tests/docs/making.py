"""`make` for pages: nothing is made, but the target has to be in the Makefile of the checkout."""

import subprocess
import sys
from pathlib import Path


def main(words: list[str]) -> int:
    root = Path(__file__).parent.parent.parent
    asked = subprocess.run(["make", "-n", "-C", str(root), *words], capture_output=True, text=True, check=False)
    if asked.returncode != 0:
        print(asked.stderr, file=sys.stderr)
        return asked.returncode
    print(f"make {' '.join(words)} could be run")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
