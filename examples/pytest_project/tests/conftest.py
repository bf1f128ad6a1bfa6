"""One embedded cluster for every test that breaks nothing, and a topic of its own for each test."""

import re

import pytest


@pytest.fixture(scope="session")
def kafka(klamm_embedded_session):
    return klamm_embedded_session


@pytest.fixture
def topic_name(request):
    """Tests that share a cluster must not share a topic."""
    return re.sub(r"[^a-z0-9_]+", "-", request.node.name)


@pytest.fixture
def topic(kafka, topic_name):
    return kafka.create_topic(topic_name)
