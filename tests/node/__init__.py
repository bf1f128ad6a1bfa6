"""The node as a state machine: events in, effects out, on a disk, a clock and connections that the tests own."""
