"""Errors of the world, with a real process: a full disk, damaged files, somebody else's directory or port."""
