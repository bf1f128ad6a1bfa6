"""`klamm pipeline` says what is wrong in a paragraph, before it starts Spark where that can be told."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import klamm as cluster_of
from klamm.cli import main
from klamm.pipeline.keeping import Directory
from tests.cli.running import Ended, klamm
from tests.pipeline.runner.shop import FILE
from tests.pipeline.runner.world import make_topic


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with cluster_of.Cluster(brokers=1) as cluster:
        make_topic(cluster.bootstrap_servers)
        yield cluster.bootstrap_servers


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "shop.py"
    path.write_text(FILE)
    return path


def said(ended: Ended, code: int = 1) -> str:
    """The paragraph: one line, and nothing on standard output."""
    assert ended.code == code and not ended.out, ended
    lines = [line for line in ended.err.splitlines() if line.startswith("klamm pipeline")]
    assert len(lines) == 1, ended.err
    return lines[0]


@pytest.mark.parametrize("verb", ["run", "check", "test", "example", "generate"])
def test_every_verb_explains_itself_with_examples(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["pipeline", verb, "--help"])
    assert ended.value.code == 0 and "examples:" in capsys.readouterr().out


def test_help_pays_for_no_spark() -> None:
    script = (
        "import sys, klamm.cli\n"
        "try: klamm.cli.main(['pipeline', 'run', '--help'])\n"
        "except SystemExit: pass\n"
        "print([name for name in ('pyspark', 'pyarrow', 'confluent_kafka') if name in sys.modules], file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stderr.strip() == "[]"


WITHOUT_SPARK = """
import sys
for name in ("pyspark", "pyarrow", "pandas", "numpy", "deltalake"):
    sys.modules[name] = None
from klamm.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("verb", ["run", "check", "test"])
def test_without_the_extra_it_is_named(verb: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT_SPARK, "pipeline", verb, "any.py"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1 and "`pip install 'klamm[spark,java]'`" in ended.stderr
    assert "in a checkout `pip install '.[spark,java]'`" in ended.stderr, "which is what works before a release"
    assert len(ended.stderr.splitlines()) == 1


def test_the_example_takes_no_spark() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT_SPARK, "pipeline", "example"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0 and "Pipeline(" in ended.stdout


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [("--count", "0", "whole number"), ("--rate", "x", "above 0"), ("--late", "2", "between 0 and 1")],
)
def test_the_generator_says_what_numbers_it_wants(
    option: str, value: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["pipeline", "generate", option, value])
    assert said in capsys.readouterr().err


def test_in_the_end_it_says_where_the_tables_are(file: Path, tmp_path: Path) -> None:
    from klamm.cli import pipeline_run
    from klamm.pipeline.loading import loaded
    from klamm.pipeline.progress import Standing
    from klamm.pipeline.queries import Wishes
    from klamm.pipeline.running import Job, Outcome

    class Shown:
        def __init__(self) -> None:
            self.said: list[str] = []

        def say(self, text: str) -> None:
            self.said.append(text)

        def end(self, standing: Standing, how: str) -> None:
            self.said.append(how)

    shown: Any = Shown()
    job = Job(loaded(file), Directory(tmp_path / "data"), Wishes("127.0.0.1:9092", once=True))
    stopped = Outcome(Standing("shop", {}, ()), was_stopped=True)
    assert pipeline_run._told_end(shown, stopped, job) == 130
    assert shown.said == ["stopped"], "before there were any"
    shown.said.clear()
    (tmp_path / "data" / "tables" / "orders").mkdir(parents=True)
    assert pipeline_run._told_end(shown, Outcome(Standing("shop", {}, ()), was_stopped=False), job) == 0
    how, where = shown.said
    assert how == "done" and where.startswith(f"tables in {tmp_path / 'data' / 'tables'}; ")
    assert 'DeltaTable("…/orders").to_pandas()' in where


def test_an_example_to_start_from(tmp_path: Path) -> None:
    written = klamm("pipeline", "example", "mine.py", cwd=tmp_path)
    assert written.code == 0 and "klamm pipeline check mine.py" in written.err
    assert (tmp_path / "mine.py").read_text() == klamm("pipeline", "example").out
    assert "is there already" in said(klamm("pipeline", "example", "mine.py", cwd=tmp_path))


@pytest.mark.parametrize("verb", ["run", "check", "test"])
def test_a_file_that_is_not_there(verb: str, tmp_path: Path) -> None:
    assert "there is no file shop.py" in said(klamm("pipeline", verb, "shop.py", cwd=tmp_path))


def test_a_directory_is_no_file(file: Path) -> None:
    words = said(klamm("pipeline", "check", ".", cwd=file.parent))
    assert words == "klamm pipeline check: . is a directory, and a pipeline is a file. In it is `shop.py`."
    (file.parent / "empty").mkdir()
    assert said(klamm("pipeline", "run", "empty", cwd=file.parent)).endswith("and a pipeline is a file.")


def test_a_file_with_a_mistake(file: Path) -> None:
    file.write_text(FILE.replace("line_items(orders:", "line_items(order:"))
    words = said(klamm("pipeline", "check", str(file)))
    assert "`line_items` (shop.py, line " in words and "Did you mean `orders`?" in words


def test_a_cluster_that_does_not_answer(file: Path, tmp_path: Path) -> None:
    ended = klamm("pipeline", "run", str(file), "--bootstrap", "127.0.0.1:1", cwd=tmp_path)
    words = said(ended)
    assert "Waiting 10 s for one ..." in ended.err.splitlines()[0]
    assert "no broker answers at 127.0.0.1:1" in words and "klamm up --detach" in words


