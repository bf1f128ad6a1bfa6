"""How long somebody waits for a cluster that says nothing."""

import socket
import time

import pytest

from klamm.ids import TopicPartition
from klamm.pipeline.kafka.cluster import Cluster, ClusterSeen
from klamm.pipeline.kafka.committing import GroupProgress
from klamm.pipeline.kafka.connection import Address
from klamm.pipeline.kafka.problems import NoAnswer
from klamm.pipeline.kafka.settings import ClusterSettings


def test_progress_is_given_up_in_time_whatever_the_timeout_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request may take 100 s here; writing progress down, with all its requests, less than one."""
    monkeypatch.setattr("klamm.pipeline.kafka.committing.PATIENCE_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = ClusterSettings((Address(*silent.getsockname()[:2]),), request_timeout_seconds=100)
        began = time.monotonic()
        with pytest.raises(NoAnswer):
            GroupProgress(Cluster(settings), "g").write_down({TopicPartition("t", 0): 1})
        assert time.monotonic() - began < 50


def test_the_patience_that_is_told_is_the_one_that_was_had() -> None:
    cluster = Cluster(ClusterSettings((Address("127.0.0.1", 1),), patience_seconds=120))
    cluster.seen = ClusterSeen("home", {}, {}, {})

    def fail() -> None:
        raise NoAnswer("nobody there")

    with pytest.raises(NoAnswer, match="tried again for 0 s"):
        cluster.patiently(fail, "progress", 0.1)
