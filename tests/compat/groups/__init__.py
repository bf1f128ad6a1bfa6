"""Groups with Kafka's own consumer and tools."""
