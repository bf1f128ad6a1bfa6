"""Assignors against what a beginner would say about an assignment."""
