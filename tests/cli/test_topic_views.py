"""`klamm topic describe` and `placement` of a topic that is not well, as text."""

from dataclasses import replace

import pytest

from klamm.cli import main, topic_views
from klamm.cli.group_asking import Cluster
from klamm.local.view import BrokerSeen, ClusterSeen, PartitionSeen

BROKERS = tuple(BrokerSeen(number, None, "127.0.0.1", 19092 + number, is_fenced=number == 2) for number in range(3))
SEEN = ClusterSeen(
    "an-id",
    0,
    BROKERS,
    (
        PartitionSeen("invoice", 0, 0, (0, 1, 2), (0, 1), min_in_sync=2),
        PartitionSeen("invoice", 1, 1, (1, 2, 0), (1,), min_in_sync=2),
        PartitionSeen("invoice", 2, 0, (2, 0, 1), (0,), min_in_sync=2),
    ),
)


@pytest.mark.parametrize(("verb", "named"), [("describe", "1 2"), ("placement", "P1 P2")])
def test_where_acks_all_is_refused(
    verb: str, named: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Cluster, "seen", lambda *_: SEEN)
    monkeypatch.setattr(topic_views, "extents_of", lambda *_: {})
    monkeypatch.setattr(topic_views, "_own_settings", lambda *_: {"min.insync.replicas": "2"})
    assert main(["topic", verb, "invoice", "--bootstrap", "127.0.0.1:1"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"below min.insync.replicas: {named}; acks=all is refused there"
    undecided = replace(SEEN, brokers=(BROKERS[0], *(replace(each, is_gone=True) for each in BROKERS[1:])))
    monkeypatch.setattr(Cluster, "seen", lambda *_: undecided)
    assert main(["topic", verb, "invoice", "--bootstrap", "127.0.0.1:1"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"below min.insync.replicas: {named}; acks=all is not acknowledged there"
