"""Which tests need more than one node, and whether there can be more than one."""

import pytest

from klamm.cli import broker

needs_several_nodes = pytest.mark.skipif(
    "--quorum" not in broker.make_parser().format_help(),
    reason="clusters of several nodes need `klamm broker --quorum`, which is not there yet",
)
