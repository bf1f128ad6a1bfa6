"""`python -m tools.docs.terminal`: docs/pictures/terminal.svg, a terminal in which real commands were run.

Six brokers in two racks, a topic, a broker killed: what is in the picture is what `klamm` said, in a network of its own
so that the ports are the usual ones. Only the directory is shortened.
"""

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text
from tools.docs import apart

PLACE = Path(__file__).parent.parent.parent / "docs" / "pictures" / "terminal.svg"
SESSION = (
    "klamm up --brokers 6 --racks 2 --detach",
    "klamm topic create invoice --partitions 10 --replication 3",
    "klamm node kill 4",
    "klamm topic placement invoice",
    "klamm status",
)
WIDTH = 92
# The fonts that rich would fetch are not fetched: any monospaced one will do.
FORMAT = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL).replace(
    "Fira Code", "ui-monospace, SFMono-Regular, Menlo, Consolas"
)


def main() -> None:
    apart.enter()
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    with tempfile.TemporaryDirectory(prefix="klamm-terminal-") as directory:
        try:
            for command in SESSION:
                console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
                console.print(coloured(said(command, directory)))
        finally:
            subprocess.run([sys.executable, "-m", "klamm", "down"], cwd=directory, check=True, capture_output=True)
    console.save_svg(str(PLACE), title="klamm", code_format=FORMAT, unique_id="klamm")


def said(command: str, directory: str) -> str:
    """On both its outputs, as a person sees it."""
    words = [sys.executable, "-m", *command.split()]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    ended = subprocess.run(
        words, cwd=directory, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return ended.stdout.replace(directory, "~").rstrip() + "\n"


def coloured(text: str) -> Text:
    """What a person should look at: leaders, who is missing, where to connect."""
    found = Text(text)
    found.highlight_regex(r"(?m)^(broker|id) .*$", "bold cyan")
    found.highlight_regex(r"\bP\d+!|\(fenced\)|\bdead\b|! not in sync", "bold red")
    found.highlight_regex(r"bootstrap servers:", "bold")
    found.highlight_regex(r"127\.0\.0\.1:\d+", "yellow")
    found.highlight_regex(r"\brunning\b", "green")
    return found


if __name__ == "__main__":
    main()
