"""What is wrong with a configuration: everything at once, one line for each problem."""

from collections.abc import Iterable


class ConfigError(Exception):
    """A configuration that a broker does not start with."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(self.problems))
