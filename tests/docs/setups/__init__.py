"""What a page takes for granted and does not show: a marker `setup: name` in it runs `setups/name.py` at that place."""
