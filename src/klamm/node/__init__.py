"""One node: a synchronous state machine, `effects = node.step(event, now)`."""
