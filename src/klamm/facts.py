"""What the cores announce: facts, told once, in the past tense.

A core does not log, and counts only what happens too often to be told (requests, batches). It tells a fact to whoever
listens; `runtime/observe.py` makes log lines of them and counts them, the simulator makes its story of them, tests
assert on them.
"""

from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias, dataclass_transform


@dataclass_transform(frozen_default=True)
class Fact:
    """The root of all facts: a value of the fields that its class names. `level` is how loudly the log says it; the
    text is its `str`.

    A dataclass in all but name. There are more than forty kinds, most of them never told, and to compile the methods of
    so many dataclasses was a fifth of the processor time that a broker's start took.
    """

    level = "info"
    _fields: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls._fields = (*cls._fields, *(name for name in cls.__annotations__ if not name.startswith("_")))

    def __init__(self, *values: Any, **named: Any) -> None:
        fields = self._fields
        given = dict(zip(fields, values, strict=False)) | named
        if len(values) > len(fields) or len(given) != len(values) + len(named) or not given.keys() <= set(fields):
            raise TypeError(f"{type(self).__name__} has {', '.join(fields) or 'no fields'}")
        for name in fields:
            if name not in given and not hasattr(type(self), name):
                raise TypeError(f"{type(self).__name__} needs {name}")
        self.__dict__.update(given)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash((type(self), self._values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self._fields)})"

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self._fields)


Tell: TypeAlias = Callable[[Fact], None]


def unheard(fact: Fact) -> None:
    """The listener of those who have none."""
