"""What makes parts of the documentation out of the code and out of running clusters."""
