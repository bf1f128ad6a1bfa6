"""Consumer groups: who reads what, and how far each group has read."""
