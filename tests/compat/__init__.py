"""Programs from elsewhere against a running broker: Kafka's own Java client and tools, and kcat."""
