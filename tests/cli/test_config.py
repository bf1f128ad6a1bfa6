"""`klamm config`, against a cluster."""

import json
from typing import Any

import pytest

from tests.cli.conftest import Klamm
from tests.harness.node import under_test
from tests.harness.topics import create_topic
from tests.harness.waiting import wait_until


@pytest.fixture
def made(servers: str, topic: str) -> str:
    create_topic(servers, topic, 1)
    return topic


def settings(klamm_command: Klamm, *words: str) -> dict[str, dict[str, Any]]:
    code, out, err = klamm_command("config", "show", *words, "--json")
    assert code == 0, err
    return {each["name"]: each for each in json.loads(out)["settings"]}


def own(klamm_command: Klamm, topic: str) -> dict[str, str]:
    """Kafka has a setting for all brokers from the start."""
    found = settings(klamm_command, "topic", topic)
    return {name: each["value"] for name, each in found.items() if each["source"] == "topic"}


def wait_own(klamm_command: Klamm, topic: str, expected: dict[str, str]) -> None:
    """What the controller has decided every broker hears a moment later."""
    wait_until(lambda: own(klamm_command, topic) == expected, f"{topic} has {expected}")


def test_a_topics_settings_are_set_shown_and_unset(klamm_command: Klamm, made: str) -> None:
    code, out, err = klamm_command("config", "show", "topic", made)
    assert code == 0 and f"settings of topic {made} at their defaults; --all shows them" in err
    assert b"topic" not in out, "nothing is set for it"
    words = ("config", "set", "topic", made, "retention.ms=60000", "cleanup.policy=compact,delete")
    code, out, _ = klamm_command(*words)
    assert (code, out.decode()) == (
        0,
        f"topic {made}: retention.ms=60000\ntopic {made}: cleanup.policy=compact,delete\n",
    )
    wait_own(klamm_command, made, {"retention.ms": "60000", "cleanup.policy": "compact,delete"})
    heading, *rows = klamm_command("config", "show", "topic", made)[1].decode().splitlines()
    assert heading.split() == ["setting", "value", "from", "default"]
    cleanup, retention = [row.split() for row in rows if "topic" in row]
    assert cleanup == ["cleanup.policy", "compact,delete", "topic", "delete"]
    # Apache Kafka does not tell the default of a setting whose synonym is in hours.
    assert retention[:3] == ["retention.ms", "60000", "topic"] and retention[3] in ("604800000", "-")
    assert klamm_command("config", "unset", "topic", made, "retention.ms")[0] == 0
    wait_own(klamm_command, made, {"cleanup.policy": "compact,delete"})
    everything = settings(klamm_command, "topic", made, "--all")
    assert len(everything) > 20 and everything["retention.ms"]["source"] == "default"
    assert everything["retention.ms"]["value"] == everything["retention.ms"]["default"] == "604800000"


def test_one_setting_is_explained(klamm_command: Klamm, made: str) -> None:
    code, out, err = klamm_command("config", "show", "topic", made, "retention.ms")
    table, _, explained = out.decode().partition("\n\n")
    assert code == 0 and err == "" and len(table.splitlines()) == 2
    assert explained.startswith("retention.ms: ") and len(explained) > 30


def test_brokers_one_and_all(klamm_command: Klamm) -> None:
    def retention(broker: str) -> tuple[str, str] | None:
        seen = settings(klamm_command, "broker", broker, "--all").get("log.retention.ms")
        return None if seen is None else (seen["value"], seen["source"])

    def wait_retention(broker: str, expected: tuple[str, str] | None) -> None:
        wait_until(lambda: retention(broker) == expected, f"broker {broker} keeps records for {expected}")

    assert klamm_command("config", "set", "broker", "all", "log.retention.ms=77777777")[0] == 0
    wait_retention("all", ("77777777", "all brokers"))
    wait_retention("0", ("77777777", "all brokers"))
    assert klamm_command("config", "set", "broker", "0", "log.retention.ms=88888888")[0] == 0
    wait_retention("0", ("88888888", "broker"))
    code, out, _ = klamm_command("config", "unset", "broker", "0", "log.retention.ms", "--json")
    assert (code, json.loads(out)) == (0, {"broker": 0, "unset": ["log.retention.ms"]})
    wait_retention("0", ("77777777", "all brokers"))
    assert klamm_command("config", "unset", "broker", "all", "log.retention.ms")[0] == 0
    wait_retention("all", None)
    assert settings(klamm_command, "broker", "0")["node.id"]["source"] == "start"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("show", "topic", "not-there"), 1, "there is no topic not-there"),
        (("set", "topic", "not-there", "retention.ms=1"), 1, "there is no topic not-there"),
        (("show", "broker", "77"), 1, "there is no broker 77 that takes part"),
        (("show", "broker", "none"), 2, "expected its number, or all"),
        (("set", "topic", "x", "retention.ms"), 2, "set: retention.ms: expected KEY=VALUE, as in retention.ms=60000"),
        (("set", "broker", "0", "process.roles=broker"), 1, "broker 0: "),
        (("set", "broker", "0", "num.partitions=6"), 1, "it needs a restart with another setting"),
        (("set", "broker", "all", "num.partitions=6"), 1, "it needs a restart with another setting"),
        (("show", "broker", "0", "log.retention.mss"), 1, "Did you mean log.retention.ms?"),
        (("unset", "broker", "all", "log.retention.mss"), 1, "log.retention.mss is not set for all brokers"),
    ],
)
def test_what_is_refused_is_said_in_words(klamm_command: Klamm, words: tuple[str, ...], code: int, said: str) -> None:
    ended, out, err = klamm_command("config", *words)
    assert (ended, out) == (code, b"") and said in err, err


def test_what_has_no_effect_is_said_so(klamm_command: Klamm, made: str) -> None:
    """Of a broker of Apache Kafka it has one."""
    said = "" if under_test() == "kafka" else "num.io.threads has no effect. A Klamm node is one thread: "
    code, out, err = klamm_command("config", "set", "broker", "all", "num.io.threads=9", "log.retention.ms=77777777")
    assert (code, len(out.splitlines())) == (0, 2) and err.startswith(said) and len(err.splitlines()) == bool(said)
    assert klamm_command("config", "unset", "broker", "all", "num.io.threads", "log.retention.ms")[0] == 0
    said = said and "preallocate has no effect. Klamm lets a log file grow with its records.\n"
    for words in (
        ("config", "set", "topic", made, "preallocate=true"),
        ("topic", "alter", made, "--config", "preallocate=false"),
        ("topic", "create", f"{made}-too", "--config", "preallocate=true", "--json"),
    ):
        code, _, err = klamm_command(*words)
        assert (code, err) == (0, said)


@pytest.mark.parametrize("verb", ["show", "set", "unset"])
def test_whose_settings_comes_first(verb: str, klamm_command: Klamm, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with pytest.raises(SystemExit):
        klamm_command("config", verb, "greetings", "retention.ms=1")
    assert f"is `klamm config {verb} topic greetings` meant?".encode() in capfdbinary.readouterr().err


def test_a_setting_that_is_not_there_changes_nothing(klamm_command: Klamm, made: str) -> None:
    code, _, err = klamm_command("config", "set", "topic", made, "retention.ms=5", "retention.mss=5")
    assert code == 1 and "retention.mss" in err
    code, _, err = klamm_command("config", "unset", "topic", made, "retention.mss")
    assert code == 1 and "Did you mean retention.ms?" in err
    assert klamm_command("config", "set", "topic", made, "segment.ms=86400000")[0] == 0
    wait_own(klamm_command, made, {"segment.ms": "86400000"})
