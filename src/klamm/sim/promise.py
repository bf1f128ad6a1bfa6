"""A promise that was broken: what the simulator looks for."""

from typing import NoReturn


class Broken(Exception):  # noqa: N818
    """`promise` is its name in docs/proof.md."""

    def __init__(self, promise: str, what: str) -> None:
        super().__init__(promise, what)
        self.promise = promise
        self.what = what

    def __str__(self) -> str:
        return f"{self.promise}: {self.what}"


def broken(promise: str, what: str) -> NoReturn:
    raise Broken(promise, what)
