"""The tree of commands as scripts for the shells. Each finds the command that the words so far lead to, then offers
what may follow: after an option that takes something, that; else verbs and arguments; options after a dash.

Names of topics and groups are asked for when they are wanted: `klamm completion --names topics` and the words so far.
"""

import shlex
from collections.abc import Iterable, Sequence

from klamm.cli.completion_tree import ANYTHING, DIRECTORIES, FILES, LIVE, PYTHON, Command, Option, Taken

BASH = """\
# Completion of klamm for bash, made by `klamm completion bash`.
_klamm() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}
    local at= index words= kinds= kind= IFS=$' \\t\\n'
    for ((index = 1; index < COMP_CWORD; index++)); do
        case "$at ${{COMP_WORDS[index]}}" in
            {paths}) at="$at ${{COMP_WORDS[index]}}" ;;
        esac
    done
    case "$at $previous" in
{values}
        *)
            case "$at" in
{commands}
            esac
            ;;
    esac
    for kind in {live}; do
        case " $kinds " in
            *" $kind "*) words+=" $(klamm completion --names $kind --line "$COMP_LINE" 2>/dev/null)" ;;
        esac
    done
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    IFS=$'\\n'
    case " $kinds " in
        *" files "*) compopt -o filenames; COMPREPLY+=($(compgen -f -- "$current")) ;;
        *" directories "*) compopt -o filenames; COMPREPLY+=($(compgen -d -- "$current")) ;;
        *" python "*) compopt -o filenames
            COMPREPLY+=($(compgen -f -X '!*.py' -- "$current"; compgen -d -- "$current")) ;;
    esac
}}
complete -F _klamm klamm
"""

ZSH = """\
#compdef klamm
# Completion of klamm for zsh, made by `klamm completion zsh`.
_klamm() {{
    local at= index kinds= kind=
    local -a offered
    for ((index = 2; index < CURRENT; index++)); do
        case "$at ${{words[index]}}" in
            ({paths}) at="$at ${{words[index]}}" ;;
        esac
    done
    case "$at ${{words[CURRENT - 1]}}" in
{values}
        (*)
            case "$at" in
{commands}
            esac
            ;;
    esac
    for kind in {live}; do
        case " $kinds " in
            (*" $kind "*) compadd -- ${{(f)"$(klamm completion --names $kind "${{words[@]:1}}" 2>/dev/null)"}} ;;
        esac
    done
    case " $kinds " in
        (*" files "*) _files ;;
        (*" directories "*) _files -/ ;;
        (*" python "*) _files -g '*.py' ;;
    esac
    (( $#offered )) && _describe klamm offered
}}
if [[ "$funcstack[1]" == _klamm ]]; then _klamm "$@"; else compdef _klamm klamm; fi
"""

FISH = """\
# Completion of klamm for fish, made by `klamm completion fish`.
function __klamm_at
    set -l at
    for word in (commandline -opc)[2..-1]
        contains -- "$at $word" {paths}; and set at "$at $word"
    end
    test "$at" = "$argv[1]"
end
function __klamm_names
    klamm completion --names $argv[1] (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null
end
complete -c klamm -f
{lines}
"""

MOST_SAID = 70
"""Characters of an option's help that a shell shows beside it."""


def bash(root: Command) -> str:
    return BASH.format(
        live=" ".join(LIVE),
        paths="|".join(_quoted(_at(each)) for each in _verbs_of(root)),
        values="\n".join(f"        {_quoted(place)}) {_bash_offer([takes])} ;;" for place, takes in _values(root)),
        commands="\n".join(
            f"                {_quoted(_at(each))})\n"
            f'                    case "$current" in\n'
            f"                        -*) words={_quoted(' '.join(_flags(each)))} ;;\n"
            f"                        *) {_bash_offer(each.arguments, [verb.path[-1] for verb in each.verbs])} ;;\n"
            f"                    esac\n"
            f"                    ;;"
            for each in root.walk()
        ),
    )


