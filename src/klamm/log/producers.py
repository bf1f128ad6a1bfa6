"""What a log knows about its idempotent producers, and its judgement of what they send.

For every producer id the log remembers the last five batches, as many as a producer may have in flight. A batch that
repeats one of them is a retry, and gets the answer of the first time. Any other must continue the sequence, or begin
at 0 in a newer epoch; a producer that is unknown here, because it is new or all it wrote is gone, may begin anywhere.
A batch of an older epoch comes from a zombie.

What is refused for want of space leaves a gap: the batches that the producer sent after it have to be refused for the
same reason until it has come again. To say that they are out of order would be true, but then clients give up their
epoch and send under a new one what is stored already, and nobody could tell.

The judgement changes nothing; `note` does, once the batch is in the log, and replaying the log notes the same batches
again. A transaction is open from its first batch to its marker; who keeps readers from it asks `first_open_offset`.
"""

from operator import itemgetter

from klamm.errors import ErrorCode, KafkaError
from klamm.ids import NO_EPOCH, NO_OFFSET, Epoch, Offset, ProducerId
from klamm.records.batch import MAX_SEQUENCE, NO_TIMESTAMP, TRANSACTIONAL_BIT, Batch

REMEMBERED_BATCHES = 5
FORGOTTEN_SHARE = 16
"""Where there are too many, so much of what is allowed is forgotten at once."""

MOST_REFUSED = 1_000
"""Producers may come and go while a disk is full. The oldest of them have given up by now."""


class Remembered:
    """One batch of a producer: the last sequence and offset in it, how many offsets come before, and its time."""

    __slots__ = ("last_offset", "last_sequence", "offset_delta", "timestamp")

    def __init__(self, last_sequence: int, last_offset: Offset, offset_delta: int, timestamp: int) -> None:
        self.last_sequence = last_sequence
        self.last_offset = last_offset
        self.offset_delta = offset_delta
        self.timestamp = timestamp

    @property
    def base_offset(self) -> Offset:
        return self.last_offset - self.offset_delta

    @property
    def base_sequence(self) -> int:
        return self.last_sequence - self.offset_delta & MAX_SEQUENCE

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Remembered) and self._fields() == other._fields()

    def _fields(self) -> tuple[int, int, int, int]:
        return self.last_sequence, self.last_offset, self.offset_delta, self.timestamp

    def __repr__(self) -> str:
        return f"<{self.base_offset}..{self.last_offset} sequence={self.base_sequence}..{self.last_sequence}>"


class ProducerState:
    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_timestamp", "open_since", "seen_ms")

    def __init__(self, epoch: Epoch) -> None:
        self.epoch = epoch
        self.batches: list[Remembered] = []
        self.coordinator_epoch: Epoch = NO_EPOCH
        self.last_timestamp = NO_TIMESTAMP
        self.open_since: Offset = NO_OFFSET
        """Where its open transaction began."""
        self.seen_ms = 0
        """By our clock. Kafka forgets producers by the time in their records, which may be years ago."""

    @property
    def next_sequence(self) -> int:
        return self.batches[-1].last_sequence + 1 & MAX_SEQUENCE if self.batches else 0

    def __repr__(self) -> str:
        transaction = f" open since {self.open_since}" if self.open_since >= 0 else ""
        return f"<producer epoch={self.epoch} {self.batches}{transaction}>"


