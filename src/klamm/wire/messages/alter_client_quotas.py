"""AlterClientQuotas (key 49): sets and removes quotas.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, boolean, float64, int16, int32, message, string, struct


@struct
class EntityData:
    entity_type: str = string()
    entity_name: str | None = string(nullable="0+")


@struct
class OpData:
    key: str = string()
    value: float = float64()
    remove: bool = boolean()


@struct
class EntryData:
    entity: list[EntityData] = array(EntityData)
    ops: list[OpData] = array(OpData)


@message(versions="0-1", flexible="1+")
class AlterClientQuotasRequest:
    entries: list[EntryData] = array(EntryData)
    validate_only: bool = boolean()


@struct
class EntryDataResponse:
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    entity: list[EntityData] = array(EntityData)


@message(versions="0-1", flexible="1+")
class AlterClientQuotasResponse:
    throttle_time_ms: int = int32()
    entries: list[EntryDataResponse] = array(EntryDataResponse)
