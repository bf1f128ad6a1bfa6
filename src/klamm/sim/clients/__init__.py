"""Clients in the simulated world: they speak the real protocol, retry as real ones do, note what they were told."""
