"""Tests of clusters on this machine: as processes and embedded."""
