"""A `Buckets` behaves like a dict that is copied for every change, and does not cost that."""

from hypothesis import given
from hypothesis import strategies as st

from klamm.metadata.buckets import BUCKETS, Buckets, BucketsDraft

KEYS = st.text("abcdef", max_size=3)
CHANGE = st.tuples(KEYS, st.none() | st.integers())


@given(st.lists(st.lists(CHANGE, max_size=5), max_size=8))
def test_every_version_is_what_a_copied_dict_would_be(rounds: list[list[tuple[str, int | None]]]) -> None:
    versions: list[tuple[Buckets[str, int], dict[str, int]]] = [(Buckets(), {})]
    for changes in rounds:
        latest, twin = versions[-1]
        draft, twin = BucketsDraft(latest), twin.copy()
        for key, value in changes:
            if value is None:
                assert draft.pop(key) == twin.pop(key, None)
            else:
                draft[key] = twin[key] = value
            assert draft.get(key) == twin.get(key)
        versions.append((draft.finished(), twin))
    for version, twin in versions:
        assert dict(version) == twin
        assert list(version) == sorted(twin)
        assert len(version) == len(twin)
        assert all(key in version and version[key] == version.get(key) for key in twin)
        assert version.get("absent") is None and "absent" not in version and version.get("absent", 7) == 7


def test_the_ten_thousandth_entry_copies_one_small_bucket() -> None:
    draft: BucketsDraft[str, int] = BucketsDraft(Buckets())
    for number in range(10_000):
        draft[f"topic-{number}"] = number
    before = draft.finished()
    draft = BucketsDraft(before)
    draft["one-more"] = 1
    after = draft.finished()
    copied = [bucket for bucket, old in zip(after._buckets, before._buckets, strict=True) if bucket is not old]
    assert len(copied) == 1
    assert len(copied[0]) < 10 * 10_000 / BUCKETS


def test_a_draft_may_go_on_after_it_was_finished() -> None:
    draft: BucketsDraft[str, int] = BucketsDraft(Buckets())
    draft["a"] = 1
    first = draft.finished()
    draft["a"] = 2
    assert first["a"] == 1 and draft.finished()["a"] == 2
