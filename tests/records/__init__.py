"""Tests of the record batch."""
