"""The pictures of docs/concepts.md, drawn from what a live cluster of six brokers in two racks answers."""
