"""The fixtures every test may ask for: running brokers, from `tests/harness`.

Property tests have no deadline: how long one example takes says something about the machine, not about the code.
"""

from hypothesis import settings

pytest_plugins = ["pytester", "tests.harness.fixtures"]

settings.register_profile("klamm", deadline=None)
settings.load_profile("klamm")
