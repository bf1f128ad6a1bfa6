"""Topics created, altered and deleted: through confluent-kafka, as any program's wish would be."""

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from klamm.cli.changing import refuse_if_undecided
from klamm.cli.group_asking import NOT_DECIDED, Cluster, Refused, cluster_of
from klamm.cli.options import Misused, addresses_of, bootstrap_of, pairs_of
from klamm.cli.saying import FAILED, failed, print_json, say_result
from klamm.cli.topic_asking import no_topic
from klamm.controller.names import CONSUMER_OFFSETS, TRANSACTION_STATE
from klamm.local.asking_several import first_answer

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

CONNECT_SECONDS = 5.0
CHANGE_SECONDS = 30.0
BROKER_DEFAULT = -1
INTERNAL = {CONSUMER_OFFSETS: "the offsets of all groups", TRANSACTION_STATE: "the state of all transactions"}
"""What is lost with a topic that the brokers keep for themselves."""


class NotThere(Refused):
    """A topic of this name."""


def create(options: argparse.Namespace) -> int:
    config = pairs_of("--config", options.config)
    admin = admin_client(options)
    from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

    new = NewTopic(
        options.name,
        num_partitions=BROKER_DEFAULT if options.partitions is None else options.partitions,
        replication_factor=BROKER_DEFAULT if options.replication is None else options.replication,
        config=config,
    )
    asked = admin.create_topics([new], operation_timeout=CHANGE_SECONDS, request_timeout=CHANGE_SECONDS)
    code = _outcome(asked, "created", options)
    return code or _said_of_settings(config, options)


def delete(options: argparse.Namespace) -> int:
    names = list(dict.fromkeys(options.name))
    # It is refused at once where nothing can be decided; what is asked first would be asked of brokers that are away.
    admin = admin_client(options)
    if not options.force:
        _refuse_internal(cluster_of(options), names)
    asked = admin.delete_topics(names, operation_timeout=CHANGE_SECONDS, request_timeout=CHANGE_SECONDS)
    return _outcome(asked, "deleted", options)


def _refuse_internal(cluster: Cluster, names: Sequence[str]) -> None:
    topics = cluster.topics()
    internal = next((name for name in names if topics.get(name)), None)
    if internal is not None:
        raise Refused(
            f"{internal} is the brokers' own: {INTERNAL.get(internal, 'what they remember')} would be gone; nothing "
            "was deleted. --force deletes it all the same"
        )


def alter(options: argparse.Namespace) -> int:
    config = pairs_of("--config", options.config)
    if not config and not options.unset and options.partitions is None:
        raise Misused("nothing to alter; say --partitions, --config or --unset")
    both = sorted(set(config) & set(options.unset))
    if both:
        raise Misused(f"{both[0]} cannot be set and unset at once")
    admin = admin_client(options)
    asked: list[Mapping[Any, Any]] = []
    if config or options.unset:
        asked.append(_settings_asked(admin, options.name, config, options.unset))
    if options.partitions is not None:
        from confluent_kafka.admin import NewPartitions  # type: ignore[attr-defined]

        new = NewPartitions(options.name, options.partitions)
        asked.append(admin.create_partitions([new], request_timeout=CHANGE_SECONDS))
    problems = [problem for each in asked if (problem := _problem_of(each, options))]
    for problem in problems:
        failed("topic alter", problem)
    return FAILED if problems else _said(options, "altered", [options.name]) or _said_of_settings(config, options)


def _settings_asked(
    admin: "AdminClient", name: str, config: Mapping[str, str], unset: Sequence[str]
) -> Mapping[Any, Any]:
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource  # type: ignore[attr-defined]

    changes = [ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in config.items()]
    changes += [ConfigEntry(key, None, incremental_operation=AlterConfigOpType.DELETE) for key in dict.fromkeys(unset)]
    topic = ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=changes)
    return admin.incremental_alter_configs([topic], request_timeout=CHANGE_SECONDS)


def _outcome(asked: Mapping[Any, Any], how: str, options: argparse.Namespace) -> int:
    """Of each topic on its own: one may be refused and the others done."""
    done, code = [], 0
    for name, future in asked.items():
        problem = _problem_of({name: future}, options)
        if problem is None:
            done.append(name)
        else:
            code = failed(f"topic {options.verb}", problem)
    if done or options.json:
        _said(options, how, done)
    return code


def _problem_of(asked: Mapping[Any, Any], options: argparse.Namespace) -> Refused | None:
    try:
        wait_done(asked)
    except NotThere as problem:
        return no_topic(cluster_of(options), str(problem))
    except Refused as problem:
        return problem
    return None


def _said(options: argparse.Namespace, how: str, names: Sequence[str]) -> int:
    if options.json:
        print_json({how: list(names)})
    else:
        say_result("\n".join(f"topic {name} {how}" for name in names))
    return 0


def _said_of_settings(config: Mapping[str, str], options: argparse.Namespace) -> int:
    if config:
        # Imported for those who set something: the tables of all settings cost the others a fiftieth of a second.
        from klamm.cli.config_asking import TOPIC
        from klamm.cli.effects import say_without_effect_on

        say_without_effect_on(cluster_of(options), TOPIC, config)
    return 0


def wait_done(asked: Mapping[Any, Any]) -> Any:
    """The result of the last of them; Refused with the broker's words."""
    from confluent_kafka import KafkaError, KafkaException

    result = None
    for what, future in asked.items():
        try:
            result = future.result()
        except KafkaException as problem:
            name = (what if isinstance(what, str) else what.name) or "''"
            if problem.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise NotThere(name) from problem
            late = (KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT)
            hint = f"; {NOT_DECIDED}" if problem.args[0].code() in late else ""
            raise Refused(f"{name}: {problem.args[0].str()}{hint}") from problem
    return result


def admin_client(options: argparse.Namespace) -> "AdminClient":
    """A client, once we know that somebody is there: librdkafka would try for as long as the request may take."""
    bootstrap = bootstrap_of(options)
    refuse_if_undecided(options)
    first_answer(addresses_of(bootstrap), CONNECT_SECONDS, lambda _: None)
    from confluent_kafka.admin import AdminClient

    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
