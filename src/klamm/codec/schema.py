"""Messages as tables: a class with one line a field says what is on the wire in which version.

    @struct
    class Partition:
        index: int = int32()
        leader_epoch: int = int32(versions="9+", default=-1)

    @message(versions="0-12", flexible="6+")
    class Answer:
        name: str | None = string(nullable="3+")
        partitions: list[Partition] = array(Partition)

One class serves every version. A field that a version does not have is left out when writing and has its default after
reading. Every field has a default, so that a message can be built from what matters. The classes are slotted and
compare by value; a nested default without lists is one shared object that refuses to be changed: assign a new one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any, TypeAlias, TypeVar, cast, dataclass_transform

T = TypeVar("T")

# Record batches: a memoryview of the input after reading; any buffer, or anything with a length, when writing.
Records: TypeAlias = Any

NO_UUID = bytes(16)
LAST_VERSION = 32_767


@dataclass(frozen=True, slots=True)
class Versions:
    first: int
    last: int

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last


NEVER = Versions(1, 0)
ALWAYS = Versions(0, LAST_VERSION)


@dataclass(slots=True)
class Field:
    """One line of the table. `kind` is the maker's name without underscore; `of` an array's element or the struct."""

    kind: str
    versions: Versions
    nullable: Versions
    default: Any
    tag: int
    tagged: Versions
    of: "Field | type | None" = None
    name: str = ""

    @property
    def struct(self) -> type:
        assert isinstance(self.of, type)
        return self.of

    @property
    def structs(self) -> tuple[type, ...]:
        """The structure that the field, or an element of it, is: one or none."""
        if isinstance(self.of, Field):
            return self.of.structs
        return () if self.of is None else (self.of,)


@dataclass(frozen=True, slots=True)
class Schema:
    name: str
    fields: tuple[Field, ...]
    versions: Versions
    flexible: Versions


def schema_of(cls: type) -> Schema:
    return cast(Schema, cls.__schema__)  # type: ignore[attr-defined]


@dataclass_transform()
def struct(cls: type[T]) -> type[T]:
    """A structure inside messages; whether it is flexible is its message's affair."""
    return _built(cls, ALWAYS, NEVER)


@dataclass_transform()
def message(*, versions: str = "0+", flexible: str | None = None) -> Callable[[type[T]], type[T]]:
    """What is read and written as a whole: its versions, and from which on it is flexible (compact, with tags)."""

    def built(cls: type[T]) -> type[T]:
        return _built(cls, versions_of(versions), versions_of(flexible) if flexible else NEVER)

    return built


# The makers, one for each type of Kafka's. They claim to return Any, as `dataclasses.field` does.


def int8(**options: Any) -> Any:
    return _field("int8", 0, **options)


def int16(**options: Any) -> Any:
    return _field("int16", 0, **options)


def int32(**options: Any) -> Any:
    return _field("int32", 0, **options)


def int64(**options: Any) -> Any:
    return _field("int64", 0, **options)


def uint16(**options: Any) -> Any:
    return _field("uint16", 0, **options)


def uint32(**options: Any) -> Any:
    return _field("uint32", 0, **options)


def float64(**options: Any) -> Any:
    return _field("float64", 0.0, **options)


def boolean(**options: Any) -> Any:
    return _field("boolean", False, **options)


def uuid(**options: Any) -> Any:
    return _field("uuid", NO_UUID, **options)


def string(**options: Any) -> Any:
    return _field("string", "", **options)


def bytes_(**options: Any) -> Any:
    return _field("bytes", b"", **options)


def records(**options: Any) -> Any:
    return _field("records", b"", **options)


def array(of: Any, **options: Any) -> Any:
    """An array of structures (give the class) or of simple values (give a maker's result: `array(int32())`)."""
    element = _field("struct", None, of=of) if isinstance(of, type) else of
    return _field("array", (), of=element, **options)


def nested(of: type, **options: Any) -> Any:
    return _field("struct", _FRESH, of=of, **options)


_FRESH = object()  # The default of a nested structure: one made from its own defaults.


def _field(
    kind: str,
    zero: Any,
    *,
    versions: str = "0+",
    nullable: str | None = None,
    default: Any = _FRESH,
    tag: int = -1,
    tagged: str | None = None,
    of: "Field | type | None" = None,
) -> Field:
    assert (tag >= 0) == (tagged is not None), "a tag needs the versions in which the field is tagged"
    return Field(
        kind=kind,
        versions=versions_of(versions),
        nullable=versions_of(nullable) if nullable else NEVER,
        default=zero if default is _FRESH else default,
        tag=tag,
        tagged=versions_of(tagged) if tagged else NEVER,
        of=of,
    )


