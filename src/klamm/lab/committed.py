"""Committed and uncommitted: what only the leader has is seen by nobody, and may go with it (S16, S22).

The followers are stopped, in sync, so that the leader alone has the last records. The high watermark stays where the
followers are, and a consumer gets nothing beyond it. Then the leader dies, a follower leads and takes other records at
the same offsets; and when the old leader returns it cuts off what was never committed and copies the rest.
"""

from dataclasses import dataclass

from rich.text import Text

from klamm.lab.clients import Reader, Writer, all_values
from klamm.lab.drawing import Bar, bars, titled
from klamm.lab.lone_leader import (
    FOLLOWERS,
    LEADER,
    REPLICAS,
    SIX_BROKERS,
    VOTERS,
    bring_leader_back,
    lose_leader,
    stop_followers,
)
from klamm.lab.measured import Claim, Measured
from klamm.lab.stage import Stage, wait_until

PLAN = """\
Six brokers start. A topic is led by broker 3 and followed by 4 and 5. Five invoices are committed. Then the followers
are stopped with SIGSTOP, and three more are written with acks=1: only the leader has them. A consumer waits for them
in vain. The leader is killed with kill -9, the followers go on, another leads and takes two other invoices. Then the
old leader returns. All the while it is looked up where each broker's log ends."""

LAYOUT = SIX_BROKERS
TOPIC = "invoice"
COMMITTED = [f"committed {number}" for number in range(5)]
UNCOMMITTED = [f"uncommitted {number}" for number in range(3)]
AFTERWARDS = [f"afterwards {number}" for number in range(2)]
CONSUMER_WAITS_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Moment:
    what: str
    high_watermark: int
    log_ends: dict[int, int]
    """By broker, as its files say."""
    leader: int


@dataclass(frozen=True, slots=True)
class Committed(Measured):
    committed: int
    written_to_the_leader_alone: int
    acknowledged_by_the_leader_alone: int
    seen_while_uncommitted: int
    """How many of these a consumer got within a second."""
    moments: tuple[Moment, ...]
    written_afterwards: int
    seen_in_the_end: tuple[str, ...]
    """By the consumer that was there all the time."""
    readable_in_the_end: tuple[str, ...]
    """By one that reads all again."""
    replicas_are_alike: bool

    def claims(self) -> list[Claim]:
        calm, alone, led_anew, returned = self.moments
        return [
            Claim(
                "what only the leader had was acknowledged with acks=1, and no consumer saw it",
                self.acknowledged_by_the_leader_alone == self.written_to_the_leader_alone > 0
                and self.seen_while_uncommitted == 0,
            ),
            Claim(
                "the high watermark stayed where the slowest in-sync replica was",
                alone.high_watermark == min(alone.log_ends.values()) == self.committed
                and alone.log_ends[LEADER] == self.committed + self.written_to_the_leader_alone,
            ),
            Claim("a follower leads after the leader's death", led_anew.leader in FOLLOWERS and calm.leader == LEADER),
            Claim(
                "the old leader came back with a longer log, and was truncated to the new leader's history",
                led_anew.log_ends[LEADER] > self.committed
                and set(returned.log_ends.values()) == {self.committed + self.written_afterwards}
                and self.replicas_are_alike,
            ),
            Claim(
                "consumers saw what was committed, in order, and never anything else",
                self.seen_in_the_end == self.readable_in_the_end
                and not any(value in UNCOMMITTED for value in self.seen_in_the_end)
                and len(self.seen_in_the_end) == self.committed + self.written_afterwards,
            ),
        ]

    def pictures(self) -> list[Text]:
        most = max(end for moment in self.moments for end in moment.log_ends.values())
        pictures: list[Text] = []
        for moment in self.moments:
            rows = [
                Bar(f"broker {broker}", moment.high_watermark, end, "leads" if broker == moment.leader else "")
                for broker, end in moment.log_ends.items()
            ]
            pictures.append(titled(f"{moment.what}; high watermark {moment.high_watermark}", bars(rows, most)))
        return pictures

    def lesson(self) -> str:
        return (
            "A record is committed when every in-sync replica has it; the high watermark is where that ends, and "
            "consumers read up to it. So nobody ever acts on a record that a change of leaders takes back. A broker "
            "that returns asks the new leader where their histories part, and cuts its own log off there."
        )

    def result(self) -> str:
        ends = ", ".join(str(moment.log_ends[LEADER]) for moment in self.moments)
        return (
            f"{self.seen_while_uncommitted} of {self.written_to_the_leader_alone} uncommitted records were seen by a "
            f"consumer; the old leader's log ended at {ends}"
        )


def measured(stage: Stage) -> Committed:
    bootstrap = stage.bootstrap(VOTERS)
    stage.create(TOPIC, replicas=REPLICAS)
    with Reader(bootstrap, TOPIC) as reader:
        return _observed(stage, bootstrap, reader)


def _observed(stage: Stage, bootstrap: str, reader: Reader) -> Committed:
    careful, hasty = Writer(bootstrap, "all", {"enable.idempotence": True}), Writer(bootstrap, "1")
    for value in COMMITTED:
        careful.write(TOPIC, value)
    seen = _read(reader, len(COMMITTED))
    calm = _moment(stage, reader, "five invoices on three brokers")
    stop_followers(stage)
    for value in UNCOMMITTED:
        hasty.write(TOPIC, value)
    early = reader.values(CONSUMER_WAITS_SECONDS)
    alone = _moment(stage, reader, "three more, on the leader only")
    stage.tell(f"a consumer waited for {CONSUMER_WAITS_SECONDS:.0f} s and got {len(early)} records")
    lose_leader(stage, [TOPIC])
    for value in AFTERWARDS:
        careful.write(TOPIC, value)
    seen += early + _read(reader, len(AFTERWARDS))
    led_anew = _moment(stage, reader, f"broker {LEADER} is dead; another leads and took two others")
    bring_leader_back(stage, [TOPIC])
    returned = _moment(stage, reader, f"broker {LEADER} is back and in sync")
    copies = {stage.log_bytes(broker, TOPIC) for broker in REPLICAS}
    return Committed(
        committed=len(COMMITTED),
        written_to_the_leader_alone=len(UNCOMMITTED),
        acknowledged_by_the_leader_alone=len(hasty.acknowledged),
        seen_while_uncommitted=len(early),
        moments=(calm, alone, led_anew, returned),
        written_afterwards=len(careful.acknowledged) - len(COMMITTED),
        seen_in_the_end=tuple(seen),
        readable_in_the_end=tuple(all_values(bootstrap, TOPIC)),
        replicas_are_alike=len(copies) == 1,
    )


def _read(reader: Reader, count: int) -> list[str]:
    values: list[str] = []

    def is_complete() -> bool:
        values.extend(reader.values(0.1))
        return len(values) >= count

    wait_until(is_complete, f"{count} records are read")
    return values


def _moment(stage: Stage, reader: Reader, what: str) -> Moment:
    """The watermark first: what it covers was on every in-sync replica before."""
    high_watermark = reader.high_watermark()
    (place,) = stage.places(TOPIC)
    ends = {broker: stage.log_end(broker, TOPIC) for broker in REPLICAS}
    told = ", ".join(map(str, ends.values()))
    stage.tell(f"{what}: the logs of {REPLICAS} end at {told}; high watermark {high_watermark}")
    return Moment(what, high_watermark, ends, place.leader)
