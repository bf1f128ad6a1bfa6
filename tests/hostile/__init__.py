"""Bad input, case by case, over a real socket to a real broker: framing, types, records, connections, resources.

Every test ends with the same questions, asked by `conftest.py`: is the process up, is a client that was there before
still answered, is a new one, and did the broker call nothing its own bug.

Left out, because Klamm does not have it yet: everything about TLS (a handshake cut in half, renegotiation, versions
below 1.2, plaintext on a TLS port), about SASL (requests before authentication, steps out of order, failed logins,
expired sessions), about ACLs, and groups, members and transactional ids without bound.
"""
