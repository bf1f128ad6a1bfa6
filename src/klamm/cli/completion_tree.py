"""The command line as a tree, read off the parsers of the commands, so that completion is written nowhere twice.

What an option or an argument takes is told by its choices, or by the word that its help uses for it: TOPIC and GROUP
are names that the cluster knows, FILE and DIR are on this machine.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module

from klamm.cli import COMMANDS

TOPICS, GROUPS, FILES, DIRECTORIES, ANYTHING = "topics", "groups", "files", "directories", "anything"
LIVE = (TOPICS, GROUPS)
"""Names that are asked for when the key is pressed."""
KINDS = {"TOPIC": TOPICS, "GROUP": GROUPS, "FILE": FILES, "CSV": FILES, "DIR": DIRECTORIES}
APART: dict[tuple[str, ...], str] = {("pipeline", "generate"): "klamm.cli.pipeline_generate"}
"""Verbs that are files of their own."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What may stand in a place: one of some words, or something of a kind."""

    kind: str
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Option:
    flags: tuple[str, ...]
    what: str
    takes: Taken | None
    """None for one that stands alone."""


@dataclass(frozen=True, slots=True)
class Command:
    path: tuple[str, ...]
    what: str
    options: tuple[Option, ...] = ()
    arguments: tuple[Taken, ...] = ()
    verbs: tuple["Command", ...] = ()

    def walk(self) -> Iterator["Command"]:
        yield self
        for verb in self.verbs:
            yield from verb.walk()


def tree() -> Command:
    commands = [
        command_of(import_module(f"klamm.cli.{name}").make_parser(), (name,), what) for name, what in COMMANDS.items()
    ]
    general = (Option(("--help",), "what there is", None), Option(("--version",), "the version", None))
    return Command((), "", general, (), tuple(commands))


def command_of(parser: argparse.ArgumentParser, path: tuple[str, ...], what: str) -> Command:
    options, arguments, verbs = [], [], []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            said = {each.dest: each.help or "" for each in action._choices_actions}
            verbs += [_verb(each, (*path, name), said.get(name, "")) for name, each in action.choices.items()]
        elif action.help == argparse.SUPPRESS:
            continue
        elif action.option_strings:
            takes = None if action.nargs == 0 else _taken(action)
            options.append(Option(tuple(action.option_strings), _help(parser, action), takes))
        else:
            arguments.append(_taken(action))
    return Command(path, what, tuple(options), tuple(arguments), tuple(verbs))


def _verb(parser: argparse.ArgumentParser, path: tuple[str, ...], what: str) -> Command:
    apart = APART.get(path)
    return command_of(import_module(apart).make_parser() if apart else parser, path, what)


def _taken(action: argparse.Action) -> Taken:
    if action.choices is not None:
        return Taken("words", tuple(str(each) for each in action.choices))
    word = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    return Taken(next((kind for start, kind in KINDS.items() if word.startswith(start)), ANYTHING))


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    return (action.help or "") % {**vars(action), "prog": parser.prog}
