"""CRC-32C is the one that the standards describe, and getting at it is cheap."""

import subprocess
import sys
from importlib.machinery import PathFinder

import crc32c as package
import pytest

from klamm.records import crc
from klamm.records.crc import crc32c


def test_known_sums() -> None:
    """From RFC 3720, appendix B.4, and the usual check value."""
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E
    assert crc32c(b"123456789") == 0xE3069283


def test_any_buffer_will_do() -> None:
    assert crc32c(memoryview(bytearray(b"x123456789"))[1:]) == 0xE3069283


def test_is_done_by_hardware_where_there_is_some() -> None:
    assert package.hardware_based


def test_importing_it_does_not_import_the_packages_metadata_reader() -> None:
    code = "import sys, klamm.records.crc; sys.exit('importlib.metadata' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_package_installed_in_another_way_is_imported_the_ordinary_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PathFinder, "find_spec", lambda *_: None)
    assert crc._loaded() is package.crc32c
