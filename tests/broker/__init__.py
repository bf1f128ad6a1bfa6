"""What one broker owns, seen from several of them: replication without a network, by values."""
