"""ListConfigResources (key 74): resources that have settings of their own.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, int8, int16, int32, message, string, struct


@message(versions="0-1", flexible="0+")
class ListConfigResourcesRequest:
    resource_types: list[int] = array(int8(), versions="1+")


@struct
class ConfigResource:
    resource_name: str = string()
    resource_type: int = int8(versions="1+", default=16)


@message(versions="0-1", flexible="0+")
class ListConfigResourcesResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    config_resources: list[ConfigResource] = array(ConfigResource)
