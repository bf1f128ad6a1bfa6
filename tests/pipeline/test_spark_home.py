"""A home for Spark from which its workers do not compile PySpark anew."""

from pathlib import Path

import pyspark

from klamm.pipeline.spark_home import spark_home


def test_programs_and_jars_are_there_and_the_archive_is_not(tmp_path: Path) -> None:
    installed = Path(pyspark.__file__).parent
    for _ in range(2):
        home = spark_home({"XDG_CACHE_HOME": str(tmp_path)})
        assert home is not None and home.parent == tmp_path / "klamm"
        assert (home / "bin" / "spark-submit").is_file() and any((home / "jars").glob("spark-core*.jar"))
        assert sorted(each.name for each in home.iterdir()) == ["bin", "jars"], "no archive, nothing left lying about"
    assert (installed / "python" / "lib" / "pyspark.zip").exists(), "if it is no more, this is no longer needed"


def test_links_that_lead_nowhere_are_replaced(tmp_path: Path) -> None:
    home = spark_home({"XDG_CACHE_HOME": str(tmp_path)})
    assert home is not None
    (home / "bin").unlink()
    (home / "bin").symlink_to(tmp_path / "gone")
    assert spark_home({"XDG_CACHE_HOME": str(tmp_path)}) == home
    assert (home / "bin" / "spark-submit").is_file()


def test_who_has_set_it_is_left_alone_and_who_has_no_room_as_well(tmp_path: Path) -> None:
    assert spark_home({"SPARK_HOME": "/opt/spark", "XDG_CACHE_HOME": str(tmp_path)}) is None
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("no directory")
    assert spark_home({"XDG_CACHE_HOME": str(tmp_path / "file")}) is None
