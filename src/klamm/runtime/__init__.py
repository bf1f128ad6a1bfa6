"""The real world: sockets, files, threads and the clock, performing what a node's steps ask for."""
