"""A node that is looked at: what its pages say, and who may ask for them."""
