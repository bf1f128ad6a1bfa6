"""Another world: whole clusters and their clients in one process, on a network, disks and clocks drawn from a seed."""
