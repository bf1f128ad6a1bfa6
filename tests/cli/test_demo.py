"""`klamm demo`: what it shows, what it counts, and that it ends with nothing lost and nothing left behind."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import write_deltalake
from rich.console import Console, RenderableType

from klamm.cli import demo_sending
from klamm.cli.demo_reckoning import Outcome, Store, from_tables
from klamm.cli.demo_view import BAR, Voice, bar, placement, reckoned, revenue
from klamm.pipeline.invoice.generator import Invoice, Recipe, generated
from klamm.pipeline.invoice.ledger import Ledger
from klamm.pipeline.invoice.sending import Sent
from tests.cli.running import LONG_SECONDS, klamm
from tests.cli.test_placement_table import INVOICE
from tests.harness.waiting import wait_until
from tests.pipeline.invoice.naive import Books, books_of

WITHOUT_PYSPARK = """
import importlib.util, sys
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "pyspark" else found(name, *more)
from klamm.cli import main
sys.exit(main(sys.argv[1:]))
"""
"""`klamm` as it is where nobody has installed the extra."""

RIGHT = Outcome(
    sent=1_010,
    acknowledged=1_010,
    found=1_000,
    lost=0,
    doubled=0,
    stores=(Store("S001", 300, 40_000), Store("S002", 290, 20_050)),
    copies=10,
    quarantined=7,
    late=3,
)


def text(what: RenderableType) -> list[str]:
    console = Console(width=120, force_terminal=False, no_color=True)
    with console.capture() as captured:
        console.print(what)
    return [line.rstrip() for line in captured.get().splitlines()]


def test_the_placement_of_s8() -> None:
    rows = [line.split() for line in text(placement(INVOICE))]
    assert rows[1] == ["R1-B0", "P0", "P6", "P5", "P4"]
    assert rows[6] == ["R2-B5", "P5", "P4", "P3", "P9"] and len(rows) == 7


def test_the_reckoning_as_text() -> None:
    assert [line.split("   ")[0].split() + line.split()[-1:] for line in text(reckoned(replace(RIGHT, copies=0)))][
        -2:
    ] == [
        ["lost", "0"],
        ["doubled", "0"],
    ]
    shown = "\n".join(text(reckoned(RIGHT)))
    assert "1,010   10 of them twice" in shown and "1,000   993 invoices, 7 malformed ones in quarantine" in shown
    assert "read back" in "\n".join(text(reckoned(replace(RIGHT, with_spark=False))))


def test_revenue_with_a_bar_for_each() -> None:
    lines = text(revenue(RIGHT))
    assert lines[1].split() == ["S001", "300", "400.00", "█" * BAR]
    assert lines[2].split()[:3] == ["S002", "290", "200.50"] and lines[2].count("█") == BAR // 2
    assert lines[3].split() == ["all", "590", "600.50"]
    assert "3 more came hours late" in lines[4]
    many = replace(RIGHT, stores=tuple(Store(f"S{number:03}", 1, 100) for number in range(64)), late=0)
    assert any(line.split()[:4] == ["54", "more", "54", "54.00"] for line in text(revenue(many)))


def test_what_is_redirected_ends_with_a_word_and_what_happened_stands_below_its_time(
    capsys: pytest.CaptureFixture[str],
) -> None:
    voice = Voice()
    voice.step("where they are")
    voice.show(placement(INVOICE))
    voice.happened(f"broker 0 left the ISR of {', '.join(f'invoice-{number}' for number in range(12))}: 5 behind")
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "1  where they are" and lines[3].startswith("   R1-B0  ")
    assert [line for line in lines if line != line.rstrip()] == []
    assert lines[-2].lstrip().startswith("0.0 s  broker 0") and lines[-1].startswith(" " * 13 + "invoice-")


def test_bars() -> None:
    assert (bar(0, 0), bar(0, 10), bar(10, 10)) == ("", "", "█" * BAR)
    assert bar(1, BAR * 8) == "▏" and bar(7, BAR * 8) == "▉"


def test_what_is_right() -> None:
    assert RIGHT.is_right
    wrongs = [{"lost": 1}, {"doubled": 1}, {"acknowledged": 1_009}, {"differences": ("x",)}, {"problems": ("x",)}]
    assert not any(replace(RIGHT, **wrong).is_right for wrong in wrongs)  # type: ignore[arg-type]


RECIPE = Recipe(seed=3, count=400, malformed=0.1, late=0.1, copied=0.1, huge=0)


def counted(books: Books, tables: Path) -> Outcome:
    ledger = Ledger.of(RECIPE)
    for each in generated(RECIPE):
        ledger.note(each)
    for name in books.tables:
        write_deltalake(str(tables / name), books.arrow(name))
    return from_tables(ledger, ledger.records, tables, [])


def test_copies_are_told_beside_what_is_acknowledged(monkeypatch: pytest.MonkeyPatch) -> None:
    """30,271 acknowledged, it said of 30,000 invoices."""

    def send(invoices: Iterable[Invoice], *where: str, on_sent: Callable[[Invoice], None], **others: object) -> Sent:
        sent = list(invoices)
        for each in sent:
            on_sent(each)
        return Sent(len(sent), len(sent))

    monkeypatch.setattr(demo_sending, "send", send)
    sending = demo_sending.Sending("", "invoice", RECIPE, per_second=1.0)
    wait_until(lambda: sending.is_over, "all are sent")
    copies = sending.records - 400
    assert copies > 0 and sending.how_far == f"100% and {copies} copies sent, {400 + copies} acknowledged"


def test_tables_that_are_right_and_tables_that_are_not(tmp_path: Path) -> None:
    values = [each.value for each in generated(RECIPE)]
    right = counted(books_of(values), tmp_path / "right")
    assert right.is_right and right.found == 400 and right.quarantined > 0 and right.copies == right.sent - 400
    books = books_of(values)
    books.tables["invoices"].pop(5)
    books.tables["invoices"].append(books.tables["invoices"][7])
    books.tables["invoice_quarantine"].pop()
    wrong = counted(books, tmp_path / "wrong")
    assert (wrong.lost, wrong.doubled) == (2, 1) and not wrong.is_right


def test_without_spark_it_says_what_to_install_counts_what_a_client_reads_back_and_is_kept(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT_PYSPARK, "demo", "--count", "4000", "--json", "--keep"],
        capture_output=True,
        text=True,
        timeout=LONG_SECONDS * 2,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        check=False,
    )
    try:
        story = ended.stderr
        assert ended.returncode == 0 and "Traceback" not in story, story
        assert "pip install 'klamm[spark" in story
        for words in ("6 brokers on 2 racks", "R1-B0    P0 P6", "kill -9 to broker 0", "broker 0 is dead",
                      "leads invoice-", "broker 0 left the ISR of invoice-", "broker 0 is back in sync everywhere",
                      "Nothing lost, nothing doubled"):  # fmt: skip
            assert words in story, story
        outcome = json.loads(ended.stdout)
        assert outcome["right"] and not outcome["with_spark"]
        assert (outcome["sent"], outcome["acknowledged"], outcome["found"]) == (4_000, 4_000, 4_000)
        assert (outcome["lost"], outcome["doubled"]) == (0, 0) and len(outcome["stores"]) == 64
        assert f"klamm down --dir {outcome['dir']} && rm -r " in story
        assert klamm("status", "--dir", outcome["dir"]).code == 0
        assert klamm("down", "--dir", outcome["dir"]).out == "7 nodes stopped\n"
    finally:
        for process in of_ours(tmp_path):
            os.kill(process, signal.SIGKILL)


def test_ctrl_c_ends_everything(tmp_path: Path) -> None:
    demo = subprocess.Popen(
        [sys.executable, "-m", "klamm", "demo", "--no-spark"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"},
    )
    try:
        wait_until(lambda: "invoices from the tills" in str(demo.stdout and demo.stdout.readline()), "they flow", 60)
        assert len(of_ours(tmp_path)) == 7
    finally:
        demo.send_signal(signal.SIGINT)
        _, said = demo.communicate(timeout=LONG_SECONDS)
    assert demo.returncode == 130 and "interrupted" in said and "Traceback" not in said
    assert of_ours(tmp_path) == [] and list(tmp_path.iterdir()) == []


def of_ours(directory: Path) -> list[int]:
    """Processes that were told of this directory."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(directory).encode() in (process / "cmdline").read_bytes():
                found.append(int(process.name))
        except OSError:
            continue
    return found


def test_too_few_to_kill_anybody() -> None:
    ended = klamm("demo", "--count", "10")
    assert ended.code == 2 and "at least" in ended.err


@pytest.mark.long
def test_the_whole_demo(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "klamm", "demo", "--json", "--count", "20000"],
        capture_output=True,
        text=True,
        timeout=1_200,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        check=False,
    )
    assert ended.returncode == 0 and "Traceback" not in ended.stderr, ended.stderr
    outcome = json.loads(ended.stdout)
    assert outcome["right"] and outcome["with_spark"] and outcome["differences"] == []
    assert outcome["found"] == 20_000 and outcome["quarantined"] > 0 and outcome["sent"] == 20_000 + outcome["copies"]
    assert (outcome["lost"], outcome["doubled"]) == (0, 0)
    wait_until(lambda: of_ours(tmp_path) == [], "Java is gone, too")
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("klamm-demo")] == []
