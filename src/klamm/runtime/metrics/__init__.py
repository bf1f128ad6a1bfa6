"""What can be measured of a node, each family a function: `family.py` lists them, `page.py` writes them down in slices.

Names are those that people know from Kafka's exporters, where Kafka has the same thing; what is ours alone begins with
`klamm_`. Everything is gathered when somebody asks, from what the node knows anyway.
"""