@pytest.mark.parametrize("verb", ["run", "generate"])
def test_nobody_there_is_seen_at_once(verb: str, file: Path, tmp_path: Path) -> None:
    """As every other command sees it, and in their words: the client library would be silent for half a minute."""
    asked = ["run", str(file), "--once"] if verb == "run" else ["generate", "--count", "10"]
    words = said(klamm("pipeline", *asked, "--bootstrap", "127.0.0.1:1", cwd=tmp_path))
    sentence = "no broker answers: 127.0.0.1:1: Connection refused. Is a cluster running? `klamm up` starts one"
    assert words == f"klamm pipeline {verb}: {sentence}"


def test_a_topic_that_is_missing(file: Path, servers: str, tmp_path: Path) -> None:
    file.write_text(
        FILE.replace('"orders",\n            json', '"ordres",\n            name="orders",\n            json')
    )
    words = said(klamm("pipeline", "run", str(file), "--bootstrap", servers, cwd=tmp_path))
    assert "there is no topic ordres" in words and "Did you mean `orders`?" in words and "klamm topic create" in words


def test_a_checkpoint_of_another_cluster(file: Path, servers: str, tmp_path: Path) -> None:
    note = tmp_path / "data" / "checkpoints" / "orders" / "klamm.json"
    note.parent.mkdir(parents=True)
    note.write_text('{"id": "a", "cluster": "elsewhere", "topics": ["orders"], "state": []}')
    asked = ("pipeline", "run", str(file), "--bootstrap", servers, "--data", str(tmp_path / "data"))
    words = said(klamm(*asked))
    assert "of another cluster (its id is elsewhere" in words and "--reset" in words
    refused = klamm(*asked, "--reset")
    assert refused.code == 1 and "This forgets how far orders has read" in refused.err and "--yes" in refused.err
    assert note.exists()


def with_a_table(data: Path) -> Path:
    """What a run has left: a checkpoint, and the table `orders` with two rows."""
    import pyarrow as pa
    from deltalake import write_deltalake

    from klamm.pipeline.tables.delta import CONFIGURATION

    (data / "checkpoints" / "orders").mkdir(parents=True)
    settings: dict[str, Any] = CONFIGURATION
    write_deltalake(data / "tables" / "orders", pa.table({"id": ["a", "b"]}), configuration=settings)
    return data


def test_nothing_is_removed_unless_somebody_agrees(file: Path, tmp_path: Path) -> None:
    data = with_a_table(tmp_path / "data")
    asked = ("pipeline", "run", str(file), "--bootstrap", "127.0.0.1:1", "--data", str(data), "--reset")
    alone = klamm(*asked)
    assert alone.code == 1 and "The tables stay" in alone.err and "--drop-tables" in alone.err
    refused = klamm(*asked, "--drop-tables")
    assert refused.code == 1 and "table orders (2 rows)" in refused.err
    assert "nobody is here to agree; say --yes" in refused.err
    # Agreed, and then there is no cluster: what cannot begin again keeps what it has.
    agreed = klamm(*asked, "--drop-tables", "--yes")
    assert agreed.code == 1 and "table orders (2 rows)" in agreed.err and "no broker answers" in agreed.err
    assert sorted(path.name for path in data.iterdir()) == ["checkpoints", "tables"]
    assert (data / "tables" / "orders" / "_delta_log").is_dir() and (data / "checkpoints" / "orders").is_dir()


@pytest.mark.parametrize(("answer", "is_agreed"), [("y", True), ("YES", True), ("", False), ("n", False)])
def test_on_a_terminal_it_asks(
    file: Path,
    tmp_path: Path,
    answer: str,
    is_agreed: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from klamm.cli import pipeline_run
    from klamm.pipeline.loading import loaded
    from klamm.pipeline.queries import Wishes
    from klamm.pipeline.resetting import Reset
    from klamm.pipeline.running import Job

    questions: list[str] = []

    def answered(question: str) -> str:
        questions.append(question)
        return answer

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", answered)
    reset = Reset(drops_tables=True)
    job = Job(loaded(file), Directory(with_a_table(tmp_path / "data")), Wishes("127.0.0.1:1"), reset=reset)
    assert pipeline_run._is_agreed(job, reset, without_asking=False) is is_agreed
    told = capsys.readouterr().err
    assert "table orders (2 rows)" in told and ("nothing was changed" in told) is not is_agreed
    assert questions == ["Go on? [y/N] "]


def test_another_run_in_the_same_directory(file: Path, servers: str, tmp_path: Path) -> None:
    with Directory(tmp_path / "data").held():
        words = said(klamm("pipeline", "run", str(file), "--bootstrap", servers, "--data", str(tmp_path / "data")))
        assert "process" in said(klamm("pipeline", "run", str(file), "--data", str(tmp_path / "data"), "--reset"))
    assert f"process {os.getpid()}" in words and "--data" in words


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--batch-records", "0"), "--batch-records is at least 1"),
        (("--metrics-port", "x"), "expected a port"),
        (("--drop-tables",), "--drop-tables goes with --reset"),
        (("--conf", "x"), "expected KEY=VALUE"),
    ],
)
def test_what_makes_no_sense(file: Path, words: tuple[str, ...], complaint: str) -> None:
    assert complaint in said(klamm("pipeline", "run", str(file), *words), code=2)
