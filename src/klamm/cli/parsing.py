"""A parser that helps whoever mistypes: the usage of the verb that was meant, and the word that was.

argparse lets a verb's parser hand unknown options up, where the usage of the whole command is shown: here each parser
says itself what it does not know.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from klamm.cli.saying import MISUSED
from klamm.cli.wrapping import AsWideAsTheTerminal

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

OF_KAFKA = {
    "--broker-list": ("--bootstrap",),
    "--max-messages": ("--count",),
    "--offset": ("--from",),
    "--topic": ("TOPIC", "NAME"),
}
"""How Kafka's tools call it, and how those of our commands do that have it."""
A_WORD = ", a word of its own"


class Parser(argparse.ArgumentParser):
    def __init__(self, **options: Any) -> None:
        """Those of its verbs are made in the same way."""
        super().__init__(**{"formatter_class": AsWideAsTheTerminal, **options})

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Nothing is unknown: there is nobody who would know it."""
        if not args and self._has_verbs():
            self.print_help(sys.stderr)
            self.exit(MISUSED)
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(self._not_known(unknown))
        return options, unknown

    def _print_message(self, message: str, file: "SupportsWrite[str] | None" = None) -> None:
        """argparse would keep to itself that a disk is full."""
        said_to = file or sys.stderr
        if message and said_to is not None:
            said_to.write(message)

    def _has_verbs(self) -> bool:
        return any(action.dest == "verb" for action in self._actions)

    def _not_known(self, words: Sequence[str]) -> str:
        flag = next((word.partition("=")[0] for word in words if word.startswith("-")), None)
        if flag is None:
            return f"what is {' '.join(words)} for? There was enough before it"
        ours = next((name for name in OF_KAFKA.get(flag, ()) if self._takes(name)), None)
        if ours is not None:
            return f"there is no option {flag}: here it is {ours}{'' if ours.startswith('-') else A_WORD}"
        return f"there is no option {flag}.{did_you_mean(flag, self._option_string_actions)}"

    def _takes(self, name: str) -> bool:
        return name in self._option_string_actions or any(
            name == action.metavar for action in self._get_positional_actions()
        )

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            names = [str(each) for each in action.choices]
            hint = did_you_mean(str(value), names) or f" There is {', '.join(names)}."
            raise argparse.ArgumentError(action, f"there is no {value}.{hint}")


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """A sentence to put behind another, with a space before it; empty where nothing is near."""
    from difflib import get_close_matches

    known = list(names)
    near = get_close_matches(word, known, n=1) or [each for each in known if word and each.startswith(word)][:1]
    return f" Did you mean {near[0]}?" if near else ""
