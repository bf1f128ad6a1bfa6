"""The in-sync replicas: a follower falls behind, is left out, catches up and is let in again (S14, S15).

It is stopped with SIGSTOP and stays a member of the cluster: it leaves the list because it lags, not because it is
dead. While it is on the list acks=all waits for it; afterwards it does not.
"""

from dataclasses import dataclass

from rich.text import Text

from klamm.lab.clients import Stream, all_values, doubled, lost
from klamm.lab.drawing import Bar, bars, timeline, titled
from klamm.lab.measured import Claim, Measured
from klamm.lab.stage import Layout, Stage, Told
from klamm.lab.watching import Look, Watch

PLAN = """\
Three brokers start, with replica.lag.time.max.ms at a second and a half. A producer writes to a topic with acks=all
all the time. One follower is stopped with SIGSTOP until the leader leaves it out and 600 more invoices are acknowledged
without it. Then it goes on."""

LAG_SECONDS = 1.5
LAYOUT = Layout(
    brokers=3,
    settings={
        "replica.lag.time.max.ms": str(int(LAG_SECONDS * 1000)),
        # So that it leaves because it lags, and not because it is taken for dead.
        "broker.session.timeout.ms": "20000",
    },
)
TOPIC, CALM, MEANWHILE = "invoice", 100, 600


@dataclass(frozen=True, slots=True)
class Isr(Measured):
    leader: int
    stopped: int
    lag_allowed_seconds: float
    left_after_seconds: float
    """After it was stopped."""
    acknowledged_without_it: int
    """Records that it did not have when it went on."""
    behind: int
    """How many records the leader had by then that it had not."""
    back_after_seconds: float
    """After it went on."""
    longest_silence_seconds: float
    """Between two acknowledgements."""
    sent: int
    acknowledged: int
    readable: int
    lost: int
    doubled: int
    log_ends: dict[int, int]
    """In the end."""
    looks: tuple[Look, ...]
    marks: tuple[Told, ...]

    def claims(self) -> list[Claim]:
        away = [look for look in self.looks if self.stopped not in look.in_sync]
        return [
            Claim(
                "the follower that stood still left the in-sync replicas, once it had lagged for the time allowed",
                # It may have caught up for the last time some moments before it was stopped.
                self.left_after_seconds >= self.lag_allowed_seconds * 0.5 and bool(away),
            ),
            Claim(
                "acks=all waited for it while it was in sync, and went on without it afterwards",
                self.longest_silence_seconds >= self.lag_allowed_seconds * 0.5
                and self.behind >= self.acknowledged_without_it >= MEANWHILE,
            ),
            Claim(
                "it caught up and was let in again",
                set(self.looks[-1].in_sync) == set(self.log_ends) and set(self.log_ends.values()) == {self.readable},
            ),
            Claim(
                "every record was acknowledged, none is lost, none is doubled",
                self.sent == self.acknowledged == self.readable and self.lost == self.doubled == 0,
            ),
        ]

    def pictures(self) -> list[Text]:
        brokers = sorted(self.log_ends)
        away = [look for look in self.looks if self.stopped not in look.in_sync]
        widest = max(away or self.looks, key=lambda look: self._gap(look))
        rows = [
            Bar(f"broker {broker}", end, end, self._role(broker, widest)) for broker, end in widest.log_ends.items()
        ]
        title = f"where the logs ended at {widest.seconds:.2f} s, when broker {self.stopped} was furthest behind"
        return [timeline(self.looks, brokers, self.marks), titled(title, bars(rows))]

    def lesson(self) -> str:
        return (
            "The leader keeps a list of the replicas that keep up. One that has not caught up for "
            "replica.lag.time.max.ms is taken off it, so that a slow broker delays producers once and not forever; it "
            "is let in again when it has caught up. Who is on the list can lead without loss."
        )

    def result(self) -> str:
        return (
            f"left after {self.left_after_seconds:.2f} s, {self.behind:,} records behind, back "
            f"{self.back_after_seconds:.2f} s after it went on; the longest wait for an acknowledgement "
            f"{self.longest_silence_seconds:.2f} s; {self.acknowledged:,} acknowledged, {self.lost} lost"
        )

    def _gap(self, look: Look) -> int:
        return look.log_ends[self.leader] - look.log_ends[self.stopped]

    def _role(self, broker: int, look: Look) -> str:
        if broker == self.leader:
            return "leads"
        return f"{self._gap(look):,} behind" if broker == self.stopped else ""


def measured(stage: Stage) -> Isr:
    # The controller leads: a stopped controller would be a story of its own.
    leader = stage.controller()
    other, stopped = (node.node_id for node in stage.record.brokers if node.node_id != leader)
    bootstrap = stage.bootstrap((leader, other))
    stage.create(TOPIC, replicas=[leader, other, stopped])
    with Watch(stage, TOPIC, [leader, other, stopped]) as watch:
        with Stream(bootstrap, TOPIC) as stream:
            stream.wait_acknowledged(CALM)
            paused = stage.tell(f"broker {stopped}, a follower, is stopped (SIGSTOP)")
            stage.pause(stopped)
            stage.wait_in_sync(TOPIC, (leader, other))
            left = stage.tell(f"broker {stopped} is out: in sync are {leader} and {other}")
            stream.wait_acknowledged(MEANWHILE)
            acknowledged, end = len(stream.acknowledged), stage.log_end(stopped, TOPIC)
            behind = stage.log_end(leader, TOPIC) - end
            resumed = stage.tell(f"broker {stopped} goes on")
            stage.resume(stopped)
            stage.wait_in_sync(TOPIC, (leader, other, stopped))
            back = stage.tell(f"broker {stopped} has caught up and is in sync again")
            stream.wait_acknowledged(CALM)
        for broker in (leader, other, stopped):
            stage.wait_log_end(broker, TOPIC, len(stream.acknowledged))
    readable = all_values(bootstrap, TOPIC)
    return Isr(
        leader=leader,
        stopped=stopped,
        lag_allowed_seconds=LAG_SECONDS,
        left_after_seconds=round(left.seconds - paused.seconds, 3),
        acknowledged_without_it=acknowledged - end,
        behind=behind,
        back_after_seconds=round(back.seconds - resumed.seconds, 3),
        longest_silence_seconds=round(stream.longest_silence(), 3),
        sent=len(stream.sent),
        acknowledged=len(stream.acknowledged),
        readable=len(readable),
        lost=lost(stream.acknowledged, readable),
        doubled=doubled(readable),
        log_ends={broker: stage.log_end(broker, TOPIC) for broker in sorted((leader, other, stopped))},
        looks=tuple(watch.looks),
        marks=(paused, left, resumed, back),
    )
