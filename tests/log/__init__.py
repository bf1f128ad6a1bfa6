"""Tests of klamm.log."""
