"""`python -m klamm` is `klamm`."""

from klamm.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
