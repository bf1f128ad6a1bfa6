"""The two kinds of group: the classic one, whose members assign, and the newer one, where the coordinator does."""
