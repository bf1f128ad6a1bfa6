"""`klamm bench`, against a cluster: not how quick it is, but that it measures and tidies up."""

import json
import zlib
from itertools import islice

import pytest

from klamm.cli.bench_measuring import random_values
from tests.cli.conftest import Klamm

FEW = ("bench", "--records", "2000", "--single", "5", "--partitions", "3")


def test_three_lines(klamm_command: Klamm) -> None:
    code, out, err = klamm_command(*FEW, "--size", "10", "--acks", "1")
    lines = out.decode().splitlines()
    assert code == 0, err
    assert [line.split()[0] for line in lines] == ["produce", "consume", "single"]
    assert "(2,000 of 10 bytes in " in lines[0] and "acks=1" in lines[0]
    assert "p50" in lines[2] and lines[2].endswith("of 5")
    assert b"klamm-bench" not in klamm_command("topic", "list")[1], "its topic is gone"


def test_for_programs(klamm_command: Klamm) -> None:
    code, out, _ = klamm_command(*FEW, "--json", "--compression", "lz4")
    told = json.loads(out)
    assert code == 0 and (told["records"], told["size_bytes"], told["acks"]) == (2000, 100, "all")
    for what in ("produce", "consume"):
        assert round(told[what]["records_per_second"] * told[what]["seconds"]) in range(1900, 2100)
    assert 0 < told["single"]["p50_ms"] <= told["single"]["p99_ms"] <= told["single"]["max_ms"]


@pytest.mark.parametrize("size", [10, 100, 1 << 16, 4 << 20])
def test_no_codec_makes_the_values_small(size: int) -> None:
    """Not even a batch of them: the same value again and again would be almost nothing."""
    values = list(islice(random_values(size), max(2, 1_000_000 // size)))
    assert {len(each) for each in values} == {size}
    assert len(set(values)) == len(values)
    batch = b"".join(values)[:1_000_000]
    assert len(zlib.compress(batch)) > 0.99 * len(batch)


def test_what_is_refused_leaves_nothing_behind(klamm_command: Klamm) -> None:
    code, out, err = klamm_command("bench", "--replication", "9")
    assert (code, out) == (1, b"") and "klamm bench: klamm-bench-" in err
    assert klamm_command("bench", "--records", "0")[0] == 2
    code, out, err = klamm_command("bench", "--records", "100", "--size", "2000000")
    assert (code, out) == (1, b"") and "a record of 2,000,000 bytes was not taken: " in err
    assert b"klamm-bench" not in klamm_command("topic", "list")[1]
