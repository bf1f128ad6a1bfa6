"""Kafka's client jar reads what we write, and writes the same bytes again: every API, every version.

It also says which bytes a message has that nobody touched, which referees the defaults in our tables. The jars are
those of a Kafka release (`libs`), in the directory named by KLAMM_KAFKA_JARS or in `.jars/kafka`.
"""

import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from klamm.codec.compiler import encode
from tests.codec.drawing import drawn, every_message

REFEREE = Path(__file__).with_name("CodecReferee.java")
JARS = Path(os.environ.get("KLAMM_KAFKA_JARS", REFEREE.parent.parent.parent / ".jars" / "kafka"))
VALUES_EACH = 5

pytestmark = [
    pytest.mark.compat,
    pytest.mark.skipif(not shutil.which("java"), reason="Kafka's jar needs java"),
    pytest.mark.skipif(not any(JARS.glob("kafka-clients-*.jar")), reason="no Kafka jars: set KLAMM_KAFKA_JARS"),
]


def test_kafka_reads_what_we_write_and_writes_the_same() -> None:
    questions, expected = [], []
    for question, cls, version in questions_about_everything():
        chance = random.Random(question)
        for _ in range(VALUES_EACH):
            data = encode(drawn(chance, cls, version), version).hex()
            questions.append(f"read {question} {data}")
            expected.append(data)
    assert_same(questions, answers(questions), expected)


def test_a_message_that_nobody_touched_has_kafkas_defaults() -> None:
    messages = list(questions_about_everything())
    questions = [f"default {question}" for question, _, _ in messages]
    expected = [encode(cls(), version).hex() for _, cls, version in messages]
    theirs = answers(questions)
    # Kafka cannot write records that were never set; ours are empty then.
    assert {q.split()[1] for q, a in zip(questions, theirs, strict=True) if a == "none"} <= {"59", "78"}
    assert_same(questions, theirs, [ours if a != "none" else a for ours, a in zip(expected, theirs, strict=True)])


def questions_about_everything() -> Iterator[tuple[str, type, int]]:
    for key, cls, version in every_message():
        yield f"{key} {version} {'Request' if cls.__name__.endswith('Request') else 'Response'}", cls, version


def answers(questions: list[str]) -> list[str]:
    command = ["java", "-cp", f"{JARS}/*", str(REFEREE)]
    run = subprocess.run(command, input="\n".join(questions), capture_output=True, text=True, check=True, timeout=300)
    return run.stdout.splitlines()


def assert_same(questions: list[str], theirs: list[str], ours: list[str]) -> None:
    assert len(theirs) == len(questions)
    different = [row for row in zip(questions, theirs, ours, strict=True) if row[1] != row[2]]
    assert not different, f"{len(different)} differ, the first: {different[0]}"
