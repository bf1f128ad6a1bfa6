"""A home for Spark from which its workers do not compile PySpark anew."""

from pathlib import Path

import pyspark

from klamm.pipeline.spark_home import spark_home


def test_programs_and_jars_are_there_and_the_archive_is_not(tmp_path: Path) -> None:
    installed = Path(pyspark.__file__).parent
    for _ in range(2):
        home = spark_home(tmp_path / "home", {})
        assert home == tmp_path / "home"
        assert (home / "bin" / "spark-submit").is_file() and any((home / "jars").glob("spark-core*.jar"))
        assert not (home / "python").exists()
        assert sorted(each.name for each in home.iterdir()) == ["bin", "jars"], "nothing else is left lying about"
    assert (installed / "python" / "lib" / "pyspark.zip").exists(), "if it is no more, this is no longer needed"


def test_links_to_another_installation_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "bin").symlink_to(tmp_path / "gone")
    assert spark_home(tmp_path, {}) == tmp_path
    assert (tmp_path / "bin" / "spark-submit").is_file()


def test_who_has_set_it_is_left_alone(tmp_path: Path) -> None:
    assert spark_home(tmp_path / "home", {"SPARK_HOME": "/opt/spark"}) is None
    assert not (tmp_path / "home").exists()
