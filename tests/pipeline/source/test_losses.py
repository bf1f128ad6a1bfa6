"""failOnDataLoss: the same text as an error or as a warning."""

import pytest

from klamm.pipeline.source.losses import RETENTION, Loss, listed, report
from klamm.pipeline.source.problems import DataLost

ONE = Loss("orders", 3, 100, 250, RETENTION)


def test_true_ends_the_query() -> None:
    with pytest.raises(DataLost) as problem:
        report([ONE], fails=True)
    assert "orders-3 offsets 100 to 250 (retention removed them" in str(problem.value)
    assert "failOnDataLoss=false" in str(problem.value)


def test_false_warns_and_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    report([ONE], fails=False)
    (record,) = caplog.records
    assert record.name == "klamm.pipeline" and "orders-3 offsets 100 to 250" in caplog.text


def test_nothing_lost_nothing_said(caplog: pytest.LogCaptureFixture) -> None:
    report([], fails=True)
    assert not caplog.records


def test_a_thousand_partitions_are_not_all_named() -> None:
    many = [Loss("t", partition, 1, 1, RETENTION) for partition in range(1000)]
    assert listed(many).endswith("and 980 more") and listed(many).startswith("t-0 offset 1 (")
