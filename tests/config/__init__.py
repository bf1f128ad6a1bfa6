"""Tests of the settings: reading, resolving, describing and altering them."""
