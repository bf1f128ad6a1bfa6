"""What those who send and read have in common, whichever library moves the bytes: no socket, no clock."""
