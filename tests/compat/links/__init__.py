"""Brokers on links that are slow, lossy, cut, or open in one direction: S14, S15, S22 where the network fails."""
