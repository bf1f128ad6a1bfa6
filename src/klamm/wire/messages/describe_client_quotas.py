"""DescribeClientQuotas (key 48): quotas of users, clients and addresses.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, boolean, float64, int8, int16, int32, message, string, struct


@struct
class ComponentData:
    entity_type: str = string()
    match_type: int = int8()
    match: str | None = string(nullable="0+")


@message(versions="0-1", flexible="1+")
class DescribeClientQuotasRequest:
    components: list[ComponentData] = array(ComponentData)
    strict: bool = boolean()


@struct
class EntityData:
    entity_type: str = string()
    entity_name: str | None = string(nullable="0+")


@struct
class ValueData:
    key: str = string()
    value: float = float64()


@struct
class EntryData:
    entity: list[EntityData] = array(EntityData)
    values: list[ValueData] = array(ValueData)


@message(versions="0-1", flexible="1+")
class DescribeClientQuotasResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    entries: list[EntryData] | None = array(EntryData, nullable="0+")
