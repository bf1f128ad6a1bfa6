"""`curl -s URL` for pages, on machines without it: what is there, on standard output."""

import sys
import urllib.request


def main(words: list[str]) -> int:
    for address in (word for word in words if not word.startswith("-")):
        with urllib.request.urlopen(address, timeout=30) as page:
            sys.stdout.write(page.read().decode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
