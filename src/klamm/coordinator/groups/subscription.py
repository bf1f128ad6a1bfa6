"""Stand-in."""

from klamm.codec.compiler import decode
from klamm.codec.schema import array, message, string


@message(versions="0-3")
class Subscription:
    topics: list[str] = array(string())


def read_subscription(raw: bytes) -> Subscription:
    return decode(Subscription, 0, memoryview(raw)[2:])
