"""What only nodes say to one another, said by somebody who is none: extreme in content, right in form.

A node that has others serves it, and without authentication anybody may say it. Whatever it is, there is an answer, the
node stays up, goes on leading its quorum, and creates topics.
"""

from collections.abc import Callable

import pytest

from klamm.handlers import TABLE
from klamm.wire.apis import API_BY_KEY, CONTROLLER
from klamm.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.hostile.extremes import Leaf, largest, longest_texts, minus_one, nulls, request_of, smallest, zero
from tests.hostile.target import Target

KEYS = [key for key in sorted(TABLE) if API_BY_KEY[key].listener == CONTROLLER]
DEEPEST = 4


def versions(key: int) -> range:
    return range(API_BY_KEY[key].min_version, API_BY_KEY[key].max_version + 1)


@pytest.mark.parametrize("leaf", [zero, largest, smallest, minus_one, longest_texts], ids=lambda leaf: leaf.__name__)
def test_extremes_are_answered_and_nothing_is_lost(start_target: Callable[..., Target], leaf: Leaf) -> None:
    target = start_target(controller_quorum_voters="0@127.0.0.1:9")
    for key in KEYS:
        for version in versions(key):
            for depth in range(DEEPEST):
                with target.connect() as client:
                    client.ask(request_of(key, version, leaf, depth), version)
            with target.connect() as client:
                client.ask(nulls(key, version), version)
    with target.connect() as client:
        topic = CreatableTopic(name="after-all-that", num_partitions=1, replication_factor=1)
        answer = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=5_000), 7)
        assert [each.error_code for each in answer.topics] == [0]
