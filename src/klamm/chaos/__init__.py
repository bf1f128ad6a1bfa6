"""A cluster of real processes under faults, with real clients, and what they saw held against what was promised."""
