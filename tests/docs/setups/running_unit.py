"""The unit file of docs/running.md, klamm.service, starts a broker with options that there are."""

import configparser
import shlex

from klamm.cli.broker import make_parser


def main() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    assert unit.read("klamm.service") == ["klamm.service"]
    program, command, *options = shlex.split(unit["Service"]["ExecStart"])
    assert program.endswith("/klamm") and command == "broker", program
    given = make_parser().parse_args(options)
    assert given.config and given.dir, "the file and the directory are on the line"


if __name__ == "__main__":
    main()
