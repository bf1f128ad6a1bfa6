"""What tests of a running broker share: nodes as processes, a raw connection, an unkind proxy, workloads."""