class ProducerStates:
    __slots__ = ("_refused", "_states", "forgotten")

    def __init__(self) -> None:
        self.forgotten = 0
        """How many there was no room for, though they had not been silent for long enough."""
        self._states: dict[ProducerId, ProducerState] = {}
        self._refused: dict[ProducerId, tuple[Epoch, int]] = {}
        """Epoch and sequence of the first batch that there was no room for."""

    def judge(self, batch: Batch) -> Remembered | None:
        """None: append it. Or the batch that this one repeats. Or KafkaError: it must not be appended."""
        if self._refused and batch.producer_id in self._refused:
            return self._judge_after_refusal(batch)
        return self._judge(batch)

    def _judge_after_refusal(self, batch: Batch) -> Remembered | None:
        epoch, sequence = self._refused[batch.producer_id]
        is_another = batch.producer_epoch == epoch and batch.base_sequence != sequence
        try:
            found = self._judge(batch)
        except KafkaError as error:
            if is_another and error.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                raise _no_room_before(batch, sequence) from error
            raise
        if found is None and is_another:
            # Of a producer that is unknown here any sequence would be taken for its first.
            raise _no_room_before(batch, sequence)
        return found

    def _judge(self, batch: Batch) -> Remembered | None:
        state = self._states.get(batch.producer_id)
        if state is None:
            return None
        epoch, sequence = batch.producer_epoch, batch.base_sequence
        if epoch == state.epoch:
            if sequence != state.next_sequence:
                for remembered in state.batches:
                    if remembered.base_sequence == sequence and remembered.offset_delta == batch.last_offset_delta:
                        return remembered
                raise _out_of_order(batch, f"{state.next_sequence} was expected")
        elif epoch < state.epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {batch.producer_id} has epoch {state.epoch} by now, not {epoch}",
            )
        elif sequence != 0:
            raise _out_of_order(batch, f"a new epoch begins with 0, after epoch {state.epoch}")
        if state.open_since >= 0 and not batch.is_transactional:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, f"producer {batch.producer_id} has a transaction open")
        return None

    def refuse(self, batch: Batch) -> None:
        """There was no room for this one."""
        if batch.producer_id >= 0 and self._refused.get(batch.producer_id, (NO_EPOCH,))[0] != batch.producer_epoch:
            if len(self._refused) == MOST_REFUSED:
                del self._refused[next(iter(self._refused))]
            self._refused[batch.producer_id] = (batch.producer_epoch, batch.base_sequence)

    def remember_refused(self, other: "ProducerStates") -> None:
        """What another log refused, in the place of which this one is."""
        self._refused = other._refused

    def note(self, batch: Batch, base_offset: Offset, max_timestamp: int, now_ms: int) -> None:
        """The batch, which is not a marker, is in the log at this offset."""
        if self._refused:
            self._refused.pop(batch.producer_id, None)
        state = self._of(batch, now_ms)
        delta = batch.last_offset_delta
        batches = state.batches
        if len(batches) == REMEMBERED_BATCHES:
            del batches[0]
        batches.append(Remembered(batch.last_sequence, base_offset + delta, delta, max_timestamp))
        state.last_timestamp = max_timestamp
        if batch.attributes & TRANSACTIONAL_BIT and state.open_since < 0:
            state.open_since = base_offset

    def note_marker(self, batch: Batch, coordinator_epoch: Epoch, now_ms: int) -> None:
        """The end of a transaction is in the log."""
        state = self._of(batch, now_ms)
        state.coordinator_epoch = coordinator_epoch
        state.open_since = NO_OFFSET
        state.last_timestamp = batch.max_timestamp

    def expire(self, now_ms: int, after_ms: int) -> int:
        """Forget producers that have been silent so long and have nothing open; returns how many."""
        silent = [
            producer_id
            for producer_id, state in self._states.items()
            if now_ms - state.seen_ms >= after_ms and state.open_since < 0
        ]
        for producer_id in silent:
            del self._states[producer_id]
            self._refused.pop(producer_id, None)
        return len(silent)

    def forget_oldest(self, most: int) -> None:
        """No more than so many are remembered: of those that have nothing open the longest silent go, some at a time so
        that it is seldom done."""
        if len(self._states) <= most:
            return
        closed = [(state.seen_ms, producer_id) for producer_id, state in self._states.items() if state.open_since < 0]
        count = len(self._states) - most + most // FORGOTTEN_SHARE
        # (Sorting is stable: of those heard of at once the first come first.)
        for _, producer_id in sorted(closed, key=itemgetter(0))[:count]:
            del self._states[producer_id]
            self._refused.pop(producer_id, None)
            self.forgotten += 1

    def first_open_offset(self) -> Offset | None:
        """Where the oldest open transaction began."""
        return min((state.open_since for state in self._states.values() if state.open_since >= 0), default=None)

    def last_offsets(self) -> dict[ProducerId, Offset]:
        """The last batch of each producer, which compaction keeps, if only as an empty one."""
        return {
            producer_id: state.batches[-1].last_offset for producer_id, state in self._states.items() if state.batches
        }

    def get(self, producer_id: ProducerId) -> ProducerState | None:
        return self._states.get(producer_id)

    def items(self) -> list[tuple[ProducerId, ProducerState]]:
        return sorted(self._states.items())

    def put(self, producer_id: ProducerId, state: ProducerState) -> None:
        self._states[producer_id] = state

    def clear(self) -> None:
        self._states.clear()
        self._refused.clear()

    def __len__(self) -> int:
        return len(self._states)

    def _of(self, batch: Batch, now_ms: int) -> ProducerState:
        state = self._states.get(batch.producer_id)
        if state is None:
            state = self._states[batch.producer_id] = ProducerState(batch.producer_epoch)
        elif batch.producer_epoch != state.epoch:
            state.epoch = batch.producer_epoch
            state.batches.clear()
        state.seen_ms = now_ms
        return state


def _no_room_before(batch: Batch, sequence: int) -> KafkaError:
    return KafkaError(
        ErrorCode.KAFKA_STORAGE_ERROR,
        f"there was no room for sequence {sequence} of producer {batch.producer_id}, which comes before "
        f"{batch.base_sequence}",
    )


def _out_of_order(batch: Batch, why: str) -> KafkaError:
    return KafkaError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"sequence {batch.base_sequence} of producer {batch.producer_id} in epoch {batch.producer_epoch}: {why}",
    )
