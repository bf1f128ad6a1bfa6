"""What an acknowledgement is worth: acks 0, 1 and all, while the leader dies (S17, S18, S19).

Loss has to be certain here, and honest. Three topics have the same leader and the same followers, and everything
happens to all three at once. The followers are stopped, in sync; what is sent now reaches the leader's log, which is
looked at, and no other. Then the leader is killed and the followers go on. Every producer was told what its acks
promise; what can be read in the end, with the old leader back in sync, is counted.
"""

from dataclasses import dataclass

from rich.text import Text

from klamm.lab.clients import Writer, all_values, doubled, lost
from klamm.lab.drawing import Bar, bars, grid
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
from klamm.lab.stage import Stage

PLAN = """\
Six brokers start. Three topics, one for each setting of acks, have the same leader (broker 3) and the same two
followers (4 and 5). A producer sends 100 invoices to each. Then the followers are stopped with SIGSTOP, in sync
as before, 50 more are sent to each topic, and the leader is killed with kill -9. The followers go on, one of them
leads, the dead broker returns. Then every topic is read to its end."""

LAYOUT = SIX_BROKERS
CALM, DOOMED = 100, 50
ACKS = ("0", "1", "all")


def _topic(acks: str) -> str:
    return f"acks-{acks}"


TOPICS = tuple(map(_topic, ACKS))


@dataclass(frozen=True, slots=True)
class Tally:
    acks: str
    sent: int
    acknowledged: int
    """Of how many the application was told that they are delivered."""
    acknowledged_before_the_leader_died: int
    readable: int
    lost: int
    """Acknowledged, and not readable."""
    doubled: int


@dataclass(frozen=True, slots=True)
class Acks(Measured):
    tallies: tuple[Tally, ...]
    in_sync_when_the_leader_died: tuple[int, ...]
    next_leaders: tuple[int, ...]
    """By topic."""

    def claims(self) -> list[Claim]:
        none, one, every = self.tallies
        return [
            Claim(
                "the followers were in sync when the leader died",
                set(self.in_sync_when_the_leader_died) == set(REPLICAS),
            ),
            Claim("acks=0 lost records that the application took for delivered", _lost_in_time(none)),
            Claim("acks=1 lost records that were acknowledged", _lost_in_time(one)),
            Claim(
                "acks=all acknowledged every record, and lost and doubled none",
                every.acknowledged == every.sent == every.readable and every.lost == every.doubled == 0,
            ),
            Claim("what is lost is what is missing", all(_adds_up(tally) for tally in self.tallies)),
        ]

    def pictures(self) -> list[Text]:
        headings = ("acks", "sent", "acknowledged", "of them before the kill", "readable", "lost", "doubled")
        rows = [
            (
                *(each.acks, each.sent, each.acknowledged, each.acknowledged_before_the_leader_died),
                *(each.readable, each.lost, each.doubled),
            )
            for each in self.tallies
        ]
        fates = [
            Bar(f"acks={each.acks}", each.sent - each.lost, each.sent, f"{each.lost} lost") for each in self.tallies
        ]
        return [grid(headings, rows), bars(fates, meanings=("readable", "acknowledged and lost"))]

    def lesson(self) -> str:
        return (
            "With acks=0 nobody answers: the client calls a record delivered once it is sent. With acks=1 the leader "
            "answers alone, and what nobody copied dies with it. With acks=all the answer waits until every in-sync "
            "replica has the record: here no answer came, the client sent again to the next leader, and each record is "
            "there once."
        )

    def result(self) -> str:
        return "; ".join(
            f"acks={each.acks}: {each.sent} sent, {each.acknowledged} acknowledged, {each.lost} lost"
            for each in self.tallies
        )


def _lost_in_time(tally: Tally) -> bool:
    return tally.acknowledged == tally.acknowledged_before_the_leader_died == tally.sent and tally.lost > 0


def _adds_up(tally: Tally) -> bool:
    """Each record that is there was sent; who was acknowledged is there or is lost."""
    there_once = tally.readable - tally.doubled
    return there_once <= tally.sent and tally.acknowledged - tally.lost <= there_once


def measured(stage: Stage) -> Acks:
    trial = Trial(stage)
    trial.write_calmly()
    in_sync = trial.write_to_the_leader_alone()
    before = {acks: len(writer.acknowledged) for acks, writer in trial.writers.items()}
    leaders = trial.lose_the_leader()
    bring_leader_back(stage, TOPICS)
    stage.tell(f"broker {LEADER} is back and in sync; now everything is read")
    tallies = (_tally(acks, writer, before[acks], trial.readable(acks)) for acks, writer in trial.writers.items())
    return Acks(tuple(tallies), in_sync, leaders)


class Trial:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._bootstrap = stage.bootstrap(VOTERS)
        self.writers = {
            # In a few batches: an idempotent producer has five requests on their way at most, and waits for answers.
            acks: Writer(self._bootstrap, acks, {"linger.ms": 20, "enable.idempotence": acks == "all"})
            for acks in ACKS
        }
        for topic in TOPICS:
            stage.create(topic, replicas=REPLICAS)
        stage.tell(f"three topics: led by broker {LEADER}, followed by {FOLLOWERS[0]} and {FOLLOWERS[1]}")

    def write_calmly(self) -> None:
        self._send(range(CALM))
        for writer in self.writers.values():
            writer.wait_answered()
        for broker in REPLICAS:
            self._wait_on(broker, CALM)
        self._stage.tell(f"{CALM} invoices sent to each topic: all acknowledged, all on three brokers")

    def write_to_the_leader_alone(self) -> tuple[int, ...]:
        """Who is in sync by then."""
        stop_followers(self._stage)
        self._send(range(CALM, CALM + DOOMED))
        self._wait_on(LEADER, CALM + DOOMED)
        for acks in ("0", "1"):
            self.writers[acks].wait_answered()
        in_sync = [sorted(place.in_sync) for topic in TOPICS for place in self._stage.places(topic)]
        self._stage.tell(f"{DOOMED} more sent to each topic, all in the leader's log; in sync: {in_sync[0]}")
        return tuple(set.intersection(*map(set, in_sync)))

    def lose_the_leader(self) -> tuple[int, ...]:
        """Who leads each topic afterwards."""
        leaders = lose_leader(self._stage, TOPICS)
        self.writers["all"].wait_answered()
        self._stage.tell("the producer with acks=all has sent again, and has all its answers")
        return leaders

    def readable(self, acks: str) -> list[str]:
        return all_values(self._bootstrap, _topic(acks))

    def _send(self, numbers: range) -> None:
        for number in numbers:
            for acks, writer in self.writers.items():
                writer.send(_topic(acks), f"invoice {number}")

    def _wait_on(self, broker: int, end: int) -> None:
        for topic in TOPICS:
            self._stage.wait_log_end(broker, topic, end)


def _tally(acks: str, writer: Writer, before: int, readable: list[str]) -> Tally:
    return Tally(
        acks=acks,
        sent=len(writer.sent),
        acknowledged=len(writer.acknowledged),
        acknowledged_before_the_leader_died=before,
        readable=len(readable),
        lost=lost(writer.acknowledged, readable),
        doubled=doubled(readable),
    )
