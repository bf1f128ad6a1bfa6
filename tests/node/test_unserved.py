"""A client that asks for what is not served finds its connection closed, as with Kafka; the log says what it was."""

import pytest

from klamm.node.events import Received
from klamm.node.facts import RequestNotUnderstood
from tests.node.world import World

DESCRIBE_ACLS, PRODUCE, NOBODYS = 29, 0, 4


@pytest.mark.parametrize(
    ("key", "version", "said"),
    [
        (DESCRIBE_ACLS, 0, "DescribeAcls is not served here"),
        (DESCRIBE_ACLS, 3, "DescribeAcls is not served here"),
        (PRODUCE, 2, "Produce is served in versions 3 to 13, not in 2, as in Kafka 4: the client is older"),
        (NOBODYS, 0, "there is no API with the key 4"),
    ],
)
def test_the_log_says_what_was_asked_for(key: int, version: int, said: str) -> None:
    world = World()
    client = world.connect()
    header = key.to_bytes(2, "big") + version.to_bytes(2, "big") + b"\0\0\0\x05" + b"\0\x02me" + b"\0"
    world.step(Received(client.id, [memoryview(header)]))
    assert not client.is_open
    (told,) = world.told_of(RequestNotUnderstood)
    assert str(told) == f"closed the connection from test:{client.id}: {said}"
