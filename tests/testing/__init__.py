"""The pytest plugin: its clusters, its faults, and what is left of them."""
