"""The proofs' own checkers have to see what is wrong."""
