"""One file an API: its request, its response and their structures, for every version Kafka serves."""
