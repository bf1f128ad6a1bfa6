"""A consumer group: each partition is read by one member, however many there are; two groups do not know of each other
(S24, S25).

After each change the partitions are given ten records each, and it is noted who read them. A record is counted when
its reader has committed it, so that a killed member has nothing left undone.
"""

from dataclasses import dataclass

from rich.text import Text

from klamm.lab.clients import Writer
from klamm.lab.drawing import grid
from klamm.lab.gathering import Gathering
from klamm.lab.measured import Claim, Measured
from klamm.lab.stage import Layout, Stage, wait_until

PLAN = """\
Three brokers start, and a topic with four partitions. A group of two consumers reads it, each a process of its own;
then four; then five; then one of those that read is killed with kill -9. After each change every partition gets ten
invoices. In the end another group of one consumer reads everything from the beginning."""

SESSION_MS = 3000
LAYOUT = Layout(brokers=3, settings={"group.min.session.timeout.ms": "1000"})
TOPIC, PARTITIONS, EACH = "invoice", 4, 10
NAMES = "abcde"
FIRST_GROUP, SECOND_GROUP = "billing", "audit"
PATIENCE_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Round:
    what: str
    shares: dict[str, tuple[int, ...]]
    """Which partitions each member owns."""
    readers: dict[int, tuple[str, ...]]
    """Who read this round's records of each partition."""
    sent: int
    read: int

    @property
    def sizes(self) -> list[int]:
        return sorted(len(share) for share in self.shares.values())


@dataclass(frozen=True, slots=True)
class Groups(Measured):
    rounds: tuple[Round, ...]
    killed: str
    handed_over_after_seconds: float
    """After the kill: its partitions are another's."""
    sent: int
    read_by_the_first_group: int
    read_twice_by_the_first_group: int
    read_by_the_second_group: int

    def claims(self) -> list[Claim]:
        fewer, as_many, more, without = self.rounds
        return [
            Claim("fewer members than partitions: each reads several", fewer.sizes == [2, 2]),
            Claim("as many: each reads one", as_many.sizes == [1] * PARTITIONS),
            Claim("more: the extra one is idle", more.sizes == [0] + [1] * PARTITIONS),
            Claim(
                "one that reads is killed: another has its share, and nobody is idle",
                bool(more.shares[self.killed])
                and self.killed not in without.shares
                and without.sizes == [1] * PARTITIONS,
            ),
            Claim(
                "each partition was read by one member at a time, the one that owned it",
                all(_is_read_by_its_owner(each) for each in self.rounds),
            ),
            Claim(
                "the first group read every record once",
                self.read_by_the_first_group == self.sent and self.read_twice_by_the_first_group == 0,
            ),
            Claim("the second group read every record as well", self.read_by_the_second_group == self.sent),
        ]

    def pictures(self) -> list[Text]:
        rows = [(each.what, *(_cell(each, name) for name in NAMES)) for each in self.rounds]
        return [grid((f"group {FIRST_GROUP}", *NAMES), rows)]

    def lesson(self) -> str:
        return (
            "A group shares the partitions of a topic among its members, so the number of partitions is the most that "
            "can work at a time; more members wait as spares. A member that falls silent is out after its session "
            f"timeout (here {SESSION_MS / 1000:.0f} s), and others go on from what it had committed. Groups do not "
            "know of each other: each has its own offsets."
        )

    def result(self) -> str:
        return (
            f"{self.sent} sent; group {FIRST_GROUP} read {self.read_by_the_first_group}, "
            f"{self.read_twice_by_the_first_group} twice; group {SECOND_GROUP} read {self.read_by_the_second_group}; "
            f"handed over {self.handed_over_after_seconds:.1f} s after the kill"
        )


def _is_read_by_its_owner(each: Round) -> bool:
    owners = {partition: (name,) for name, share in each.shares.items() for partition in share}
    return each.readers == owners and set(owners) == set(range(PARTITIONS)) and each.read == each.sent


def _cell(each: Round, name: str) -> str:
    if name not in each.shares:
        return ""
    return " ".join(f"P{partition}" for partition in each.shares[name]) or "idle"


def measured(stage: Stage) -> Groups:
    stage.create(TOPIC, partitions=PARTITIONS)
    writer = Writer(stage.bootstrap(), "all", {"enable.idempotence": True})
    with _group(stage, FIRST_GROUP) as first, _group(stage, SECOND_GROUP) as second:
        rounds = []
        for what, names in (("two members", "ab"), ("four members", "cd"), ("five members", "e")):
            first.join(names)
            first.wait_shared(PATIENCE_SECONDS)
            rounds.append(_round(stage, writer, first, what))
        killed = next(member for member in first.running if member.owned)
        killed.kill()
        moment = stage.tell(f"kill -9 to {killed.name}")
        first.wait_shared(PATIENCE_SECONDS)
        handed_over = stage.seconds() - moment.seconds
        rounds.append(_round(stage, writer, first, f"{killed.name} is killed"))
        second.join("f")
        sent = len(writer.acknowledged)
        wait_until(lambda: len(second.reads()) >= sent, "the second group has read everything", PATIENCE_SECONDS)
        stage.tell(f"group {SECOND_GROUP}, one member: {len(second.reads())} invoices, from the beginning")
        reads = first.reads()
        return Groups(
            rounds=tuple(rounds),
            killed=killed.name,
            handed_over_after_seconds=round(handed_over, 3),
            sent=sent,
            read_by_the_first_group=len(reads),
            read_twice_by_the_first_group=sum(count - 1 for count in reads.values()),
            read_by_the_second_group=len(second.reads()),
        )


def _group(stage: Stage, name: str) -> Gathering:
    return Gathering(stage.bootstrap(), TOPIC, name, PARTITIONS, SESSION_MS)


def _round(stage: Stage, writer: Writer, group: Gathering, what: str) -> Round:
    """Ten records for each partition, and who read them."""
    known = set(group.reads())
    for number in range(PARTITIONS * EACH):
        writer.send(TOPIC, f"{what} {number}", partition=number % PARTITIONS)
    writer.wait_answered()
    wanted = len(known) + PARTITIONS * EACH
    wait_until(lambda: len(group.reads()) >= wanted, f"{what} have read what was sent to them", PATIENCE_SECONDS)
    # Only now: somebody may have heard of the last change a moment later than the others.
    shares = group.shares()
    new = [(partition, member.name) for member in group.members for partition, _ in set(member.read) - known]
    readers = {partition: tuple(sorted({name for at, name in new if at == partition})) for partition, _ in new}
    told = ", ".join(f"{name} {' '.join(f'P{each}' for each in share) or 'idle'}" for name, share in shares.items())
    stage.tell(f"{what}: {told}; {len(new)} invoices read")
    return Round(what, shares, dict(sorted(readers.items())), PARTITIONS * EACH, len(new))
