"""Traps 35 to 45: groups and their coordinator, on the raw protocol."""
