"""Fetch (4-18): records from given offsets on, now or as soon as there are enough.

A fetch waits until `min_bytes` can be read, a partition has an error, or `max_wait_ms` is over. The first batch is
given whole even if it is larger than asked for, so that nobody gets stuck on it. Within a session
(`broker/sessions.py`) only what changed is answered. Up to version 12 topics have names, from 13 on ids.

Consumers read what is committed. A position between the high watermark and the log's end has nothing to read yet; only
outside the log is it OFFSET_OUT_OF_RANGE. A client that tells the epoch of its last record hears where its history
parted from ours. Where `replica.selector.class` is Kafka's RackAwareReplicaSelector, a consumer that says where it is
(11+) is sent to an in-sync replica in its rack, and followers serve consumers; elsewhere only the leader does.

Followers (from version 15 on a replica id with its broker's epoch, over a connection that this broker has confirmed)
read to the log's end; what they ask for tells the leader how far they are. Earlier versions name no epoch and are
refused to whoever names a replica. The log of the metadata quorum is fetched with the same API, and answered by the
quorum.
"""

from collections.abc import Iterable
from functools import partial

from klamm.broker.answer import Answer, Changed, Later, Reply
from klamm.broker.call import Call
from klamm.broker.sessions import FINAL_EPOCH, FIRST_EPOCH, NO_SESSION, Key, Position, Session
from klamm.broker.speaker import check_speaker
from klamm.errors import ErrorCode, KafkaError
from klamm.handlers import quorum_fetch
from klamm.handlers.fetch_answer import FIRST_VERSION_WITH_READING_FROM_FOLLOWERS, FetchAnswer
from klamm.handlers.fetch_by_follower import FollowerFetch
from klamm.handlers.fetch_in_slices import SLICE_PARTITIONS, LargeFetch, is_large
from klamm.ids import NO_BROKER, BrokerId
from klamm.wire.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData

FIRST_VERSION_WITH_ERROR = 7
FIRST_VERSION_WITH_IDS = 13
FIRST_VERSION_WITH_REPLICA_STATE = 15
READ_COMMITTED = 1


def handle(request: FetchRequest, call: Call) -> Answer:
    of_the_quorum = quorum_fetch.answer(request, call)
    if of_the_quorum is not None:
        return of_the_quorum
    if is_large(request):
        try:
            _follower(request, call)
        except KafkaError as error:
            return Reply(_refused(request, call.version, error.code))
        return _large(request, call).read(_understood)
    try:
        fetch = _understood(request, call)
    except KafkaError as error:
        return Reply(_refused(request, call.version, error.code))
    if fetch.session is not None and len(fetch.session.active) > SLICE_PARTITIONS:
        return _large(request, call).look(fetch)
    if fetch.answers_at_once():
        return Reply(fetch.response())
    return Later(
        until=Changed(fetch.subjects(), fetch.answers_at_once),
        deadline_ms=call.now.monotonic_ms + request.max_wait_ms,
        then=lambda now, in_time: fetch.response(),
    )


def _large(request: FetchRequest, call: Call) -> LargeFetch:
    by_id = call.version >= FIRST_VERSION_WITH_IDS
    return LargeFetch(request, call, partial(_positions, by_id=by_id), partial(_forgotten, by_id=by_id), _refused)


def _understood(request: FetchRequest, call: Call) -> FetchAnswer:
    """Which partitions this fetch is about: its own, or those of its session."""
    follower, replica_epoch = _follower(request, call)
    sessions = call.broker.sessions
    by_id = call.version >= FIRST_VERSION_WITH_IDS
    wanted = list(_positions(request, by_id))
    session: Session | None = None
    if request.session_epoch in (FIRST_EPOCH, FINAL_EPOCH):
        sessions.close(request.session_id)
        if request.session_epoch == FIRST_EPOCH and wanted:
            session = sessions.open(by_id, wanted, call.now, follower)
    else:
        session = sessions.resume(request.session_id, request.session_epoch, by_id, call.now, follower)
        sessions.update(session, wanted, _forgotten(request, by_id))
    incremental = session is not None and request.session_epoch != FIRST_EPOCH
    waits = request.max_wait_ms > 0
    if follower != NO_BROKER:
        fetch = FollowerFetch(
            call=call,
            by_id=by_id,
            session=session,
            incremental=incremental,
            positions=wanted,
            min_bytes=request.min_bytes,
            max_bytes=request.max_bytes,
            waits=waits,
            read_committed=False,
            broker_id=follower,
            broker_epoch=replica_epoch,
            session_epoch=NO_SESSION if session is None else session.epoch,
        )
        fetch.note_positions(request)
        if incremental:
            call.broker.waiting.changed(session)
        return fetch
    sends_on = (
        call.broker.partitions.surroundings.readers_may_follow
        and call.version >= FIRST_VERSION_WITH_READING_FROM_FOLLOWERS
    )
    return FetchAnswer(
        call=call,
        by_id=by_id,
        session=session,
        incremental=incremental,
        positions=wanted,
        min_bytes=request.min_bytes,
        max_bytes=min(request.max_bytes, call.broker.fetch_max_bytes),
        waits=waits,
        read_committed=request.isolation_level == READ_COMMITTED,
        rack=request.rack_id if sends_on else "",
    )


def _follower(request: FetchRequest, call: Call) -> tuple[BrokerId, int]:
    """Which broker asks, in which life; NO_BROKER for consumers. Raise unless it is this broker that asks: where it
    stands counts, and it reads what is not committed."""
    if call.version < FIRST_VERSION_WITH_REPLICA_STATE:
        if request.replica_id >= 0:
            reason = "Followers tell their broker epoch: they fetch with version 15 or later."
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, reason)
        return NO_BROKER, NO_BROKER
    state = request.replica_state
    if state.replica_id < 0:
        return NO_BROKER, NO_BROKER
    check_speaker(call, state.replica_id, state.replica_epoch)
    return state.replica_id, state.replica_epoch


def _refused(request: FetchRequest, version: int, code: ErrorCode) -> FetchResponse:
    """All of it. Older versions say that of each partition."""
    response = FetchResponse(error_code=code, session_id=request.session_id)
    if version < FIRST_VERSION_WITH_ERROR:
        response.responses = [
            FetchableTopicResponse(
                topic=topic.topic,
                partitions=[
                    PartitionData(partition_index=each.partition, error_code=code, high_watermark=-1)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    return response


def _positions(request: FetchRequest, by_id: bool) -> Iterable[Position]:
    for topic in request.topics:
        name = topic.topic_id if by_id else topic.topic
        for wanted in topic.partitions:
            yield Position(
                name,
                wanted.partition,
                wanted.fetch_offset,
                wanted.partition_max_bytes,
                wanted.current_leader_epoch,
                wanted.last_fetched_epoch,
            )


def _forgotten(request: FetchRequest, by_id: bool) -> Iterable[Key]:
    for topic in request.forgotten_topics_data:
        for index in topic.partitions:
            yield (topic.topic_id if by_id else topic.topic, index)
