"""What tests, gates and benchmarks share: the database fixtures, no network, and Ctrl-C as it is usually."""

import signal

pytest_plugins = ["tests.databases"]

# A runner in the background starts with SIGINT ignored, and whatever it starts would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
