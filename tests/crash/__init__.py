"""kill -9 under load, and what has to be there afterwards."""
