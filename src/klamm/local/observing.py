"""Facts of embedded nodes, for whoever listens to Python's own logging."""

import logging

from klamm.facts import Fact, Tell
from klamm.runtime.observe import printable

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def into_logging(node_id: int) -> Tell:
    """Loggers `klamm.node-0`, `klamm.node-1`, …: silent below warnings unless logging is configured otherwise."""
    logger = logging.getLogger(f"klamm.node-{node_id}")

    def tell(fact: Fact) -> None:
        level = LEVELS[fact.level]
        if logger.isEnabledFor(level):
            logger.log(level, "%s", printable(str(fact)))

    return tell
