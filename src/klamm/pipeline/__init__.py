"""Pipelines on Spark: topics as data frames and back, without a jar. The extra `klamm[spark]` brings what it needs.

from klamm.pipeline import Pipeline, Source, Table, Topic     what a pipeline file declares
from klamm.pipeline import register                           format("klamm") for any Spark session
from klamm.pipeline import loaded                             a pipeline file, in a test of its transforms
"""

from typing import TYPE_CHECKING, Any

from klamm.pipeline.declaration import Pipeline, Source, Table, Topic

if TYPE_CHECKING:
    from klamm.pipeline.loading import loaded as loaded
    from klamm.pipeline.registration import register as register

__all__ = ["Pipeline", "Source", "Table", "Topic", "loaded", "register"]


def __getattr__(name: str) -> Any:
    """PySpark takes a second to import: only who registers the format pays for it."""
    if name == "register":
        from klamm.pipeline.registration import register

        return register
    if name == "loaded":
        from klamm.pipeline.loading import loaded

        return loaded
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
