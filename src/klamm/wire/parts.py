"""A request that names very many things, cut into requests that name fewer; and their responses joined again.

For APIs whose elements have nothing to do with one another: whether a thousand offsets are listed by one request or by
ten, each is found in the same way. An element that is too large itself (a topic with very many partitions) is cut
within. Elements that say the same twice can be left out: whoever asks for a thing twice wants to know it once.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from klamm.codec.schema import schema_of

OF_THE_CLUSTER = frozenset({"brokers", "node_endpoints"})
"""Arrays of responses that do not answer the request's elements: every part has the same brokers to tell."""


def parts(request: Any, most: int, *, distinct: bool = False) -> Iterator[Any]:
    """Requests that together ask for what this one does, with about `most` elements each. With `distinct`, elements of
    the outermost array that were there before are left out. None where many were looked at and no part is full."""
    name = _longest_array(request)
    if name is None:
        yield request
        return
    seen: set[Any] | None = set() if distinct else None
    for some in _cut(getattr(request, name), most, seen):
        yield _with(request, name, some) if some else None


def joined(responses: Sequence[Any]) -> Any:
    """One response with all their elements. What was cut apart within an element comes together again."""
    first, *others = responses
    for other in others:
        _extend(first, other)
    return first


class _Shape:
    """What there is to know of the structures of one class; what is not a structure has no fields."""

    __slots__ = ("arrays", "names", "plain")

    def __init__(self, cls: type) -> None:
        fields = schema_of(cls).fields if hasattr(cls, "__schema__") else ()
        self.names = tuple(field.name for field in fields)
        self.arrays = tuple(field.name for field in fields if field.kind == "array")
        self.plain = tuple(field.name for field in fields if field.kind != "array")


_SHAPES: dict[type, _Shape] = {}


def _shape(value: Any) -> _Shape:
    cls = value.__class__
    shape = _SHAPES.get(cls)
    if shape is None:
        shape = _SHAPES[cls] = _Shape(cls)
    return shape


# Cutting.


def _longest_array(value: Any) -> str | None:
    """The array that is worth cutting."""
    names = [name for name in _shape(value).arrays if getattr(value, name)]
    return max(names, key=lambda name: len(getattr(value, name)), default=None)


def _weight(element: Any, most: int) -> int:
    """How many elements there are in an element, itself included; beyond `most` nobody counts on."""
    weight = 1
    for name in _shape(element).arrays:
        within = getattr(element, name) or ()
        weight += len(within)
        if weight > most:
            break
        if within and _shape(within[0]).arrays:
            weight += sum(_weight(each, most) - 1 for each in within)
    return weight


def _cut(elements: Sequence[Any], most: int, seen: set[Any] | None) -> Iterator[list[Any]]:
    """Lists of about `most` elements; an empty one where so many were looked at for nothing."""
    some: list[Any] = []
    weight = skipped = 0
    for element in elements:
        if seen is not None and _weight(element, most) <= most:
            # (One that is larger costs its sender as much as us.)
            key = _key(element)
            if key in seen:
                skipped += 1
                if skipped >= most:
                    yield some
                    some, weight, skipped = [], 0, 0
                continue
            seen.add(key)
        for piece in _pieces(element, most):
            more = _weight(piece, most)
            if some and weight + more > most:
                yield some
                some, weight = [], 0
            some.append(piece)
            weight += more
    if some:
        yield some


def _pieces(element: Any, most: int) -> Iterator[Any]:
    """The element, or as many of its kind as it takes."""
    name = _longest_array(element) if _weight(element, most) > most else None
    if name is None:
        yield element
        return
    for some in _cut(getattr(element, name), most, None):
        yield _with(element, name, some)


def _with(value: Any, name: str, elements: list[Any]) -> Any:
    """The same, with these elements."""
    fields = {field: getattr(value, field) for field in _shape(value).names}
    fields[name] = elements
    return type(value)(**fields)


def _key(element: Any) -> Any:
    """What tells it from others."""
    if isinstance(element, list | tuple):
        return tuple(map(_key, element))
    names = _shape(element).names
    return tuple([_key(getattr(element, name)) for name in names]) if names else element


# Joining.


def _extend(into: Any, other: Any) -> None:
    for name in _shape(into).arrays:
        more = getattr(other, name)
        if not more:
            continue
        elements = getattr(into, name)
        if not isinstance(elements, list):
            elements = list(elements or ())
            setattr(into, name, elements)
        if name in OF_THE_CLUSTER:
            elements += [each for each in more if each not in elements]
            continue
        if elements and _are_pieces_of_one(elements[-1], more[0]):
            _extend(elements[-1], more[0])
            more = more[1:]
        elements += more


def _are_pieces_of_one(one: Any, other: Any) -> bool:
    """Whether they differ in their arrays alone."""
    shape = _shape(one)
    return bool(shape.arrays) and all(getattr(one, name) == getattr(other, name) for name in shape.plain)
