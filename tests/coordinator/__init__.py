"""The coordinators, with a clock of our own and a log in memory."""
