"""BrokerHeartbeat (key 63): a broker is alive, has caught up, or wants to stop.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, boolean, int16, int32, int64, message, uuid


@message(versions="0-2", flexible="0+")
class BrokerHeartbeatRequest:
    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    current_metadata_offset: int = int64()
    want_fence: bool = boolean()
    want_shut_down: bool = boolean()
    offline_log_dirs: list[bytes] = array(uuid(), versions="1+", tag=0, tagged="1+")
    cordoned_log_dirs: list[bytes] | None = array(
        uuid(), versions="2+", nullable="2+", default=None, tag=1, tagged="2+"
    )


@message(versions="0-2", flexible="0+")
class BrokerHeartbeatResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    is_caught_up: bool = boolean()
    is_fenced: bool = boolean(default=True)
    should_shut_down: bool = boolean()
