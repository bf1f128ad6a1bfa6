"""The fixtures every test may ask for: running brokers, from `tests/harness`.

Property tests have no deadline: how long one example takes says something about the machine, not about the code.

A job in the background is told not to hear Ctrl-C, and so would be every command that a test starts and interrupts.
"""

import signal

from hypothesis import settings

pytest_plugins = ["pytester", "tests.harness.failing", "tests.harness.fixtures"]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("klamm", deadline=None)
settings.load_profile("klamm")