def _bash_offer(taken: Sequence[Taken], verbs: Sequence[str] = ()) -> str:
    words = [*verbs, *(word for each in taken for word in each.words)]
    return f"words={_quoted(' '.join(words))} kinds={_quoted(' '.join(_kinds(taken)))}"


def zsh(root: Command) -> str:
    return ZSH.format(
        live=" ".join(LIVE),
        paths="|".join(_quoted(_at(each)) for each in _verbs_of(root)),
        values="\n".join(f"        ({_quoted(place)}) {_zsh_offer([takes])} ;;" for place, takes in _values(root)),
        commands="\n".join(
            f"                ({_quoted(_at(each))})\n"
            f'                    if [[ "$PREFIX" == -* ]]; then offered=({_zsh_options(each.options)})\n'
            f"                    else {_zsh_offer(each.arguments, each.verbs)}; fi\n"
            f"                    ;;"
            for each in root.walk()
        ),
    )


def _zsh_offer(taken: Sequence[Taken], verbs: Sequence[Command] = ()) -> str:
    described = [_described(verb.path[-1], verb.what) for verb in verbs]
    described += [_described(word, "") for each in taken for word in each.words]
    return f"offered=({' '.join(described)}) kinds={_quoted(' '.join(_kinds(taken)))}"


def _zsh_options(options: Iterable[Option]) -> str:
    return " ".join(_described(flag, option.what) for option in options for flag in option.flags)


def _described(word: str, what: str) -> str:
    name = word.replace(":", "\\:")
    return _quoted(f"{name}:{_short(what)}" if what else name)


def fish(root: Command) -> str:
    lines = []
    for command in root.walk():
        start = f"complete -c klamm -n {_fish_quoted(f'__klamm_at {_fish_quoted(_at(command))}')}"
        lines += [
            f"{start} -a {_fish_quoted(verb.path[-1])} -d {_fish_quoted(_short(verb.what))}" for verb in command.verbs
        ]
        lines += [f"{start} {offered}" for each in command.arguments if (offered := _fish_taken(each))]
        for option in command.options:
            names = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)
            takes = "" if option.takes is None else f" {_fish_value(option.takes)}"
            lines.append(f"{start} {names}{takes} -d {_fish_quoted(_short(option.what))}")
    return FISH.format(paths=" ".join(_fish_quoted(_at(each)) for each in _verbs_of(root)), lines="\n".join(lines))


def _fish_value(takes: Taken) -> str:
    if takes.kind == FILES:
        return "-r -F"
    return f"-x {_fish_taken(takes)}".rstrip()


def _fish_taken(takes: Taken) -> str:
    if takes.words:
        return f"-a {_fish_quoted(' '.join(takes.words))}"
    if takes.kind in LIVE:
        return f"-a {_fish_quoted(f'(__klamm_names {takes.kind})')}"
    if takes.kind == DIRECTORIES:
        return "-a '(__fish_complete_directories)'"
    if takes.kind == PYTHON:
        return "-a '(__fish_complete_suffix .py)'"
    return "-F" if takes.kind == FILES else ""


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


# What they share.


def _at(command: Command) -> str:
    """Where we are, as the scripts write it: a space before each word."""
    return "".join(f" {word}" for word in command.path)


def _verbs_of(root: Command) -> list[Command]:
    return [each for each in root.walk() if each.path]


def _values(root: Command) -> list[tuple[str, Taken]]:
    """Every option that takes something, after the words that lead to it."""
    return [
        (f"{_at(command)} {flag}", option.takes)
        for command in root.walk()
        for option in command.options
        if option.takes is not None
        for flag in option.flags
    ]


def _flags(command: Command) -> list[str]:
    return [flag for option in command.options for flag in option.flags]


def _kinds(taken: Sequence[Taken]) -> list[str]:
    return list(dict.fromkeys(each.kind for each in taken if not each.words and each.kind != ANYTHING))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MOST_SAID else f"{line[: MOST_SAID - 1].rstrip()}…"


def _quoted(text: str) -> str:
    return shlex.quote(text)


SCRIPTS = {"bash": bash, "zsh": zsh, "fish": fish}
