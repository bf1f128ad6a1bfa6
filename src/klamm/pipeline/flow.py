"""Which function feeds which: read from their parameters, put in order, and run on whatever frames there are."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from klamm.pipeline.problems import BadPipeline, listed, meant

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    Transform = Callable[..., DataFrame]

EVEN_IF_UNUSED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class Flow:
    """The functions of a pipeline by name, each after those it takes its input from."""

    def __init__(self, sources: Sequence[str], functions: "Iterable[Transform]") -> None:
        self.sources = tuple(sources)
        self.functions = _by_name(functions)
        both = sorted(set(self.sources) & set(self.functions))
        if both:
            raise BadPipeline(
                f"`{both[0]}` is the name of a source and of a function: a parameter of that name could mean either. "
                "Rename the function."
            )
        self.inputs = {name: self._inputs_of(name, function) for name, function in self.functions.items()}
        self.order = self._ordered()

    def sources_of(self, name: str) -> tuple[str, ...]:
        """What it is made from in the end."""
        if name in self.sources:
            return (name,)
        found = {source for each in self.inputs[name] for source in self.sources_of(each)}
        return tuple(source for source in self.sources if source in found)

    def frame(self, name: str, frames: "dict[str, DataFrame]") -> "DataFrame":
        """The function's result, from the frames that are known. What is made on the way is kept in `frames`."""
        if name not in frames:
            arguments = {each: self.frame(each, frames) for each in self.inputs[name]}
            frames[name] = self.called(name, arguments)
        return frames[name]

    def called(self, name: str, arguments: "dict[str, DataFrame]") -> "DataFrame":
        frame: Any = self.functions[name](**arguments)
        if not hasattr(frame, "isStreaming"):
            raise BadPipeline(
                f"{self.where(name)} gave back {_kind(frame)} and no data frame."
                + (" Is there a `return` missing?" if frame is None else "")
            )
        result: DataFrame = frame
        return result

    def where(self, name: str) -> str:
        """As in a message: the name, and the file and line where it stands."""
        code = getattr(inspect.unwrap(self.functions[name]), "__code__", None)
        return f"`{name}`" if code is None else f"`{name}` ({Path(code.co_filename).name}, line {code.co_firstlineno})"

    def _inputs_of(self, name: str, function: "Transform") -> tuple[str, ...]:
        known = {*self.sources, *self.functions} - {name}
        parameters = [
            each
            for each in inspect.signature(function).parameters.values()
            if each.default is inspect.Parameter.empty and each.kind not in EVEN_IF_UNUSED
        ]
        for parameter in parameters:
            if parameter.name not in known:
                raise BadPipeline(
                    f"{self.where(name)} has a parameter `{parameter.name}`, and there is no source or step of that "
                    f"name.{meant(parameter.name, known)} A function that others name has to be in `steps`, "
                    "or make an output."
                )
            if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
                raise BadPipeline(f"{self.where(name)}: leave out the `/`, parameters are given by name.")
        if not parameters:
            raise BadPipeline(
                f"{self.where(name)} takes no input. Its parameters say what it gets: {listed(sorted(known))}."
            )
        return tuple(parameter.name for parameter in parameters)

    def _ordered(self) -> tuple[str, ...]:
        order: list[str] = []
        for name in self.functions:
            self._visit(name, [], order)
        return tuple(order)

    def _visit(self, name: str, on_the_way: list[str], order: list[str]) -> None:
        if name in on_the_way:
            circle = " ← ".join([*on_the_way[on_the_way.index(name) :], name])
            raise BadPipeline(
                f"the functions go round in a circle: {circle}, each needs the next one's rows. "
                "One of them has to start from a source."
            )
        if name in order or name in self.sources:
            return
        for each in self.inputs[name]:
            self._visit(each, [*on_the_way, name], order)
        order.append(name)


def _by_name(functions: "Iterable[Transform]") -> "dict[str, Transform]":
    found: dict[str, Transform] = {}
    for function in functions:
        name = getattr(function, "__name__", "")
        if not callable(function) or not name.isidentifier():
            raise BadPipeline(
                f"{_kind(function)} stands where a function has to: a `def` with a name that others can refer to, "
                "which takes data frames and gives one back."
            )
        if found.setdefault(name, function) is not function:
            raise BadPipeline(f"two functions are called `{name}`. Give each a name of its own.")
    return found


def _kind(thing: object) -> str:
    if getattr(thing, "__name__", "") == "<lambda>":
        return "a lambda"
    return "nothing" if thing is None else f"a {type(thing).__name__}"
