"""Long proofs with real processes: what is lost, how long a failover takes, whether a loaded cluster stays calm."""
