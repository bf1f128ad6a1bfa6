"""A member by confluent-kafka: librdkafka, in either protocol. Its callbacks come while it polls."""

from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.groups.members.telling import Going, Handled, asked, tell


def main() -> None:
    wish, going = asked(), Going()
    handled = Handled(wish.commit_every_ms)
    settings: dict[str, Any] = {
        "bootstrap.servers": wish.bootstrap,
        "group.id": wish.group,
        "client.id": wish.client_id,
        "group.protocol": wish.protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "fetch.wait.max.ms": 100,
        "reconnect.backoff.max.ms": 500,
        "topic.metadata.refresh.interval.ms": 2000,
    }
    if wish.instance:
        settings["group.instance.id"] = wish.instance
    if wish.protocol == "classic":
        settings["partition.assignment.strategy"] = wish.assignor
        settings["session.timeout.ms"] = wish.session_ms
        settings["heartbeat.interval.ms"] = 200
    consumer = Consumer(settings)

    def commit() -> None:
        offsets = dict(handled.uncommitted)
        if not offsets:
            return
        try:
            places = [TopicPartition(wish.topic, partition, offset) for partition, offset in offsets.items()]
            for one in consumer.commit(offsets=places, asynchronous=False) or ():
                if one.error is not None:
                    raise KafkaException(one.error)
            handled.committed(offsets)
        except KafkaException as error:
            handled.refused(error)

    def assigned(_: Consumer, places: list[TopicPartition]) -> None:
        tell("assigned", partitions=[place.partition for place in places])

    def revoked(_: Consumer, places: list[TopicPartition]) -> None:
        commit()
        handled.forget(place.partition for place in places)
        tell("revoked", partitions=[place.partition for place in places])

    def lost(_: Consumer, places: list[TopicPartition]) -> None:
        handled.forget(place.partition for place in places)
        tell("lost", partitions=[place.partition for place in places])

    tell("started")
    consumer.subscribe([wish.topic], on_assign=assigned, on_revoke=revoked, on_lost=lost)
    while not going.now:
        found: list[Any] = []
        for message in consumer.consume(200, timeout=0.1):
            if message.error() is None:
                found.append((message.partition(), message.offset()))
            else:
                tell("problem", why=str(message.error()))
        handled.handle(found)
        if handled.is_due():
            commit()
    commit()
    consumer.close()
    tell("closed")


if __name__ == "__main__":
    main()
