"""The metadata quorum: Raft over the log `__cluster_metadata-0`, for now with one voter, who leads from the start."""
