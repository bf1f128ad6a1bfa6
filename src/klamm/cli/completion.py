"""`klamm completion`: a script that teaches a shell our commands, verbs and options, and names of topics and groups."""

import argparse
from collections.abc import Collection, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from klamm.cli import COMMANDS
from klamm.cli.options import DEFAULT_DIRECTORY, Misused, add_where, addresses_of, bootstrap_of, parser_of
from klamm.escaping import one_line
from klamm.local.asking import METADATA, Address, Conversation, NoAnswer
from klamm.local.problems import LocalError

DESCRIPTION = """\
Print a script that completes `klamm` in a shell: commands, verbs, options and what they take, and the names of topics
and groups, which the cluster is asked for when the key is pressed, and the numbers of nodes.
"""

EXAMPLES = """\
examples:
  klamm completion bash > ~/.local/share/bash-completion/completions/klamm
  klamm completion zsh > ~/.zfunc/_klamm            with `fpath+=~/.zfunc` before compinit in .zshrc
  klamm completion fish > ~/.config/fish/completions/klamm.fish
  source <(klamm completion bash)                   for this shell only
"""

NODES, TOPIC_SETTINGS, BROKER_SETTINGS = "nodes", "topic-settings", "broker-settings"
SHELLS = ("bash", "zsh", "fish")
ALL_BROKERS = "all"
"""For `klamm config`, beside the number of one."""
NAMES, LINE = "--names", "--line"
OWNER_AT = 3
"""So many words stand before the name in `klamm config set topic invoice`."""
NODES_FOR: dict[str, tuple[str, ...]] = {
    "stop": ("running", "paused"),
    "kill": ("running", "paused"),
    "pause": ("running",),
    "resume": ("paused",),
    "start": ("dead",),
}
"""What the state of a node has to be for a verb of `klamm node` to mean something."""
ANSWER_SECONDS = 1.0
LIST_GROUPS = 16


def make_parser() -> argparse.ArgumentParser:
    parser = parser_of("completion", DESCRIPTION, EXAMPLES)
    parser.add_argument("shell", choices=SHELLS, help="which one")
    return parser


def run(arguments: Sequence[str]) -> int:
    if arguments[:1] == [NAMES]:
        return _print_names(arguments[1:])
    shell = make_parser().parse_args(arguments).shell
    from klamm.cli.completion_scripts import SCRIPTS
    from klamm.cli.completion_tree import tree

    print(SCRIPTS[shell](tree()), end="")
    return 0


def _print_names(words: Sequence[str]) -> int:
    """`topics`, `groups`, `nodes` or settings, and the words typed so far with the one that is not finished, which may
    say which cluster; or --line and the line, because bash takes addresses apart. Whoever presses a key wants no
    complaints: where nobody answers, no names."""
    line = words[2] if words[1:2] == [LINE] and len(words) > 2 else None
    typed = list(words[1:]) if line is None else line.split()
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False, allow_abbrev=False)
    add_where(parser)
    try:
        options, others = parser.parse_known_args(typed)
        kind = words[0] if words else "topics"
        command = _finished(line, others)
        names = [] if line is not None and _names_its_owner(kind, command) else _names(kind, command, options)
    except (argparse.ArgumentError, Misused, LocalError, NoAnswer, OSError):
        return 0
    print("\n".join(one_line(name) for name in sorted(names)))
    return 0


def _finished(line: str | None, words: Sequence[str]) -> list[str]:
    """Command, verb and what follows, without options and what they take, and without the word that is being typed."""
    if line is not None:
        words = words[1:] if line[-1:].isspace() else words[1:-1]
    else:
        words = words[:-1]
    taking = _taking(words[0]) if words and any(each.startswith("-") for each in words) else ()
    before = ("", *words)
    return [each for last, each in zip(before, words, strict=False) if not each.startswith("-") and last not in taking]


