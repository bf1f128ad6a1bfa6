"""What those who send and read have in common, told from what a library would say."""
