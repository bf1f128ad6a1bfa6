"""One start of an embedded cluster in a fresh interpreter, told as JSON: `python -m proof.embedded_start`."""

import json
import time

if __name__ == "__main__":
    began = time.monotonic()
    import klamm

    cluster_type = klamm.Cluster
    imported = time.monotonic()
    with cluster_type(brokers=3) as cluster:
        opened = time.monotonic()
        from proof.start import first_write

        client = time.monotonic()
        first_write(cluster.nodes[0].port)
        written = time.monotonic()
    times = {"seconds": written - client + opened - imported, "open_seconds": opened - imported}
    print(json.dumps({**times, "import_seconds": imported - began}))