def _taking(command: str) -> Collection[str]:
    """The options of a command that take the next word. Only whoever has typed some pays for the question."""
    if command not in COMMANDS:
        return ()
    from klamm.cli.completion_tree import command_of

    parser = import_module(f"klamm.cli.{command}").make_parser()
    found = command_of(parser, (command,), "")
    return {flag for each in found.walk() for option in each.options if option.takes for flag in option.flags}


def _names_its_owner(kind: str, command: Sequence[str]) -> bool:
    """`klamm config set topic` is yet to say which one: its settings come after that."""
    return kind in (TOPIC_SETTINGS, BROKER_SETTINGS) and command[:1] == ["config"] and len(command) <= OWNER_AT


def _names(kind: str, command: Sequence[str], options: argparse.Namespace) -> list[str]:
    if command[:1] == ["config"] and len(command) > OWNER_AT and kind not in (TOPIC_SETTINGS, BROKER_SETTINGS):
        return []  # Whose settings they are is said already.
    if kind == NODES:
        return _nodes(command, options)
    if kind in (TOPIC_SETTINGS, BROKER_SETTINGS):
        return _settings(kind, is_looking=command[:2] == ["config", "show"])
    addresses = addresses_of(bootstrap_of(options, tell=False))
    found = _groups(addresses) if kind == "groups" else _topics(addresses, command[:2] == ["topic", "delete"])
    # Whoever names several names none of them twice.
    return [name for name in found if name not in command[2:]]


def _nodes(command: Sequence[str], options: argparse.Namespace) -> list[str]:
    """Of a cluster on this machine: it has written down who they are. For a verb of `klamm node`, those to whom it can
    be done, and who are not named yet."""
    from klamm.local.processes import state_of
    from klamm.local.record import read_record

    record = read_record(Path(options.dir or DEFAULT_DIRECTORY))
    nodes = () if record is None else record.nodes
    wanted = NODES_FOR.get(command[1]) if command[:1] == ["node"] and len(command) > 1 else None
    if wanted is None:
        return [*([ALL_BROKERS] if command[:1] == ["config"] else []), *(str(node.node_id) for node in nodes)]
    return [
        name
        for node in nodes
        if (name := str(node.node_id)) not in command[2:]
        and ("dead" if node.process is None else state_of(node.process)) in wanted
    ]


def _settings(kind: str, is_looking: bool) -> list[str]:
    """Those that a broker refuses can only be looked at."""
    from klamm.config import Status, broker_settings, topic_settings

    settings = topic_settings() if kind == TOPIC_SETTINGS else broker_settings()
    return [name for name, setting in settings.items() if is_looking or setting.status is not Status.NOT_YET]


def _topics(addresses: Sequence[Address], is_deleting: bool) -> list[str]:
    """The brokers' own are not for deleting."""
    from klamm.wire.messages.metadata import MetadataRequest

    answer = _asked(addresses, METADATA, 12, MetadataRequest(topics=None))
    return [each.name for each in answer.topics if not (is_deleting and each.is_internal)]


def _groups(addresses: Sequence[Address]) -> list[str]:
    """Of every broker that answers soon."""
    from klamm.wire.messages.list_groups import ListGroupsRequest
    from klamm.wire.messages.metadata import MetadataRequest

    names: list[str] = []
    for each in _asked(addresses, METADATA, 12, MetadataRequest(topics=[])).brokers:
        with suppress(NoAnswer):
            answer = _asked([Address(each.host, each.port)], LIST_GROUPS, 5, ListGroupsRequest([], []))
            names += [group.group_id for group in answer.groups]
    return names


def _asked(addresses: Sequence[Address], api_key: int, version: int, request: object) -> Any:
    """Of the first that answers."""
    for address in addresses:
        with suppress(NoAnswer), Conversation(address, ANSWER_SECONDS) as broker:
            return broker.ask(api_key, version, request)
    raise NoAnswer("nobody")