@lru_cache(None)
def versions_of(text: str) -> Versions:
    """`"3"`, `"3+"` or `"3-5"`."""
    first, _, last = text.removesuffix("+").partition("-")
    if text.endswith("+"):
        return Versions(int(first), LAST_VERSION)
    return Versions(int(first), int(last or first))


def _built(cls: type[T], versions: Versions, flexible: Versions) -> type[T]:
    """The class again, with slots, a constructor compiled from its fields, and comparison by value."""
    names = tuple(cls.__annotations__)
    fields = tuple(vars(cls)[name] for name in names)
    for name, field in zip(names, fields, strict=True):
        assert isinstance(field, Field), f"{cls.__name__}.{name} is no field"
        field.name = name
        if field.default is _FRESH:
            field.default = _shared_default(field.struct)
    namespace = {name: value for name, value in vars(cls).items() if name not in names}
    namespace.pop("__dict__", None)
    namespace.pop("__weakref__", None)
    namespace.update(
        __slots__=names,
        __match_args__=names,
        __schema__=Schema(cls.__name__, fields, versions, flexible),
        __init__=_constructor(cls, fields),
        __eq__=_equal,
        __hash__=None,
        __repr__=_repr,
    )
    return cast(type[T], type(cls.__name__, cls.__bases__, namespace))


def default_of(field: Field) -> str:
    """Python source for a fresh default, in a scope where `default_<name>` is the field's default."""
    if field.kind == "array" and field.default == ():
        return "[]"
    if field.kind == "struct" and isinstance(field.default, type):
        return f"default_{field.name}()"
    return f"default_{field.name}"


def _constructor(cls: type, fields: tuple[Field, ...]) -> Callable[..., None]:
    """`__init__` with one optional argument a field. A default that must be fresh is made when none was given."""
    scope: dict[str, Any] = {f"default_{field.name}": field.default for field in fields}
    scope["missing"] = object()
    arguments, body = ["self"], []
    for field in fields:
        name, default = field.name, default_of(field)
        if default == f"default_{name}":
            arguments.append(f"{name}={default}")
            body.append(f"    self.{name} = {name}")
        else:
            arguments.append(f"{name}=missing")
            body.append(f"    self.{name} = {default} if {name} is missing else {name}")
    exec(f"def __init__({', '.join(arguments)}):\n" + "\n".join(body or ["    pass"]), scope)
    constructor = cast(Callable[..., None], scope["__init__"])
    constructor.__qualname__ = f"{cls.__qualname__}.__init__"
    constructor.__module__ = cls.__module__
    return constructor


def _shared_default(cls: type) -> Any:
    """What a nested field holds until it is assigned: one unchangeable object, or the class where that cannot be.

    A fetch response has three such fields a partition, and nearly always all three are the default: comparing by
    identity is free, making them is not. A structure with lists inside could be changed all the same, so that one is
    made afresh for each owner.
    """
    if _has_lists(cls):
        return cls
    namespace = {
        "__slots__": (),
        "__setattr__": _refuse_change,
        "__reduce__": lambda self: (cls, ()),  # A copy is an ordinary one, free to be changed.
        "__module__": cls.__module__,
    }
    unchangeable = type(cls.__name__, (cls,), namespace)
    default = cls()
    object.__setattr__(default, "__class__", unchangeable)
    return default


def _has_lists(cls: type) -> bool:
    return any(field.kind == "array" or any(map(_has_lists, field.structs)) for field in schema_of(cls).fields)


def _refuse_change(self: Any, name: str, value: Any) -> None:
    raise AttributeError(f"a default {type(self).__name__} is shared: assign a new one instead of changing {name}")


def _equal(self: Any, other: object) -> Any:
    schema = schema_of(type(self))
    if getattr(type(other), "__schema__", None) is not schema:
        return NotImplemented
    if not schema.fields:
        return True
    values = attrgetter(*type(self).__match_args__)
    return values(self) == values(other)


def _repr(self: Any) -> str:
    """The fields that differ from their defaults: the rest is not news."""
    shown = []
    for field in schema_of(type(self)).fields:
        value = getattr(self, field.name)
        default = [] if field.kind == "array" and field.default == () else field.default
        if isinstance(default, type):
            default = default()
        if value != default:
            shown.append(f"{field.name}={value!r}")
    return f"{type(self).__name__}({', '.join(shown)})"
