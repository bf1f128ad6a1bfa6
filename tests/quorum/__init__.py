"""Tests of the metadata quorum."""
