"""`klamm config`, against a cluster."""

import json
from typing import Any

import pytest

from tests.cli.conftest import Klamm
from tests.harness.topics import create_topic


@pytest.fixture
def made(servers: str, topic: str) -> str:
    create_topic(servers, topic, 1)
    return topic


def settings(klamm_command: Klamm, *words: str) -> dict[str, dict[str, Any]]:
    code, out, err = klamm_command("config", "show", *words, "--json")
    assert code == 0, err
    return {each["name"]: each for each in json.loads(out)["settings"]}


def test_a_topics_settings_are_set_shown_and_unset(klamm_command: Klamm, made: str) -> None:
    code, out, err = klamm_command("config", "show", "topic", made)
    assert (code, out) == (0, b"") and f"settings of topic {made} at their defaults; --all shows them" in err
    words = ("config", "set", "topic", made, "retention.ms=60000", "cleanup.policy=compact,delete")
    code, out, _ = klamm_command(*words)
    assert (code, out.decode()) == (
        0,
        f"topic {made}: retention.ms=60000\ntopic {made}: cleanup.policy=compact,delete\n",
    )
    assert klamm_command("config", "show", "topic", made)[1].decode().splitlines() == [
        "setting         value           from   default",
        "cleanup.policy  compact,delete  topic  delete",
        "retention.ms    60000           topic  604800000",
    ]
    assert klamm_command("config", "unset", "topic", made, "retention.ms")[0] == 0
    assert settings(klamm_command, "topic", made).keys() == {"cleanup.policy"}
    everything = settings(klamm_command, "topic", made, "--all")
    assert len(everything) > 20 and everything["retention.ms"]["source"] == "default"
    assert everything["retention.ms"]["value"] == everything["retention.ms"]["default"] == "604800000"


def test_one_setting_is_explained(klamm_command: Klamm, made: str) -> None:
    code, out, err = klamm_command("config", "show", "topic", made, "retention.ms")
    table, _, explained = out.decode().partition("\n\n")
    assert code == 0 and err == "" and len(table.splitlines()) == 2
    assert explained.startswith("retention.ms: ") and len(explained) > 30


def test_brokers_one_and_all(klamm_command: Klamm) -> None:
    assert klamm_command("config", "set", "broker", "all", "log.retention.ms=77777777")[0] == 0
    try:
        assert settings(klamm_command, "broker", "all")["log.retention.ms"]["value"] == "77777777"
        seen = settings(klamm_command, "broker", "0", "log.retention.ms")["log.retention.ms"]
        assert (seen["value"], seen["source"]) == ("77777777", "all brokers")
        assert klamm_command("config", "set", "broker", "0", "log.retention.ms=88888888")[0] == 0
        seen = settings(klamm_command, "broker", "0", "log.retention.ms")["log.retention.ms"]
        assert (seen["value"], seen["source"]) == ("88888888", "broker")
        code, out, _ = klamm_command("config", "unset", "broker", "0", "log.retention.ms", "--json")
        assert (code, json.loads(out)) == (0, {"broker": 0, "unset": ["log.retention.ms"]})
    finally:
        assert klamm_command("config", "unset", "broker", "all", "log.retention.ms")[0] == 0
    assert settings(klamm_command, "broker", "0")["node.id"]["source"] == "server.properties"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("show", "topic", "not-there"), 1, "there is no topic not-there"),
        (("set", "topic", "not-there", "retention.ms=1"), 1, "there is no topic not-there"),
        (("show", "broker", "77"), 1, "there is no broker 77 that takes part"),
        (("show", "broker", "none"), 2, "expected its number, or all"),
        (("set", "topic", "x", "retention.ms"), 2, "KEY=VALUE"),
        (("set", "broker", "0", "process.roles=broker"), 1, "broker 0: "),
        (("show", "broker", "0", "log.retention.mss"), 1, "Did you mean log.retention.ms?"),
        (("unset", "broker", "all", "log.retention.mss"), 1, "log.retention.mss is not set for all brokers"),
    ],
)
def test_what_is_refused_is_said_in_words(klamm_command: Klamm, words: tuple[str, ...], code: int, said: str) -> None:
    ended, out, err = klamm_command("config", *words)
    assert (ended, out) == (code, b"") and said in err, err


def test_a_setting_that_is_not_there_changes_nothing(klamm_command: Klamm, made: str) -> None:
    code, _, err = klamm_command("config", "set", "topic", made, "retention.ms=5", "retention.mss=5")
    assert code == 1 and "retention.mss" in err
    code, _, err = klamm_command("config", "unset", "topic", made, "retention.mss")
    assert code == 1 and "Did you mean retention.ms?" in err
    assert settings(klamm_command, "topic", made) == {}
