"""The leader is killed under load: a follower takes over, clients find it and go on; the broker returns (S21, S22)."""

from dataclasses import dataclass

from rich.text import Text

from klamm.lab.clients import Stream, all_values, doubled, lost
from klamm.lab.drawing import timeline
from klamm.lab.measured import Claim, Measured
from klamm.lab.stage import Layout, Stage, Told
from klamm.lab.watching import Look, Watch

PLAN = """\
Three brokers start. A producer writes to a topic with acks=all all the time, and a consumer reads it. The leader is
killed with kill -9, another leads, the dead one is started again, catches up, and leads again, since it is the
preferred replica. Neither client is told anything, or restarted."""

LAYOUT = Layout(brokers=3, settings={"leader.imbalance.check.interval.seconds": "1"})
TOPIC, SOME = "invoice", 200
LEADER, REPLICAS = 0, (0, 1, 2)


@dataclass(frozen=True, slots=True)
class Failover(Measured):
    killed: int
    it_was_the_controller: bool
    next_leader: int
    led_again_after_seconds: float
    """After the kill, as the cluster's metadata says."""
    longest_silence_seconds: float
    """Between two acknowledgements."""
    in_sync_again_after_seconds: float
    """After the broker was started again."""
    last_leader: int
    sent: int
    acknowledged: int
    readable: int
    read_meanwhile: int
    """By the consumer that was there all the time."""
    lost: int
    doubled: int
    looks: tuple[Look, ...]
    marks: tuple[Told, ...]

    def claims(self) -> list[Claim]:
        return [
            Claim(
                "a replica that was in sync took over",
                self.next_leader in REPLICAS and self.next_leader != self.killed,
            ),
            Claim(
                "the producer went on by itself: every record is acknowledged, none is lost, none is doubled",
                self.sent == self.acknowledged == self.readable and self.lost == self.doubled == 0,
            ),
            Claim("the consumer went on by itself, and read all of it", self.read_meanwhile == self.readable),
            Claim(
                "the killed broker came back in sync, and leads again",
                self.last_leader == self.killed and set(self.looks[-1].in_sync) == set(REPLICAS),
            ),
        ]

    def pictures(self) -> list[Text]:
        return [timeline(self.looks, REPLICAS, self.marks)]

    def lesson(self) -> str:
        controller = " Here it was the active controller as well, so the quorum chose another of those first."
        return (
            "When a leader dies, the controller makes a replica leader that was in sync, and so has every record that "
            f"was acknowledged with acks=all.{controller if self.it_was_the_controller else ''} Clients ask any broker "
            "for the metadata, find the new leader, and send again what was not answered; idempotence keeps that from "
            "doubling."
        )

    def result(self) -> str:
        return (
            f"broker {self.next_leader} led {self.led_again_after_seconds:.2f} s after the kill; the longest wait for "
            f"an acknowledgement {self.longest_silence_seconds:.2f} s; {self.sent:,} sent, {self.acknowledged:,} "
            f"acknowledged, {self.lost} lost, {self.doubled} doubled"
        )


def measured(stage: Stage) -> Failover:
    bootstrap = stage.bootstrap()
    stage.create(TOPIC, replicas=REPLICAS, config={"min.insync.replicas": "2"})
    it_was_the_controller = stage.controller() == LEADER
    with Watch(stage, TOPIC, REPLICAS) as watch, Stream(bootstrap, TOPIC) as stream:
        stream.wait_acknowledged(SOME)
        stage.kill(LEADER)
        killed = stage.tell(f"kill -9 to broker {LEADER}, the leader")
        next_leader = stage.wait_led(TOPIC, set(REPLICAS) - {LEADER})
        led = stage.tell(f"broker {next_leader} leads")
        stream.wait_acknowledged(SOME)
        started = stage.tell(f"broker {LEADER} is started again")
        stage.start(LEADER)
        stage.wait_in_sync(TOPIC, REPLICAS)
        in_sync = stage.tell(f"broker {LEADER} has caught up and is in sync")
        last_leader = stage.wait_led(TOPIC, {LEADER})
        leads = stage.tell(f"broker {LEADER} leads again")
        stream.wait_acknowledged(SOME)
    readable = all_values(bootstrap, TOPIC)
    return Failover(
        killed=LEADER,
        it_was_the_controller=it_was_the_controller,
        next_leader=next_leader,
        led_again_after_seconds=round(led.seconds - killed.seconds, 3),
        longest_silence_seconds=round(stream.longest_silence(), 3),
        in_sync_again_after_seconds=round(in_sync.seconds - started.seconds, 3),
        last_leader=last_leader,
        sent=len(stream.sent),
        acknowledged=len(stream.acknowledged),
        readable=len(readable),
        read_meanwhile=len(stream.read),
        lost=lost(stream.acknowledged, readable),
        doubled=doubled(readable),
        looks=tuple(watch.looks),
        marks=(killed, led, started, in_sync, leads),
    )
