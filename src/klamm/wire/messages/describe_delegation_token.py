"""DescribeDelegationToken (key 41): the tokens of some owners.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, bytes_, int16, int32, int64, message, string, struct


@struct
class DescribeDelegationTokenOwner:
    principal_type: str = string()
    principal_name: str = string()


@message(versions="1-3", flexible="2+")
class DescribeDelegationTokenRequest:
    owners: list[DescribeDelegationTokenOwner] | None = array(DescribeDelegationTokenOwner, nullable="0+")


@struct
class DescribedDelegationTokenRenewer:
    principal_type: str = string()
    principal_name: str = string()


@struct
class DescribedDelegationToken:
    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string(versions="3+")
    token_requester_principal_name: str = string(versions="3+")
    issue_timestamp: int = int64()
    expiry_timestamp: int = int64()
    max_timestamp: int = int64()
    token_id: str = string()
    hmac: bytes = bytes_()
    renewers: list[DescribedDelegationTokenRenewer] = array(DescribedDelegationTokenRenewer)


@message(versions="1-3", flexible="2+")
class DescribeDelegationTokenResponse:
    error_code: int = int16()
    tokens: list[DescribedDelegationToken] = array(DescribedDelegationToken)
    throttle_time_ms: int = int32()
