"""The coordinators: groups and their offsets, later transactions; cores whose state is replayed from their own log."""
