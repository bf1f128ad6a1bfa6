"""How much is done at a time, where one wish may touch every partition there is.

A slice of so many partitions, topics or records takes some milliseconds. `Pace` counts them for work that is a
generator: it pauses when a slice is full.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, TypeVar, overload

from klamm.ids import Now

ELEMENTS_A_SLICE = 500

Result = TypeVar("Result")
Element = TypeVar("Element")


def is_slice(count: float) -> bool:
    return count >= ELEMENTS_A_SLICE


def in_slices(
    elements: Sequence[Element], weight: Callable[[Element], int] = lambda element: 1
) -> Iterator[tuple[Sequence[Element], bool]]:
    """So many at a time, and whether these are the last. Of nothing there is one slice, which is empty."""
    begin = weighs = 0
    for position, element in enumerate(elements):
        if weighs and is_slice(weighs + weight(element) - 1):
            yield elements[begin:position], False
            begin, weighs = position, 0
        weighs += weight(element)
    yield elements[begin:], True


class Converted(Sequence[Result]):
    """A sequence whose elements are made of others when they are looked at: to convert all of them at once would be a
    long step already."""

    __slots__ = ("_convert", "_elements")

    def __init__(self, elements: Sequence[Element], convert: Callable[[Element], Result]) -> None:
        self._elements: Sequence[Any] = elements
        self._convert: Callable[[Any], Result] = convert

    def __len__(self) -> int:
        return len(self._elements)

    @overload
    def __getitem__(self, index: int) -> Result: ...
    @overload
    def __getitem__(self, index: slice) -> "Converted[Result]": ...
    def __getitem__(self, index: int | slice) -> "Result | Converted[Result]":
        if isinstance(index, slice):
            return Converted(self._elements[index], self._convert)
        return self._convert(self._elements[index])

    def __iter__(self) -> Iterator[Result]:
        return map(self._convert, self._elements)


class Pace:
    """Counts what has been done since the last pause."""

    __slots__ = ("_done",)

    def __init__(self) -> None:
        self._done = 0.0

    def begin(self) -> None:
        """There was a pause."""
        self._done = 0

    def is_full(self, count: float = 1) -> bool:
        """So many more were done. Whether it is time to pause; then counting begins anew."""
        self._done += count
        if not is_slice(self._done):
            return False
        self._done = 0
        return True

    def paced(
        self, elements: Generator[None, None, Result], now: Now, each: float = 1
    ) -> Generator[None, Now, tuple[Result, Now]]:
        """The result of what pauses after each element, pausing once a slice; and the time when it was there."""
        while True:
            try:
                next(elements)
            except StopIteration as end:
                return end.value, now
            if self.is_full(each):
                now = yield
