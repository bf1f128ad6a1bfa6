"""Where Spark lives, without the archive that its Python workers would import PySpark from.

Spark puts `python/lib/pyspark.zip` of its home in front of what a worker imports. From an archive nothing is kept
compiled: every worker compiles PySpark anew, 0.8 s of processor time instead of 0.2, and a stream starts dozens.
PySpark that came with pip is installed beside it, compiled. So its home here is a directory with links to programs and
jars and no archive. Who has set SPARK_HOME is left alone.
"""

import importlib.util
import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

NEEDED = ("bin", "jars")


def spark_home(environment: Mapping[str, str] | None = None) -> Path | None:
    """What SPARK_HOME should be; None where it is better left as it is. It is kept in the user's cache, one for each
    installation: Java opens jars when it needs them, maybe days after its start."""
    environment = os.environ if environment is None else environment
    spec = importlib.util.find_spec("pyspark")
    if environment.get("SPARK_HOME") or spec is None or spec.origin is None:
        return None
    installed = Path(spec.origin).parent
    if not all((installed / name).is_dir() for name in NEEDED):
        return None
    cache = Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "klamm" / f"spark-{sha256(str(installed).encode()).hexdigest()[:12]}"
    try:
        home.mkdir(parents=True, exist_ok=True)
        for name in NEEDED:
            _link(home / name, installed / name)
    except OSError:
        return None  # Nowhere to keep it: slower, and as good.
    return home


def _link(link: Path, target: Path) -> None:
    """Replaced as a whole: another process may start at the same time."""
    if link.is_symlink() and link.readlink() == target:
        return
    beside = link.with_name(f"{link.name}.{os.getpid()}")
    beside.unlink(missing_ok=True)
    beside.symlink_to(target)
    beside.replace(link)
