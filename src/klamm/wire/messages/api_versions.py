"""ApiVersions (key 18): which APIs and versions this broker serves, and the cluster's feature levels.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, boolean, int16, int32, int64, message, string, struct


@message(versions="0-4", flexible="3+")
class ApiVersionsRequest:
    client_software_name: str = string(versions="3+")
    client_software_version: str = string(versions="3+")


@struct
class ApiVersion:
    api_key: int = int16()
    min_version: int = int16()
    max_version: int = int16()


@struct
class SupportedFeatureKey:
    name: str = string()
    min_version: int = int16()
    max_version: int = int16()


@struct
class FinalizedFeatureKey:
    name: str = string()
    max_version_level: int = int16()
    min_version_level: int = int16()


@message(versions="0-4", flexible="3+")
class ApiVersionsResponse:
    error_code: int = int16()
    api_keys: list[ApiVersion] = array(ApiVersion)
    throttle_time_ms: int = int32(versions="1+")
    supported_features: list[SupportedFeatureKey] = array(SupportedFeatureKey, versions="3+", tag=0, tagged="3+")
    finalized_features_epoch: int = int64(versions="3+", default=-1, tag=1, tagged="3+")
    finalized_features: list[FinalizedFeatureKey] = array(FinalizedFeatureKey, versions="3+", tag=2, tagged="3+")
    zk_migration_ready: bool = boolean(versions="3+", tag=3, tagged="3+")
