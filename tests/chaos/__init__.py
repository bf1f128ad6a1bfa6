"""`klamm chaos`: its judge finds every kind of broken promise, its plans come from seeds, and it runs."""
