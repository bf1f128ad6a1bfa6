"""Kafka's own classes as the referee of our settings: names, kinds, defaults, rules, and Java's `.properties` files."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from klamm.config import Kind, broker_settings, parse_properties, topic_settings
from klamm.config.differences import ALTERABLE_IN_KAFKA, DEFAULTS_IN_KAFKA
from klamm.config.kinds import BadValueError, written
from klamm.config.topic_table import SYNONYMS
from tests.harness.kafka_node import jar_directory, skip_without_kafka

pytestmark = pytest.mark.compat
HERE = Path(__file__).parent

TEXTS = (
    """
|0|1|-1|-2|5|10|+2000000|99999999999|0x10|1_000|abc|TRUE|false|0.5|1.5|0.5f|1e3| 7 |a,b|a,a|a,,b|compact|compact,delete
delete,delete|gzip|zstd|CreateTime|logappendtime|*|0:1,1:2|0:1,x|0:1,|broker|broker,controller|PLAINTEXT
""".strip("\n")
    .replace("\n", "|")
    .split("|")
)

PROPERTIES = [
    "a=1\nb:2\nc 3\nd\n",
    "# no\n! no\n  # no\n\n  spaced  =  value  \n\ttab\t:\tx\n",
    "long=one,\\\n     two,\\\n\tthree\nnext=4",
    "even=backslashes\\\\\nnot=joined",
    "odd=backslashes\\\\\\\njoined",
    "key\\ with\\=odd\\:signs=a\\tb\\nc\\\\d\\qe",
    "unicode=\\u00e4\\u20AC\\ud83d\\ude00 \u00e4\u20ac",
    "twice=1\ntwice=2\r\nmac=3\rlast=4\\",
    "=no key\n:also\n",
    "blank continuation=\\\n\n after=1",
    "comment=\\\n# not a comment",
    "k==v\nk2=:v\nk3 :=v\nform\\ feed\f=\fx\n",
    "separator=\u2028kept\x0bhere\x1c\u0085\nz=1",
]

DOUBLES = [0.5, 1.0, 0.0, 1e7, 9999999.0, 1e-3, 9e-4, 123456789.125, 1.7976931348623157e308, 0.1 + 0.2, -2.5e-7]


@pytest.fixture(scope="module")
def kafka() -> dict[str, Any]:
    skip_without_kafka()
    asked = {"judge": wishes(), "properties": PROPERTIES, "doubles": DOUBLES}
    command = ["java", "-cp", f"{jar_directory()}/*", str(HERE / "SettingsOfKafka.java")]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def wishes() -> list[tuple[str, str, str]]:
    """Every setting with every text. Java would load classes, and its words about addresses are its own."""
    scopes = (("broker", broker_settings()), ("topic", topic_settings()))
    return [
        (scope, name, text)
        for scope, settings in scopes
        for name, setting in settings.items()
        if setting.kind is not Kind.CLASS and setting.rule not in ("voters", "servers") and _is_in_kafka(scope, name)
        for text in TEXTS
    ]


def _is_in_kafka(scope: str, name: str) -> bool:
    return name not in (BESIDE_KAFKAS_TABLE if scope == "broker" else OUR_TOPIC_SETTINGS)


OUR_TOPIC_SETTINGS = {"klamm.validate.records"}
BESIDE_KAFKAS_TABLE = {
    "klamm.metrics.listener",
    "klamm.partition.max.producers",
    "klamm.broker.max.producers",
    "klamm.group.max.bytes",
    "klamm.groups.max.bytes",
    "klamm.validate.records",
    "super.users",
    "allow.everyone.if.no.acl.found",
    "delegation.token.master.key",
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
}


def test_every_name_of_kafka_is_there_and_no_other(kafka: dict[str, Any]) -> None:
    assert set(broker_settings()) == set(kafka["broker"]) | BESIDE_KAFKAS_TABLE
    assert set(topic_settings()) == set(kafka["topic"]) | OUR_TOPIC_SETTINGS


def test_kinds_and_defaults_are_kafkas_but_for_the_few_that_differ(kafka: dict[str, Any]) -> None:
    for name, row in kafka["broker"].items():
        setting = broker_settings()[name]
        expected = DEFAULTS_IN_KAFKA[name][0] if name in DEFAULTS_IN_KAFKA else setting.default
        assert (setting.kind.name, expected, setting.listed) == (row["kind"], row["default"], row["listed"]), name
        assert setting.required == (row["required"] and name not in DEFAULTS_IN_KAFKA), name
        assert name not in DEFAULTS_IN_KAFKA or setting.default != row["default"] or row["required"], name
    for name, row in kafka["topic"].items():
        setting = topic_settings()[name]
        assert (setting.kind.name, setting.default, setting.listed) == (row["kind"], row["default"], row["listed"]), (
            name
        )


def test_what_may_be_altered_at_run_time_is_kafkas_but_for_the_listeners(kafka: dict[str, Any]) -> None:
    modes = {"fixed": "read-only", "broker": "per-broker", "cluster": "cluster-wide"}
    for name, row in kafka["broker"].items():
        setting = broker_settings()[name]
        alterable = ALTERABLE_IN_KAFKA[name][0] if name in ALTERABLE_IN_KAFKA else setting.alterable
        assert modes[alterable] == row["mode"], name


def test_a_topics_setting_has_kafkas_synonyms_on_the_broker(kafka: dict[str, Any]) -> None:
    ours = {name: [[other, str(factor)] for other, factor in pairs] for name, pairs in SYNONYMS.items()}
    for name in OUR_TOPIC_SETTINGS:
        del ours[name]
    assert ours == kafka["synonyms"]


def test_values_are_taken_and_refused_in_kafkas_words(kafka: dict[str, Any]) -> None:
    different = []
    for (scope, name, text), theirs in zip(wishes(), kafka["judged"], strict=True):
        setting = (topic_settings() if scope == "topic" else broker_settings())[name]
        try:
            setting.parsed(text)
            ours = None
        except BadValueError as problem:
            ours = str(problem)
        if ours != theirs and not _is_forgiven(name, text, theirs):
            different.append((scope, name, text, ours, theirs))
    assert not different


def _is_forgiven(name: str, text: str, theirs: str | None) -> bool:
    """A cleanup policy that is named twice counts once: a broker of Kafka sees to that before this check. A number that
    is not a codec is refused by Kafka only when its coordinator starts."""
    if name == "offsets.topic.compression.codec":
        return theirs is None
    return name == "log.cleanup.policy" and text in ("a,a", "delete,delete")


def test_properties_are_read_as_java_reads_them(kafka: dict[str, Any]) -> None:
    for text, expected in zip(PROPERTIES, kafka["properties"], strict=True):
        assert {key: value for key, value, _ in parse_properties(text)} == expected, text


def test_doubles_are_written_as_java_writes_them(kafka: dict[str, Any]) -> None:
    assert [written(number) for number in DOUBLES] == kafka["doubles"]
