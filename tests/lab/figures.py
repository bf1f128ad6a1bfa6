"""Figures as an experiment might measure them: good ones, to be spoiled by tests."""

from klamm.lab.acks import Acks, Tally
from klamm.lab.committed import Committed, Moment
from klamm.lab.failover import Failover
from klamm.lab.groups import Groups, Round
from klamm.lab.isr import Isr
from klamm.lab.keys import STORES, Keyed, Keys
from klamm.lab.measured import Measured
from klamm.lab.min_insync import MinInsync, Step
from klamm.lab.racks import Racks
from klamm.lab.stage import Told
from klamm.lab.watching import Look
from klamm.local.view import PartitionSeen

ACKS = Acks(
    tallies=(
        Tally("0", 150, 150, 150, readable=100, lost=50, doubled=0),
        Tally("1", 150, 150, 150, readable=101, lost=49, doubled=0),
        Tally("all", 150, 150, 100, readable=150, lost=0, doubled=0),
    ),
    in_sync_when_the_leader_died=(3, 4, 5),
    next_leaders=(4, 5, 4),
)

_SEEN = (*(f"committed {number}" for number in range(5)), "afterwards 0", "afterwards 1")
COMMITTED = Committed(
    committed=5,
    written_to_the_leader_alone=3,
    acknowledged_by_the_leader_alone=3,
    seen_while_uncommitted=0,
    moments=(
        Moment("calm", 5, {3: 5, 4: 5, 5: 5}, leader=3),
        Moment("alone", 5, {3: 8, 4: 5, 5: 5}, leader=3),
        Moment("led anew", 7, {3: 8, 4: 7, 5: 7}, leader=4),
        Moment("returned", 7, {3: 7, 4: 7, 5: 7}, leader=4),
    ),
    written_afterwards=2,
    seen_in_the_end=_SEEN,
    readable_in_the_end=_SEEN,
    replicas_are_alike=True,
)

LOOKS = (
    Look(0.0, 0, (0, 1, 2), {0: 100, 1: 100, 2: 100}),
    Look(1.0, 0, (0, 1, 2), {0: 400, 1: 400, 2: 100}),
    Look(2.0, 0, (0, 1), {0: 800, 1: 800, 2: 100}),
    Look(3.0, 0, (0, 1, 2), {0: 900, 1: 900, 2: 900}),
)
ISR = Isr(
    leader=0,
    stopped=2,
    lag_allowed_seconds=1.5,
    left_after_seconds=1.6,
    acknowledged_without_it=650,
    behind=700,
    back_after_seconds=0.1,
    longest_silence_seconds=1.6,
    sent=900,
    acknowledged=900,
    readable=900,
    lost=0,
    doubled=0,
    log_ends={0: 900, 1: 900, 2: 900},
    looks=LOOKS,
    marks=(Told(0.3, "stopped"), Told(1.9, "out"), Told(2.5, "goes on"), Told(2.6, "back")),
)

MIN_INSYNC = MinInsync(
    minimum=2,
    steps=(
        Step("all are there", (3, 4, 5), "ok", "ok", written=2, readable=2),
        Step("5 is killed", (3, 4), "ok", "ok", written=4, readable=4),
        Step("4 is killed, too", (3,), "NOT_ENOUGH_REPLICAS", "ok", written=5, readable=4),
        Step("4 is back", (3, 4), "ok", "ok", written=7, readable=7),
    ),
)

FAILOVER = Failover(
    killed=0,
    it_was_the_controller=True,
    next_leader=1,
    led_again_after_seconds=0.1,
    longest_silence_seconds=0.3,
    in_sync_again_after_seconds=1.0,
    last_leader=0,
    sent=600,
    acknowledged=600,
    readable=600,
    read_meanwhile=600,
    lost=0,
    doubled=0,
    looks=LOOKS,
    marks=(Told(1.0, "kill -9"), Told(1.1, "broker 1 leads")),
)

KEYS = Keys(
    sent=240,
    to_a_partition={0: 60, 1: 60, 2: 60, 3: 60},
    misplaced=0,
    keyed=tuple(
        Keyed(name, {store: (number % 4,) for number, store in enumerate(STORES, start)}, (), records=240)
        for start, name in enumerate(("murmur2", "consistent"))
    ),
    without_key={0: 50, 1: 70, 2: 55, 3: 65},
    partitions_with_gaps=(),
)


def _round(what: str, **shares: tuple[int, ...]) -> Round:
    readers = {partition: (name,) for name, share in shares.items() for partition in share}
    return Round(what, shares, readers, sent=40, read=40)


GROUPS = Groups(
    rounds=(
        _round("two", a=(0, 1), b=(2, 3)),
        _round("four", a=(0,), b=(1,), c=(2,), d=(3,)),
        _round("five", a=(0,), b=(1,), c=(2,), d=(3,), e=()),
        _round("a is killed", b=(0,), c=(1,), d=(2,), e=(3,)),
    ),
    killed="a",
    handed_over_after_seconds=3.2,
    sent=160,
    read_by_the_first_group=160,
    read_twice_by_the_first_group=0,
    read_by_the_second_group=160,
)

ORDER = (0, 3, 1, 4, 2, 5)


def _placed(partition: int) -> PartitionSeen:
    replicas = tuple(ORDER[(partition + place) % 6] for place in range(3))
    return PartitionSeen("invoice", partition, replicas[0], replicas, replicas)


def _without_r2(place: PartitionSeen) -> PartitionSeen:
    left = tuple(broker for broker in place.replicas if broker < 3)
    return PartitionSeen(place.topic, place.partition, left[0], place.replicas, left)


PLACED = tuple(map(_placed, range(10)))
RACKS = Racks(
    racks={broker: "R1" if broker < 3 else "R2" for broker in range(6)},
    placed=PLACED,
    without_the_rack=tuple(map(_without_r2, PLACED)),
    returned=PLACED,
    led_again_after_seconds=0.1,
    sent=300,
    acknowledged=300,
    readable=300,
    lost=0,
    doubled=0,
)

GOOD: dict[str, Measured] = {
    "acks": ACKS,
    "committed": COMMITTED,
    "isr": ISR,
    "min-insync": MIN_INSYNC,
    "failover": FAILOVER,
    "keys": KEYS,
    "groups": GROUPS,
    "racks": RACKS,
}
