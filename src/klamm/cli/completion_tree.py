"""The command line as a tree, read off the parsers of the commands, so that completion is written nowhere twice.

What an option or an argument takes is told by its choices, or by the word that its help uses for it: TOPIC and GROUP
are names that the cluster knows, ID is a node of it, FILE and DIR are on this machine. An argument with choices makes a
branch for each of them, so that none is offered again behind it.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module

from klamm.cli import COMMANDS

TOPICS, GROUPS, NODES, FILES, DIRECTORIES, ANYTHING = "topics", "groups", "nodes", "files", "directories", "anything"
PYTHON = "python"
"""Files of Python, and directories on the way to one."""
TOPIC_SETTINGS, BROKER_SETTINGS = "topic-settings", "broker-settings"
LIVE = (TOPICS, GROUPS, NODES, TOPIC_SETTINGS, BROKER_SETTINGS)
"""Names that are asked for when the key is pressed."""
SETTINGS_OF = {"--config": TOPIC_SETTINGS, "--unset": TOPIC_SETTINGS, "--set": BROKER_SETTINGS}
"""Options that take a KEY, or KEY=VALUE, of one of these kinds."""
OF_BROKERS = {TOPICS: NODES, TOPIC_SETTINGS: BROKER_SETTINGS}
"""What follows `topic` in `klamm config`, and what follows `broker`."""
WORDS = "words"
PLACES = ("beginning", "end")
"""What --from takes, besides offsets and times."""
KINDS = {"TOPIC": TOPICS, "GROUP": GROUPS, "FILE.py": PYTHON, "FILE": FILES, "CSV": FILES, "DIR": DIRECTORIES}
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
    is_choice: bool = False
    """One of the words that an argument takes, and no verb with a parser of its own."""

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
    options, arguments, verbs = list[Option](), list[Taken](), list[Command]()
    choices: Taken | None = None
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            said = {each.dest: each.help or "" for each in action._choices_actions}
            verbs += [_verb(each, (*path, name), said.get(name, "")) for name, each in action.choices.items()]
        elif action.help == argparse.SUPPRESS:
            continue
        elif action.option_strings:
            takes = None if action.nargs == 0 else _taken(action)
            options.append(Option(tuple(action.option_strings), _help(parser, action), takes))
        elif action.choices is not None and not arguments:
            choices = _taken(action)
        else:
            arguments.append(_taken(action))
    command = Command(path, what, tuple(options), tuple(arguments), tuple(verbs))
    if choices is None:
        return command
    branches = [
        replace(command, path=(*path, word), what="", is_choice=True, arguments=_arguments_after(word, arguments))
        for word in choices.words
    ]
    return replace(command, arguments=(), verbs=tuple(branches))


def _arguments_after(word: str, arguments: Sequence[Taken]) -> tuple[Taken, ...]:
    if word != "broker":
        return tuple(arguments)
    return tuple(Taken(OF_BROKERS.get(each.kind, each.kind), each.words) for each in arguments)


def _verb(parser: argparse.ArgumentParser, path: tuple[str, ...], what: str) -> Command:
    apart = APART.get(path)
    return command_of(import_module(apart).make_parser() if apart else parser, path, what)


def _taken(action: argparse.Action) -> Taken:
    if action.choices is not None:
        return Taken(WORDS, tuple(str(each) for each in action.choices))
    word = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if word == "WHERE":
        return Taken(WORDS, PLACES)
    if word.partition("=")[0] == "KEY":
        flags = action.option_strings
        return Taken(next((SETTINGS_OF.get(flag, ANYTHING) for flag in flags), TOPIC_SETTINGS))
    if word == "ID" and not action.option_strings:
        return Taken(NODES)
    return Taken(next((kind for start, kind in KINDS.items() if word.startswith(start)), ANYTHING))


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    return (action.help or "") % {**vars(action), "prog": parser.prog}
