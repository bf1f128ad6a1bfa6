"""One replica: what a leader knows of its followers, who is in sync, where histories part, what to fetch next."""
