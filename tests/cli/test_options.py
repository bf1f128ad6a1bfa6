"""Shared options: pairs, addresses, and where a command looks for its cluster."""

import argparse
from pathlib import Path
from random import Random

import pytest

from klamm.cli.options import DEFAULT_DIRECTORY, Misused, addresses_of, bootstrap_of, count_of, pairs_of
from klamm.local.agreeing import Wish, new_cluster, with_ports
from klamm.local.asking import Address
from klamm.local.problems import NoCluster
from klamm.local.record import write_record


def test_pairs() -> None:
    assert pairs_of("--set", ["a=1", "b = x=y", "a=2", "c="]) == {"a": "2", "b": "x=y", "c": ""}


@pytest.mark.parametrize("text", ["a", "=1", " =1"])
def test_a_pair_that_is_none(text: str) -> None:
    with pytest.raises(Misused, match="KEY=VALUE"):
        pairs_of("--set", [text])


def test_the_example_of_a_pair_is_one_that_works_there() -> None:
    with pytest.raises(Misused, match=r"as in --set num\.partitions=6"):
        pairs_of("--set", ["num.partitions"])
    with pytest.raises(Misused, match=r"as in --config retention\.ms=60000"):
        pairs_of("--config", ["retention.ms"])


def test_addresses() -> None:
    assert addresses_of("a:1, [::1]:2,") == [Address("a", 1), Address("::1", 2)]


@pytest.mark.parametrize("text", ["a", "a:", ":9092", "a:b", "a:70000"])
def test_an_address_that_is_none(text: str) -> None:
    with pytest.raises(Misused, match="HOST:PORT"):
        addresses_of(text)


@pytest.mark.parametrize(
    ("text", "number"), [("7", 7), ("1,000", 1_000), ("12,345,678", 12_345_678), ("1_000", 1_000), ("10_00", 1_000)]
)
def test_numbers_as_people_write_them(text: str, number: int) -> None:
    assert count_of(text) == number


@pytest.mark.parametrize("text", ["0,1", "1,2,3", "1,0", "1,00", "0,1,222,3"])
def test_several_numbers_are_not_one(text: str) -> None:
    """`klamm node kill 0,1` killed node 1, `--partitions 1,0` made ten."""
    with pytest.raises(argparse.ArgumentTypeError, match=f"^{text}: expected a number from 0 .*; one, not several"):
        count_of(text)


@pytest.mark.parametrize("text", ["", ",", "a", "1,a", "1.5", "-1"])
def test_a_number_that_is_none(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"expected a number from 0 to [0-9]+$"):
        count_of(text)


def options(bootstrap: str | None = None, directory: str | None = None) -> argparse.Namespace:
    return argparse.Namespace(bootstrap=bootstrap, dir=directory)


def test_where_a_command_looks_for_its_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it was told, then the usual directory, then Kafka's usual port."""
    monkeypatch.chdir(tmp_path)
    assert bootstrap_of(options()) == "127.0.0.1:9092"
    for name, port in ((DEFAULT_DIRECTORY, 1001), ("other", 1002)):
        (tmp_path / name).mkdir()
        write_record(tmp_path / name, with_ports(new_cluster(Wish(1, 1), Random(1)), [port]))
    assert bootstrap_of(options()) == "127.0.0.1:1001"
    assert bootstrap_of(options(directory="other")) == "127.0.0.1:1002"
    assert bootstrap_of(options(bootstrap="far:3")) == "far:3"
    with pytest.raises(NoCluster, match=r"klamm up --dir .*nowhere"):
        bootstrap_of(options(directory="nowhere"))
