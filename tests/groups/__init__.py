"""Groups of real consumers, each a process of its own: they share, leave, die, sleep and come back."""
