"""What can go wrong with an experiment before there is anything to judge."""


class LabError(Exception):
    """A sentence: what did not happen, and how long it was waited for."""
