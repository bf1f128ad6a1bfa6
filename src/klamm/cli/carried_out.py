"""A command that asks a cluster, carried out: whatever stands in its way becomes one line and an exit code."""

import argparse
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from klamm.cli.options import Misused, bootstrap_of
from klamm.cli.saying import FAILED, MISUSED, failed, say
from klamm.local.asking import NoAnswer, NobodyHere
from klamm.local.problems import LocalError

IS_ONE_RUNNING = "Is a cluster running? `klamm up` starts one"


def carried_out(
    command: str, options: argparse.Namespace, action: Callable[[], int], *problems: type[Exception]
) -> int:
    """The exit code. `options` say which cluster; `problems` are the command's own, each a sentence."""
    known: tuple[type[Exception], ...] = (LocalError, *problems)
    try:
        code = action()
        if code == FAILED:
            _maybe_say_undecided(command, options, "")
        return code
    except Misused as problem:
        return failed(command, problem, MISUSED)
    except UnicodeEncodeError as problem:
        # A word of the command line may be any bytes; whatever has a name on the wire is text.
        return failed(command, f"{problem.object!r} is no UTF-8, and names are", MISUSED)
    except NoAnswer as problem:
        if isinstance(problem, NobodyHere):
            way_back = _way_back(options)
            return failed(command, f"no broker answers: {way_back}" if way_back else nobody(problem))
        code = failed(command, nobody(problem))
        _maybe_say_undecided(command, options, "")
        return code
    except known as problem:
        code = failed(command, problem)
        _maybe_say_undecided(command, options, str(problem))
        return code
    except BrokenPipeError:
        raise
    except OSError as problem:
        code = failed(command, _of_the_system(problem))
        _maybe_say_undecided(command, options, "")
        return code
    except Exception as problem:
        if not _is_of_the_client(problem):
            raise
        return failed(command, _in_words(problem))


def nobody(problem: NoAnswer) -> str:
    """In a sentence, where no cluster of this directory is meant."""
    return f"no broker answers: {problem}{f'. {IS_ONE_RUNNING}' if isinstance(problem, NobodyHere) else ''}"


def _way_back(options: argparse.Namespace) -> str | None:
    from klamm.cli.tips import way_back

    with suppress(LocalError, Misused):
        return way_back(options.dir, bootstrap_of(options))
    return None


def _maybe_say_undecided(command: str, options: argparse.Namespace, said: str) -> None:
    """Of a cluster on this machine that has no majority, unless just that was said: it may be why."""
    from klamm.cli.no_majority import undecided

    with suppress(LocalError, Misused):
        words = undecided(options.dir, bootstrap_of(options))
        if words is not None and words not in said:
            say(f"klamm {command}: {words}")


def _of_the_system(problem: OSError) -> str:
    """Some have no words: the `TimeoutError` of whoever waited for another thread."""
    where = "" if problem.filename is None else f"{problem.filename}: "
    wordless = "no answer in time" if isinstance(problem, TimeoutError) else type(problem).__name__
    return f"{where}{problem.strerror or str(problem) or wordless}"


def _is_of_the_client(problem: Exception) -> bool:
    """A library that nobody has imported raises nothing: it is not imported for the question."""
    kafka: Any = sys.modules.get("confluent_kafka")
    return kafka is not None and isinstance(problem, kafka.KafkaException)


def _in_words(problem: Exception) -> str:
    told: Any = problem.args[0] if problem.args else problem
    return str(told.str()) if hasattr(told, "str") else str(told)
