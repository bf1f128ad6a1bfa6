"""The metadata quorum: Raft over the log `__cluster_metadata-0`, by fetching, among voters that may change."""
