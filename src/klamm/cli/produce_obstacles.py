"""What stands in the way of records that nobody acknowledges: asked when it takes long, and said once in an outage.

librdkafka tries until the time is up and says that it was. Why, the brokers know: a partition without a leader, too few
replicas in sync, a leader that stands still, a disk that is full.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from queue import Empty, SimpleQueue
from threading import Thread

from klamm.cli.group_asking import Cluster, Refused
from klamm.ids import TopicPartition
from klamm.local.asking import METADATA, Address, Conversation, NoAnswer
from klamm.local.storage_seen import log_dirs, storage_in
from klamm.local.view import PartitionSeen
from klamm.wire.messages.metadata import MetadataRequest

SILENT_SECONDS = 3.0
"""So long nothing was acknowledged: long enough that another leader has taken over."""
ANSWER_SECONDS = 1.0
GLANCE_SECONDS = 0.2
"""While records are tried: a longer wait would be one for them, too. What takes longer is looked for again."""
CAUSE_SECONDS = 1.0
"""And in the end, when whoever has given up only wants to be told why."""
NAMED = 3
MIN_IN_SYNC = "min.insync.replicas"


class Silence:
    """How long nothing has been acknowledged, though something is on its way, and what is in the way of it."""

    def __init__(self, ask: Callable[[], str | None], on_found: Callable[[str], None]) -> None:
        self._ask = ask
        self._on_found = on_found
        self._question: Question | None = None
        """It is being asked; one at a time."""
        self._is_stale = False
        """What it was asked for is over."""
        self._acknowledged = 0
        self._was_waiting = False
        self._since = self._asked = time.monotonic()
        self.obstacle: str | None = None
        """Of this silence: another one has its own."""
        self._acknowledged_then = 0

    def maybe_ask(self, acknowledged: int, waiting: int, silent_seconds: float = 0.0) -> bool:
        """Whether it was asked, or looked for the answer. Once something was found, it is not asked again until that
        is over.

        `silent_seconds` are of a single partition, if somebody knows: others may acknowledge meanwhile.
        """
        now = time.monotonic()
        if acknowledged != self._acknowledged or not waiting or not self._was_waiting:
            # Also when it is the first that waits: whoever types may have been thinking for a while.
            self._acknowledged, self._was_waiting, self._since = acknowledged, waiting > 0, now
        if acknowledged != self._acknowledged_then and silent_seconds < SILENT_SECONDS:
            self.obstacle = None
        is_silent = max(now - self._since, silent_seconds) >= SILENT_SECONDS
        self._is_stale = self._question is not None and (self._is_stale or not is_silent)
        is_time = self._question is not None or now >= self._asked + SILENT_SECONDS
        if self.obstacle is not None or not is_silent or not is_time:
            return False
        within_seconds = GLANCE_SECONDS if self._question is None else 0.0
        self.obstacle, self._acknowledged_then = self._answer(within_seconds), acknowledged
        self._asked = time.monotonic()
        if self.obstacle is not None:
            self._on_found(self.obstacle)
        return True

    def cause(self) -> str | None:
        """For what was given up: what was found, or can be found within a moment."""
        return self.obstacle or self._answer(CAUSE_SECONDS)

    def _answer(self, within_seconds: float) -> str | None:
        """None also where there is none yet."""
        if self._question is None:
            self._question, self._is_stale = Question(self._ask), False
        try:
            answer = self._question.answer(within_seconds)
        except Empty:
            return None
        self._question = None
        return None if self._is_stale else answer


class Question:
    """Asked on a thread that nobody has to wait for: brokers that are gone or stand still take seconds each."""

    def __init__(self, ask: Callable[[], str | None]) -> None:
        self._ask = ask
        self._answers: SimpleQueue[str | BaseException | None] = SimpleQueue()
        Thread(target=self._work, name="obstacle", daemon=True).start()

    def answer(self, within_seconds: float) -> str | None:
        """Raises Empty while there is none, and what went wrong with the asking."""
        answer = self._answers.get(timeout=within_seconds)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _work(self) -> None:
        try:
            self._answers.put(self._ask())
        except BaseException as problem:
            self._answers.put(problem)


def obstacle_to(cluster: Cluster, topic: str, wanted: Collection[int] | None, *, needs_all: bool) -> str | None:
    """In words; None where the metadata know of none. `wanted` are partitions, None for all of them."""
    try:
        found = cluster.partitions([topic])
        required = _required(cluster, topic) if needs_all else 1
        brokers = cluster.brokers()
    except NoAnswer as problem:
        return f"no broker answers: {problem}"
    except Refused as problem:
        return str(problem)
    named = {place: seen for place, seen in found.items() if wanted is None or place.partition in wanted}
    told = list(_told(named, required, brokers, needs_all=needs_all)) or _disks(
        cluster, named, brokers, needs_all=needs_all
    )
    more = [f"and {len(told) - NAMED} more"] if len(told) > NAMED else []
    return "; ".join([*told[:NAMED], *more]) or None


def _told(
    partitions: Mapping[TopicPartition, PartitionSeen],
    required: int,
    brokers: Mapping[int, Address],
    *,
    needs_all: bool,
) -> Iterator[str]:
    concerned = {seen.leader for seen in partitions.values() if not seen.is_offline}
    if needs_all:
        concerned |= {replica for seen in partitions.values() for replica in seen.in_sync}
    silent = {each for each in concerned if each not in brokers or not _answers(brokers[each])}
    for (topic, partition), seen in sorted(partitions.items()):
        name = f"{topic}-{partition}"
        if seen.is_offline:
            yield f"{name} has no leader"
        elif seen.leader in silent:
            yield f"broker {seen.leader}, which leads {name}, does not answer"
        elif len(seen.in_sync) < (needed := min(required, len(seen.replicas))):  # As KIP-966 counts.
            yield f"{name} has {len(seen.in_sync)} of {needed} required replicas in sync"
        elif needs_all and (waited_for := sorted(silent.intersection(seen.in_sync))):
            # It counts as in sync until the controller says otherwise, which takes a while, or a quorum that is gone.
            yield f"{name} waits for broker {waited_for[0]}, which does not answer"


def _disks(
    cluster: Cluster,
    partitions: Mapping[TopicPartition, PartitionSeen],
    brokers: Mapping[int, Address],
    needs_all: bool,
) -> list[str]:
    """Of brokers that take no writes: librdkafka tries again and keeps to itself what the broker answered."""
    held: dict[int, list[TopicPartition]] = {}
    for place, seen in sorted(partitions.items()):
        for broker_id in {seen.leader, *(seen.in_sync if needs_all else ())} & brokers.keys():
            held.setdefault(broker_id, []).append(place)
    addresses = {broker_id: brokers[broker_id] for broker_id in sorted(held)}
    answers = cluster.of_brokers(
        addresses,
        lambda broker_id, broker: storage_in(log_dirs(broker, held[broker_id])),
        timeout_seconds=ANSWER_SECONDS,
    )
    return [
        f"broker {broker_id}, which {_part(partitions, held[broker_id], broker_id)}, {seen.trouble}"
        for broker_id, seen in answers.items()
        if not isinstance(seen, NoAnswer) and seen.trouble
    ]


def _part(partitions: Mapping[TopicPartition, PartitionSeen], held: Sequence[TopicPartition], broker_id: int) -> str:
    """What it has to do with them: one is named for all."""
    led = [place for place in held if partitions[place].leader == broker_id]
    return f"leads {led[0]}" if led else f"holds {held[0]}"


def _required(cluster: Cluster, topic: str) -> int:
    # Imported for those in trouble only: it costs the others a fiftieth of a second.
    from klamm.cli.config_asking import TOPIC, Owner, settings_of

    (setting,) = settings_of(cluster, Owner(TOPIC, topic), [MIN_IN_SYNC])
    return int(setting.value) if setting.value and setting.value.isdecimal() else 1


def _answers(address: Address) -> bool:
    try:
        with Conversation(address, ANSWER_SECONDS) as broker:
            broker.ask(METADATA, 12, MetadataRequest(topics=[], allow_auto_topic_creation=False))
    except NoAnswer:
        return False
    return True
