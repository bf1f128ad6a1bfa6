"""The cluster as a value: the records that change it, the image, and the delta between two images."""
