"""Klamm beside Apache Kafka on one machine: the same clients, the same file system, in turns.

`python -m bench run` measures both systems alternately in rounds and reports the ratio of each round, because on a
machine that others use too a ratio is worth more than a number. `python -m bench partitions` measures one system with
10 to 10,000 partitions and reports the curve. What is measured and what is wanted stands in `figures.py`; how one
round goes, in `one_round.py`.

The package does not import `klamm`: a benchmark that shares code with what it measures shares its mistakes.
"""
