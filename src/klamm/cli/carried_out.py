"""A command that asks a cluster, carried out: whatever stands in its way becomes one line and an exit code."""

from collections.abc import Callable

from klamm.cli.options import Misused
from klamm.cli.saying import MISUSED, failed
from klamm.local.asking import NoAnswer
from klamm.local.problems import LocalError


def carried_out(command: str, action: Callable[[], int], *problems: type[Exception]) -> int:
    """The exit code. `problems` are the command's own, each a sentence."""
    known: tuple[type[Exception], ...] = (LocalError, *problems)
    try:
        return action()
    except Misused as problem:
        return failed(command, problem, MISUSED)
    except NoAnswer as problem:
        return failed(command, f"no broker answers: {problem}")
    except known as problem:
        return failed(command, problem)
