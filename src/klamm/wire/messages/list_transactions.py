"""ListTransactions (key 66): transactions a coordinator looks after, filtered.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, int16, int32, int64, message, string, struct


@message(versions="0-2", flexible="0+")
class ListTransactionsRequest:
    state_filters: list[str] = array(string())
    producer_id_filters: list[int] = array(int64())
    duration_filter: int = int64(versions="1+", default=-1)
    transactional_id_pattern: str | None = string(versions="2+", nullable="2+", default=None)


@struct
class TransactionState:
    transactional_id: str = string()
    producer_id: int = int64()
    transaction_state: str = string()


@message(versions="0-2", flexible="0+")
class ListTransactionsResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    unknown_state_filters: list[str] = array(string())
    transaction_states: list[TransactionState] = array(TransactionState)
