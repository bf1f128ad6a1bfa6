"""A cluster on this machine: nodes as processes, or embedded in this one."""
