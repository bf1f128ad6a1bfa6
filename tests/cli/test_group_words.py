"""What `klamm group` says: misuse, nobody there, and the tables of groups that are written down here."""

from pathlib import Path

import pytest

from klamm.cli import main
from klamm.cli.group_asking import Coordinator
from klamm.cli.group_changes import in_use
from klamm.cli.group_seen import GroupSeen, MemberSeen
from klamm.cli.group_views import Reading, described, headline, owned, state_of
from klamm.cli.options import Misused
from klamm.ids import TopicPartition
from klamm.local.asking import Address

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))
COORDINATOR = Coordinator(2, Address("b2", 9092))


def member(name: str, owns: tuple[TopicPartition, ...], shall_own: tuple[TopicPartition, ...]) -> MemberSeen:
    return MemberSeen(f"{name}-id", None, name, f"/{name}", owns, shall_own, "consumer", 3)


def group_of(*members: MemberSeen, kind: str = "consumer", protocol_type: str = "consumer") -> GroupSeen:
    return GroupSeen("g", kind, "Reconciling", protocol_type, "uniform", 4, COORDINATOR, members)


def test_a_group_while_partitions_move() -> None:
    one, two = member("one", (T0, T1), (T0,)), member("two", (), (T1,))
    readings = [Reading(T0, 5, 12, one), Reading(T1, None, 7, one), Reading(T2, 3, None, None)]
    assert described(group_of(one, two), readings, with_members=True).splitlines() == [
        "group g: Reconciling, consumer protocol, assignor uniform, 2 members, coordinator broker 2 (b2:9092), "
        "total lag 7 (2 partitions not counted)",
        "topic  partition  committed  log end  lag  member  client  host",
        "t              0          5       12    7  one-id  one     /one",
        "t              1          -        7    -  one-id  one     /one",
        "t              2          3        -    -  -       -       -",
        "",
        "member  client  host  protocol  epoch  owns     shall own",
        "one-id  one     /one  consumer      3  t: 0 1   t: 0",
        "two-id  two     /two  consumer      3  nothing  t: 1",
    ]


def test_what_the_total_leaves_out_is_said() -> None:
    """It said "total lag 0" where nothing was read of two partitions of three."""
    nothing_new, never, empty = Reading(T0, 1, 1, None), Reading(T1, None, 7, None, 2), Reading(T2, None, 0, None, 0)
    assert headline(group_of(), [nothing_new, never]).endswith("total lag 0 (1 partition not counted, with 5 records)")
    assert headline(group_of(), [empty]).endswith("total lag - (1 partition not counted, with 0 records)")
    silent = Reading(T2, None, None, None)
    assert headline(group_of(), [never, silent]).endswith("(2 partitions not counted, with 5 records or more)")


def test_a_group_that_reads_nothing() -> None:
    seen = GroupSeen("g", "classic", "Empty", "connect", "", None, COORDINATOR, ())
    assert described(seen, [], with_members=True) == (
        "group g: Empty, classic protocol, of connect, 0 members, coordinator broker 2 (b2:9092)"
    )


def test_partitions_are_told_topic_by_topic() -> None:
    assert owned([T2, TopicPartition("a", 10), T0]) == "a: 10, t: 0 2"


def test_who_is_in_a_group_is_said_but_not_at_any_length() -> None:
    words = in_use(group_of(*(member(name, (), ()) for name in ("a", "b", "c", "d", "e"))))
    assert "group 'g' is in use: 5 members (a at /a, b at /b, c at /c and 2 more); stop them first" in words


def test_states_however_they_are_written() -> None:
    assert (state_of("stable"), state_of("PREPARINGREBALANCE")) == ("Stable", "PreparingRebalance")
    with pytest.raises(Misused, match="did you mean Stable"):
        state_of("stabel")
    with pytest.raises(Misused, match="there are Empty, Assigning"):
        state_of("x")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("list", "--state", "x"), "--state x"),
        (("describe",), "say which groups, or --all"),
        (("describe", "g", "--all"), "say which groups, or --all"),
        (("delete-offsets", "g"), "--topic TOPIC"),
        (("reset-offsets", "g", "--to-latest"), "say which partitions"),
        (("reset-offsets", "g", "--topic", "t:x", "--to-latest"), "TOPIC:PARTITION"),
        (("reset-offsets", "g", "--topic", "t", "--to-datetime", "noon"), "ISO 8601 time"),
        (("reset-offsets", "g", "--topic", "t", "--by-duration", "1h"), "ISO 8601 duration"),
        (("reset-offsets", "g", "--topic", "t", "--from-file", "f"), "says itself which partitions"),
        (("reset-offsets", "g", "--from-file", "not-there.csv"), "No such file"),
        (("reset-offsets", "g", "--all-topics", "--to-latest", "--json", "--export"), "choose one"),
        (("list", "--bootstrap", "x"), "HOST:PORT"),
    ],
)
def test_misuse_is_said_before_anybody_is_asked(
    words: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["group", *words]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.startswith(f"klamm group {words[0]}: ") and said in printed.err


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("reset-offsets", "g", "--topic", "t"),
        ("reset-offsets", "g", "--topic", "t", "--to-latest", "--to-earliest"),
        ("reset-offsets", "g", "--topic", "t", "--all-topics", "--to-latest"),
        ("reset-offsets", "g", "--topic", "t", "--to-offset", "x"),
        ("list", "--type", "share"),
    ],
)
def test_options_that_do_not_go_together(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["group", *words])
    assert ended.value.code == 2 and "usage: klamm group" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ("list",),
        ("describe", "g"),
        ("describe", "--all"),
        ("delete", "g"),
        ("reset-offsets", "g", "--topic", "t", "--to-latest"),
        ("delete-offsets", "g", "--topic", "t"),
    ],
)
def test_nobody_there_is_said_at_once(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["group", *words, "--bootstrap", "127.0.0.1:1"]) == 1
    assert "no broker answers" in capsys.readouterr().err
