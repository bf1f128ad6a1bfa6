"""CreateDelegationToken (key 38): a token to authenticate with instead of a password.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, bytes_, int16, int32, int64, message, string, struct


@struct
class CreatableRenewers:
    principal_type: str = string()
    principal_name: str = string()


@message(versions="1-3", flexible="2+")
class CreateDelegationTokenRequest:
    owner_principal_type: str | None = string(versions="3+", nullable="3+")
    owner_principal_name: str | None = string(versions="3+", nullable="3+")
    renewers: list[CreatableRenewers] = array(CreatableRenewers)
    max_lifetime_ms: int = int64()


@message(versions="1-3", flexible="2+")
class CreateDelegationTokenResponse:
    error_code: int = int16()
    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string(versions="3+")
    token_requester_principal_name: str = string(versions="3+")
    issue_timestamp_ms: int = int64()
    expiry_timestamp_ms: int = int64()
    max_timestamp_ms: int = int64()
    token_id: str = string()
    hmac: bytes = bytes_()
    throttle_time_ms: int = int32()
