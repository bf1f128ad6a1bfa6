"""The invoice pipeline: the example that users copy, invoices for it to read, and the account of what must come out."""
