"""A million mutated requests against a real broker, while somebody else is served.

    python -m tests.fuzz [--frames 1000000] [--seed N] [--seconds N]     (`make fuzz`)
    python -m tests.fuzz --replay HEX                                    one frame, as a failed run printed it

`corpus.py` draws right requests of every API that is served, `mutations.py` spoils them, `attack.py` sends them over
several connections and counts what became of each, `witness.py` is the client that must not notice, `campaign.py` puts
it together and watches memory and log, `suspects.py` finds the frame that did it. The campaign also cleans up: topics
that mutations created are deleted again with DeleteTopics, because a broker with a million topics is no bug. No setting
of the broker is changed for it.
"""
