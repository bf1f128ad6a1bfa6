"""An experiment as a person sees it: what will happen, what happens while it does, and what came of it."""

from typing import TYPE_CHECKING

from rich.text import Text

from klamm.lab.beside import beside
from klamm.lab.console import PipedConsole
from klamm.lab.drawing import show
from klamm.lab.stage import Stage, Told

if TYPE_CHECKING:
    from klamm.lab.catalogue import Experiment
    from klamm.lab.measured import Measured

WIDTH = 100
INDENT = "  "


class Narrator:
    def __init__(self, silent: bool) -> None:
        self._console = PipedConsole(highlight=False, quiet=silent)
        # Paragraphs want a width also where there is no terminal to have one.
        if not self._console.is_terminal:
            self._console.width = WIDTH

    def announce(self, experiment: "Experiment") -> None:
        title = Text.assemble((f"klamm lab {experiment.name}", "bold"), f": {experiment.title}")
        for line in title.wrap(self._console, min(WIDTH, self._console.width)):
            line.rstrip()
            self._console.print(line)
        self._paragraph("What will happen", " ".join(experiment.plan.split()))
        self._console.print()

    def hear(self, told: Told) -> None:
        self._beside(Text.assemble((f"{told.seconds:6.2f} s", "dim"), "  "), told.text)

    def conclude(self, found: "Measured") -> None:
        for picture in found.pictures():
            self._console.print()
            show(self._console, picture)
        self._paragraph("What it means", found.lesson())
        self._paragraph("Measured", found.result())
        for claim in found.claims():
            sign = ("yes", "green") if claim.holds else ("NO ", "bold red")
            self._beside(Text.assemble(INDENT, sign, "  "), claim.text)
        self._console.print()
        if found.holds:
            self._console.print("It holds.", style="bold green")
        else:
            self._console.print("It does NOT hold: see the lines that say NO.", style="bold red")

    def kept(self, stage: Stage) -> None:
        self._heading("The cluster is still there")
        lines = (
            f"bootstrap servers: {stage.record.bootstrap_servers}",
            f"look at it:        klamm status --dir {stage.directory}",
            f"stop it:           klamm down --dir {stage.directory}",
            f"remove its data:   rm -r {stage.directory}",
        )
        # To be copied, so a line stays a line.
        self._console.print("\n".join(lines), soft_wrap=True)

    def _paragraph(self, heading: str, text: str) -> None:
        self._heading(heading)
        self._beside(Text(), text)

    def _beside(self, what: Text, text: str) -> None:
        for line in beside(what, text, min(WIDTH, self._console.width)):
            self._console.print(line, soft_wrap=True)

    def _heading(self, text: str) -> None:
        self._console.print()
        self._console.print(text, style="bold")
