"""Bytes to values and back: messages are tables of fields, compiled per version to one reader and one writer."""
