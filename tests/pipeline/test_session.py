"""Settings of a Spark session that are ours to choose."""

import pytest

from klamm.pipeline.session import forgiving


@pytest.mark.parametrize(
    ("master", "meant"),
    [
        ("local[*]", "local[*,4]"),
        ("local[2]", "local[2,4]"),
        ("local[2,1]", "local[2,1]"),
        ("local", "local"),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]"),
        ("spark://10.0.0.9:7077", "spark://10.0.0.9:7077"),
    ],
)
def test_a_task_that_fails_once_does_not_end_a_local_run(master: str, meant: str) -> None:
    assert forgiving(master) == meant
