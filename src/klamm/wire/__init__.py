"""Kafka's protocol as values: messages, the table of APIs, headers and frames. It knows the codec and nothing else."""
