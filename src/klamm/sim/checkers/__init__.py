"""The promises, one story a file. A checker looks at a node after each of its steps, and at everything in the end.

They look at what has changed since they looked last, so that a run stays quick.
"""
