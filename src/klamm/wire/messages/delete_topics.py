"""DeleteTopics (key 20): topics to remove, by name or id.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, int16, int32, message, string, struct, uuid


@struct
class DeleteTopicState:
    name: str | None = string(nullable="0+", default=None)
    topic_id: bytes = uuid()


@message(versions="1-6", flexible="4+")
class DeleteTopicsRequest:
    topics: list[DeleteTopicState] = array(DeleteTopicState, versions="6+")
    topic_names: list[str] = array(string(), versions="1-5")
    timeout_ms: int = int32()


@struct
class DeletableTopicResult:
    name: str | None = string(nullable="6+")
    topic_id: bytes = uuid(versions="6+")
    error_code: int = int16()
    error_message: str | None = string(versions="5+", nullable="5+", default=None)


@message(versions="1-6", flexible="4+")
class DeleteTopicsResponse:
    throttle_time_ms: int = int32()
    responses: list[DeletableTopicResult] = array(DeletableTopicResult)
