"""The protocol around the messages: the table of APIs, headers, frames."""
