"""The command: `python -m proof losses`, `rolling`, `failover`, `calm`, `start`, `wiped`, `pipeline`,
`new_group`, `fixtures`, `known_bugs`, `mutants`.

Each has --help."""

import argparse
import importlib
import signal
import sys
from pathlib import Path

from proof.store import RESULTS

PROOFS = {
    "losses": "what each acks loses under each failure",
    "rolling": "rolling restarts under load: nothing lost, short pauses",
    "failover": "how long until the next acknowledged write, beside Apache Kafka",
    "calm": "full load, and nobody is taken for dead",
    "start": "how long until a new cluster acknowledges, and what idle nodes weigh",
    "wiped": "a disk is lost: what comes back, and who may vote",
    "new_group": "how long the first group ever waits after the controller was killed",
    "fixtures": "a project's tests on the pytest fixtures, again and again, and no flake",
    "known_bugs": "which seeds catch the known bugs of others, put into our code",
    "mutants": "wrong lines in the core, drawn and not chosen: whether the simulator notices",
    "pipeline": "the invoice pipeline on Spark: tables equal to the ledger, whatever dies",
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proof", description=__doc__)
    commands = parser.add_subparsers(required=True, dest="proof")
    for name, what in PROOFS.items():
        command = commands.add_parser(name, help=what)
        command.add_argument("--results", type=Path, default=RESULTS, help="where lines of JSON and tables go")
        command.add_argument("--fresh", action="store_true", help="begin again instead of going on")
        command.add_argument("--keep", action="store_true", help="leave the nodes' directories")
        importlib.import_module(f"proof.{name}").add_arguments(command)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return int(importlib.import_module(f"proof.{options.proof}").run(options))
    except KeyboardInterrupt:
        print("interrupted; what was seen is kept, and the same command goes on from there")
        return 130


if __name__ == "__main__":
    sys.exit(main())
