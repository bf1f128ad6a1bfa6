"""`klamm config`: settings of topics and brokers, by Kafka's names: shown with where they come from, set and unset."""

import argparse
import re
from collections.abc import Callable, Sequence

from klamm.cli.carried_out import carried_out
from klamm.cli.changing import changing
from klamm.cli.config_asking import BROKER, SOURCES, TOPIC, Owner, Setting, change, settings_of
from klamm.cli.effects import say_without_effect_on
from klamm.cli.group_asking import Refused, cluster_of
from klamm.cli.options import Misused, add_asking_verb, pairs_of, parser_of
from klamm.cli.parsing import did_you_mean
from klamm.cli.saying import counted, print_json, say, say_result, table

DESCRIPTION = """\
Settings of a topic, of one broker, or of all brokers, by the names that Kafka gives them. What is set here counts from
then on, without a restart. Settings that a broker reads only when it starts are in its file or its command line.
"""

EXAMPLES = """\
examples:
  klamm config show topic invoice                  what differs from the defaults
  klamm config show topic invoice --all            everything
  klamm config show broker 0 log.retention.ms      one setting, and what it means
  klamm config set topic invoice retention.ms=86400000 cleanup.policy=compact,delete
  klamm config set broker all log.retention.ms=604800000
  klamm config unset topic invoice retention.ms

exit code 0: done; 1: the cluster refused it or did not answer; 2: asked for in a way that makes no sense
"""

SHOW = """\
Where a value comes from: topic (set for it), broker or all brokers (set while they run), start (that
broker's command line or its file: --set, server.properties), default.

examples:
  klamm config show topic invoice
  klamm config show topic invoice retention.ms min.insync.replicas
  klamm config show broker 0 --all
  klamm config show broker all                     what is set for all of them
  klamm config show topic invoice --all --json | jq '.settings[] | select(.source != "default")'
"""

SET = """\
examples:
  klamm config set topic invoice retention.ms=86400000
  klamm config set topic invoice cleanup.policy=compact min.insync.replicas=2
  klamm config set broker 1 log.retention.ms=604800000
  klamm config set broker all log.retention.ms=604800000
"""

UNSET = """\
examples:
  klamm config unset topic invoice retention.ms
  klamm config unset broker all log.retention.ms
"""

ALL_BROKERS = "all"
OWNERS = ("topic", "broker")


def make_parser() -> argparse.ArgumentParser:
    parser = parser_of("config", DESCRIPTION, EXAMPLES)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    shown = _verb(verbs, "show", "values, where they come from, and the defaults", SHOW, show)
    shown.add_argument("key", nargs="*", default=[], metavar="KEY", help="only these, with what they mean")
    shown.add_argument("--all", action="store_true", help="defaults, too")
    given = _verb(verbs, "set", "set some, all of them or none", SET, set_some)
    given.add_argument("pair", nargs="+", metavar="KEY=VALUE")
    gone = _verb(verbs, "unset", "back to what is there without them", UNSET, unset_some)
    gone.add_argument("key", nargs="+", metavar="KEY")
    return parser


def run(arguments: Sequence[str]) -> int:
    options = make_parser().parse_args(arguments)
    return carried_out(f"config {options.verb}", options, lambda: int(options.run(options)), Refused)


def show(options: argparse.Namespace) -> int:
    owner, cluster = _owner(options), cluster_of(options)
    settings = settings_of(cluster, owner)
    if options.key:
        names = _known(owner, settings, options.key)
        settings = [each for each in settings if each.name in names]
    shown = settings if options.all or options.key else [each for each in settings if not each.is_default]
    if options.json:
        print_json({**_owner_document(owner), "settings": [_document(each) for each in shown]})
        return 0
    if shown:
        rows = [(each.name, _value(each), _source(each), each.default) for each in shown]
        say_result(table(("setting", "value", "from", "default"), rows))
    for each in shown if options.key else ():
        say_result(f"\n{each.name}: {_told(each)}")
    if len(shown) < len(settings):
        say(f"{counted(len(settings) - len(shown), 'setting')} of {owner} at their defaults; --all shows them")
    elif not shown:
        say(f"nothing is set for {owner}")
    return 0


def set_some(options: argparse.Namespace) -> int:
    owner, values = _owner(options), pairs_of("", options.pair)
    cluster = changing(options)
    change(cluster, owner, values)
    if options.json:
        print_json({**_owner_document(owner), "set": values})
    else:
        say_result("\n".join(f"{owner}: {key}={value}" for key, value in values.items()))
    say_without_effect_on(cluster, owner.kind, values)
    return 0


def unset_some(options: argparse.Namespace) -> int:
    owner, keys, cluster = _owner(options), list(dict.fromkeys(options.key)), changing(options)
    # The cluster would take any name; whoever mistypes one should hear of it.
    _known(owner, settings_of(cluster, owner), keys)
    change(cluster, owner, {}, keys)
    if options.json:
        print_json({**_owner_document(owner), "unset": keys})
    else:
        say_result("\n".join(f"{owner}: {key} unset" for key in keys))
    return 0


def _known(owner: Owner, settings: Sequence[Setting], keys: Sequence[str]) -> set[str]:
    names = [each.name for each in settings]
    for key in keys:
        if key not in names:
            what = "not set for" if owner.is_all_brokers else "no setting of"
            raise Refused(f"{key} is {what} {owner}.{did_you_mean(key, names)}")
    return set(keys)


def _value(setting: Setting) -> str | None:
    return "(secret)" if setting.is_sensitive and setting.value is None else setting.value


def _source(setting: Setting) -> str:
    return SOURCES.get(setting.source, f"source {setting.source}")


def _told(setting: Setting) -> str:
    """What it means; Apache Kafka tells that in HTML."""
    return re.sub(r"<[^<>]+>", "", setting.documentation or "") or "nothing is known of it here"


def _document(setting: Setting) -> dict[str, object]:
    return {
        "name": setting.name,
        "value": setting.value,
        "source": _source(setting),
        "default": setting.default,
        "read_only": setting.is_read_only,
        "documentation": setting.documentation,
    }


def _owner_document(owner: Owner) -> dict[str, object]:
    if owner.kind == TOPIC:
        return {"topic": owner.name}
    return {"broker": int(owner.name) if owner.name else ALL_BROKERS}


def _owner(options: argparse.Namespace) -> Owner:
    if options.of == "topic":
        return Owner(TOPIC, options.name)
    if options.name != ALL_BROKERS and not (options.name.isascii() and options.name.isdigit()):
        raise Misused(f"broker {options.name}: expected its number, or {ALL_BROKERS}")
    return Owner(BROKER, "" if options.name == ALL_BROKERS else str(int(options.name)))


def _kind_of_owner(verb: str) -> Callable[[str], str]:
    def kind(text: str) -> str:
        if text not in OWNERS:
            # Without an argument, whose name would come first and say nothing.
            raise argparse.ArgumentError(
                None, f"expected topic or broker, and then its name: is `klamm config {verb} topic {text}` meant?"
            )
        return text

    return kind


def _verb(
    verbs: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    what: str,
    epilog: str,
    run_verb: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    parser = add_asking_verb(verbs, name, what, run_verb, epilog)
    parser.add_argument("of", choices=OWNERS, type=_kind_of_owner(name), help="whose")
    parser.add_argument("name", metavar="TOPIC|BROKER", help=f"the topic's name; the broker's number, or {ALL_BROKERS}")
    return parser
