"""What a tool prints, written down once from Apache Kafka and compared with ever after.

A transcript is a list of calls, each with what was printed: `$` the call, `!` what it complained of, `=` an exit code
other than zero. Names are the test's own; what is drawn or depends on the clock is replaced by a word, runs of spaces
become one, tables and the rows below their headings are sorted: Kafka's own order is that of its hash maps.

To write them anew: KLAMM_UNDER_TEST=kafka KLAMM_RECORD=1, and read the difference.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from tests.compat.java_tools import JavaTools, Ran
from tests.harness.node import under_test

DIRECTORY = Path(__file__).with_name("transcripts")
TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
GROUPS = "org.apache.kafka.tools.GroupsCommand"


class Transcript:
    """`words` are what stands in calls and answers for something that is another one each time."""

    def __init__(self, tools: JavaTools, bootstrap: str, words: Mapping[str, str]) -> None:
        self._tools = tools
        self._bootstrap = bootstrap
        self._words = {"<bootstrap>": bootstrap, **words}
        self._lines: list[str] = []

    def call(self, line: str, tool: str = TOOL) -> None:
        arguments = [self._filled(word) for word in line.split()]
        ran = self._tools.run(tool, "--bootstrap-server", self._bootstrap, *arguments)
        name = "" if tool == TOOL else f"{tool.rpartition('.')[2]} "
        self._lines += [f"$ {name}{line}", *self._shown(ran), ""]

    def remark(self, text: str) -> None:
        self._lines += [f"# {text}", ""]

    def compare(self, name: str) -> None:
        """With what Kafka printed."""
        compare_with_recorded(name, self._lines)

    def _filled(self, word: str) -> str:
        for placeholder, value in self._words.items():
            word = word.replace(placeholder, value)
        return word

    def _shown(self, ran: Ran) -> list[str]:
        blocks = [_sorted_rows(block.splitlines()) for block in re.split(r"\n\s*\n", self._normal(ran.out)) if block]
        tables = sorted(block for block in blocks if block[0].startswith("GROUP "))
        blocks = [
            *sorted((b for b in blocks if b not in tables), key=lambda b: b if b[0][:5] == "Warn:" else []),
            *tables,
        ]
        lines = [line for block in blocks for line in block]
        lines += [f"! {complaint}" for complaint in _complaints(self._normal(ran.err))]
        return [*lines, f"= {ran.code}"] if ran.code else lines

    def _normal(self, text: str) -> str:
        for placeholder, value in self._words.items():
            text = text.replace(value, placeholder)
        text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uuid>", text)
        return "\n".join(re.sub(r"[ \t]+", " ", line).strip() for line in text.strip("\n").splitlines())


def compare_with_recorded(name: str, lines: list[str]) -> None:
    """With what Kafka was heard to say; or it becomes that."""
    path = DIRECTORY / f"{name}.txt"
    found = "\n".join(lines).strip() + "\n"
    if os.environ.get("KLAMM_RECORD"):
        assert under_test() == "kafka", "only Apache Kafka's own words are written down"
        path.write_text(found)
    assert found.splitlines() == path.read_text().splitlines()


def _sorted_rows(lines: list[str]) -> list[str]:
    """A heading is in capitals; what has none is sorted as a whole."""
    headings = 1 if lines and re.match(r"(GROUP|TOPIC|Error)\b", lines[0]) else 0
    return [*lines[:headings], *sorted(lines[headings:])]


def _complaints(text: str) -> list[str]:
    """What was said, without where it happened, and without all there is to know about the tool's options."""
    lines = text.partition("\nOption ")[0].splitlines()
    return sorted({line for line in lines if line.strip() and not re.match(r"(at |Caused by: |\.\.\. )", line)})
