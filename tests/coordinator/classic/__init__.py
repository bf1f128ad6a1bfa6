"""Groups of the classic protocol, as values: time and the log are the test's."""
