"""The codec: its tables, its referees, and what it makes of bytes that are no message."""
