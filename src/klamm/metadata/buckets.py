"""A mapping that is a value, and still cheap to make the next one of.

Copying a dict of ten thousand topics to add one more costs more than everything else about creating a topic. So the
keys are spread over small dicts: the next mapping shares all of them but those that were written, and adding the ten
thousandth entry costs what adding the tenth did. Nobody changes a bucket once it belongs to a `Buckets`.

Strings hash differently in every process, so iterating goes in the order of the keys, never in that of the buckets.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar, overload


class _Key(Protocol):
    def __lt__(self, other: Any, /) -> bool: ...
    def __hash__(self) -> int: ...


K = TypeVar("K", bound=_Key)
V = TypeVar("V")
D = TypeVar("D")

BUCKETS = 256
_LAST = BUCKETS - 1


class Buckets(Mapping[K, V]):
    __slots__ = ("_buckets", "_count")

    def __init__(self, buckets: "tuple[dict[K, V], ...] | None" = None, count: int = 0) -> None:
        # One empty dict serves for all empty buckets: it is copied before it is written, like any other.
        self._buckets = ({},) * BUCKETS if buckets is None else buckets
        self._count = count

    def __getitem__(self, key: K) -> V:
        return self._buckets[hash(key) & _LAST][key]

    @overload
    def get(self, key: K, /) -> V | None: ...
    @overload
    def get(self, key: K, /, default: V | D) -> V | D: ...
    def get(self, key: K, /, default: Any = None) -> Any:
        return self._buckets[hash(key) & _LAST].get(key, default)

    def __contains__(self, key: object) -> bool:
        return key in self._buckets[hash(key) & _LAST]

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[K]:
        return iter(sorted(key for bucket in self._buckets for key in bucket))

    def __repr__(self) -> str:
        return f"<{self._count} entries>"


class BucketsDraft(Generic[K, V]):
    """The next mapping while it is written: a bucket is copied when it is first changed, and only then."""

    __slots__ = ("_buckets", "_count", "_own")

    def __init__(self, base: Buckets[K, V]) -> None:
        self._buckets = list(base._buckets)
        self._own: set[int] = set()
        self._count = len(base)

    def get(self, key: K) -> V | None:
        return self._buckets[hash(key) & _LAST].get(key)

    def __setitem__(self, key: K, value: V) -> None:
        bucket = self._owned(hash(key) & _LAST)
        self._count += key not in bucket
        bucket[key] = value

    def pop(self, key: K) -> V | None:
        if key not in self._buckets[hash(key) & _LAST]:
            return None
        self._count -= 1
        return self._owned(hash(key) & _LAST).pop(key)

    def finished(self) -> Buckets[K, V]:
        self._own.clear()  # They belong to the value now.
        return Buckets(tuple(self._buckets), self._count)

    def _owned(self, index: int) -> dict[K, V]:
        if index not in self._own:
            self._own.add(index)
            self._buckets[index] = self._buckets[index].copy()
        return self._buckets[index]
