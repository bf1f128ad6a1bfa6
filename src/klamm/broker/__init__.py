"""What one broker owns: its partitions, who waits for them, fetch sessions, and how a handler may answer."""
