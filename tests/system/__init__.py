"""Rows S6 to S22 of the system, one test or more for each: real processes, real clients."""
