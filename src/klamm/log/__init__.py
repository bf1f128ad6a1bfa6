"""One partition's bytes on disk, in Kafka's formats: segments, indexes, epochs, producer state, recovery, compaction.

`log.Log` is the whole of it for everyone else; `files.Files` is what it needs from the world.
"""
