"""The invoice pipeline: what is generated, the account of it, and the transforms."""
