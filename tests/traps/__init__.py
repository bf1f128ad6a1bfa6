"""What real clients depend on, trap by trap: each test is named after its number in the list of traps."""
