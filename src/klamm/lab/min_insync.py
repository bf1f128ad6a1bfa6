"""`min.insync.replicas`: with too few in sync, acks=all is refused, and the rest goes on (S20)."""

from dataclasses import dataclass

from rich.text import Text

from klamm.lab.clients import Writer, all_values
from klamm.lab.drawing import grid
from klamm.lab.lone_leader import FOLLOWERS, LEADER, REPLICAS, SIX_BROKERS, VOTERS
from klamm.lab.measured import Claim, Measured
from klamm.lab.stage import Stage

PLAN = """\
Six brokers start. A topic with min.insync.replicas=2 is led by broker 3 and followed by 4 and 5. One follower is
killed, then the other, then one returns. Each time an invoice is written with acks=all (by a client that does not try
again) and one with acks=1, and the topic is read from its beginning."""

LAYOUT = SIX_BROKERS
MINIMUM = 2
TOPIC = "invoice"
REFUSAL = "NOT_ENOUGH_REPLICAS"
OK = "ok"


@dataclass(frozen=True, slots=True)
class Step:
    what: str
    in_sync: tuple[int, ...]
    acks_all: str
    """`ok`, or the name of the error."""
    acks_1: str
    written: int
    """Acknowledged so far, in either way."""
    readable: int
    """By a consumer that begins anew."""

    @property
    def is_enough(self) -> bool:
        return len(self.in_sync) >= MINIMUM


@dataclass(frozen=True, slots=True)
class MinInsync(Measured):
    minimum: int
    steps: tuple[Step, ...]

    def claims(self) -> list[Claim]:
        enough = [step for step in self.steps if step.is_enough]
        too_few = [step for step in self.steps if not step.is_enough]
        return [
            Claim(
                f"with {self.minimum} or more in sync acks=all is acknowledged",
                bool(enough) and all(step.acks_all == OK for step in enough),
            ),
            Claim(
                f"with fewer it is refused: {REFUSAL}",
                bool(too_few) and all(step.acks_all == REFUSAL for step in too_few),
            ),
            Claim("acks=1 goes on all the time", all(step.acks_1 == OK for step in self.steps)),
            Claim(
                "reads go on: what was committed stays readable",
                all(step.readable >= committed for step, committed in zip(self.steps, self._committed(), strict=True)),
            ),
            Claim(
                "what acks=1 wrote meanwhile is not committed, and is when enough are in sync again",
                all(step.readable == step.written for step in enough)
                and all(step.readable < step.written for step in too_few),
            ),
        ]

    def _committed(self) -> list[int]:
        """At each step, how much was readable the last time that enough were in sync."""
        known, last = [], 0
        for step in self.steps:
            last = step.written if step.is_enough else last
            known.append(last)
        return known

    def pictures(self) -> list[Text]:
        rows = [
            (step.what, ", ".join(map(str, step.in_sync)), step.acks_all, step.acks_1, step.written, step.readable)
            for step in self.steps
        ]
        return [grid(("broker", "in sync", "acks=all", "acks=1", "acknowledged", "readable"), rows)]

    def lesson(self) -> str:
        return (
            "acks=all alone means all that are in sync, and that may be the leader only. min.insync.replicas says how "
            "many there must be: with fewer the leader refuses such a record rather than hold it alone. The price is "
            "that careful producers wait until a replica is back; readers and hasty producers go on."
        )

    def result(self) -> str:
        return "; ".join(f"{len(step.in_sync)} in sync: acks=all {step.acks_all}" for step in self.steps)


def measured(stage: Stage) -> MinInsync:
    bootstrap = stage.bootstrap(VOTERS)
    stage.create(TOPIC, replicas=REPLICAS, config={"min.insync.replicas": str(MINIMUM)})
    trial = Trial(stage, bootstrap)
    first, second = FOLLOWERS
    trial.step("all are there", REPLICAS)
    stage.kill(second)
    trial.step(f"{second} is killed", (LEADER, first))
    stage.kill(first)
    trial.step(f"{first} is killed, too", (LEADER,))
    stage.start(first)
    trial.step(f"{first} is back", (LEADER, first))
    return MinInsync(MINIMUM, tuple(trial.steps))


class Trial:
    def __init__(self, stage: Stage, bootstrap: str) -> None:
        self._stage, self._bootstrap = stage, bootstrap
        self._careful, self._hasty = Writer(bootstrap, "all", {"retries": 0}), Writer(bootstrap, "1")
        self.steps: list[Step] = []

    def step(self, what: str, in_sync: tuple[int, ...]) -> None:
        """Wait until just these are in sync, then write in both ways, and read."""
        self._stage.wait_in_sync(TOPIC, in_sync)
        number = len(self.steps)
        # The hasty one first: what the careful one writes is answered when all before it is committed, too.
        hasty = self._hasty.write(TOPIC, f"hasty {number}")
        careful = self._careful.write(TOPIC, f"careful {number}")
        written = len(self._careful.acknowledged) + len(self._hasty.acknowledged)
        readable = len(all_values(self._bootstrap, TOPIC))
        self._stage.tell(f"{what}: acks=all {careful.error or OK}, acks=1 {hasty.error or OK}, {readable} readable")
        self.steps.append(Step(what, in_sync, careful.error or OK, hasty.error or OK, written, readable))
