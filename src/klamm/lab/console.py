"""A console for standard output, whose reader may go away.

rich would end the process with exit code 1, as if a claim did not hold. Here it is an exception like that of print, and
whoever runs the command knows its exit code.
"""

from rich.console import Console


class PipedConsole(Console):
    def on_broken_pipe(self) -> None:
        raise
