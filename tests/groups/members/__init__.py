"""One small program for each client library: a member of a group that tells what happens to it."""
