"""The fixtures every test may ask for: running brokers, from `tests/harness`."""

pytest_plugins = ["tests.harness.fixtures"]
