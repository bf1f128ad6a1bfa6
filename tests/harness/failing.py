"""Failures are told when they happen, and a test that hangs ends as one.

A run that is ended from outside would otherwise say nothing but a few letters: what failed is printed at its end only.
"""

import pytest

LONG_SECONDS = 3000.0
"""Whole pipelines, pages that are read with Spark: they have limits of their own."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("long") or item.get_closest_marker("crash"):
            item.add_marker(pytest.mark.timeout(LONG_SECONDS))


def pytest_configure(config: pytest.Config) -> None:
    """Workers of xdist send their reports to the process that the terminal belongs to."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Telling(config), "failures-told-at-once")


class Telling:
    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and terminal is not None:
            terminal.write_line("")
            terminal.write_line(f"FAILED {report.nodeid} ({report.when}, {report.duration:.1f} s)", red=True)
            terminal.write_line(report.longreprtext)
