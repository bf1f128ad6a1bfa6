"""The runner of pages notices what is wrong with a page, and leaves nothing behind."""

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT
from tests.docs.leftovers import end_marked
from tests.docs.page import LEFT, MARK, NOT_HERE
from tests.harness.waiting import wait_until

WRONG = {
    "a command that fails": ("```sh\ntrue\nls nothing-there\ntrue\n```\n", "this failed: ls nothing-there"),
    "other output": ("```console\n$ echo one\ntwo\n```\n", "the page shows"),
    "a word that is not said": ("<!-- expect: two -->\n```sh\necho one\n```\n", "did not say 'two'"),
    "a script that fails": ("```python\nassert False, 'here'\n```\n", "AssertionError: here"),
    "a test that fails": ("```python\ndef test_it():\n    assert False, 'here'\n```\n", "1 failed"),
    "another exit code": ("<!-- exit: 3 -->\n```sh\ntrue\n```\n", "not 3"),
    "no end": ("<!-- limit: 0.3 -->\n```sh\nsleep 30\n```\n", "not done after"),
    "who should stay": ("<!-- stays: ready -->\n```sh\necho gone\n```\n", "did not say 'ready' and stay"),
    "an extra that is not there": ("```sh\npip install 'klamm[sparc]'\n```\n", "no extra sparc"),
    "a target that is not there": ("```sh\nmake everything-well\n```\n", "everything-well"),
    "words that are not said": ("```sh\necho sent 10\n```\n\n```text\nacknowledged 12\n```\n", "acknowledged"),
    "no YAML": ("```yaml\nscrape_configs\n```\n", "this is no yaml"),
    "no JSON": ("```json\n{\n```\n", "this is no json"),
    "a block of a kind that nobody runs": ("```rust\nfn main() {}\n```\n", "'rust'"),
}
RIGHT = """\
```sh
mkdir there && cd there
export WORD=remembered
```

```python
# said.py
import os

print(os.environ["WORD"], os.getcwd().rpartition("/")[2])
```

```console
$ python said.py
remembered there
```

<!-- output: above -->
```text
remembered …
```

```text
remembered 12 at 10:30
```

<!-- exit: 1 -->
```sh
false
```

```diff
-import os
 def f():
+    return 1
```

<!-- needs: time -->
```sh
false
```

```text
what nobody has said
```
"""


def told(page: Path, text: str) -> tuple[int, list[dict[str, str]]]:
    page.write_text(text, encoding="utf-8")
    home = page.parent / "home"
    home.mkdir()
    mark = uuid.uuid4().hex
    command = [sys.executable, "-m", "tests.docs.page", str(page), str(home)]
    ended = subprocess.run(
        command, cwd=ROOT, env=os.environ | {MARK: mark}, capture_output=True, text=True, timeout=60, check=False
    )
    end_marked(MARK, mark)
    if ended.returncode == NOT_HERE:
        pytest.skip(ended.stderr.strip())
    return ended.returncode, [json.loads(line) for line in ended.stdout.splitlines()]


@pytest.mark.parametrize(("text", "problem"), WRONG.values(), ids=list(WRONG))
def test_what_is_wrong_with_a_page_is_noticed(text: str, problem: str, tmp_path: Path) -> None:
    code, (*_, block) = told(tmp_path / "page.md", text)
    assert code == 1 and block["how"] == "wrong"
    assert problem in block["problem"]


def test_a_page_is_one_terminal(tmp_path: Path) -> None:
    code, blocks = told(tmp_path / "page.md", RIGHT)
    assert code == 0, blocks
    assert [block["how"] for block in blocks] == [
        "ran",
        "kept",
        "ran",
        "compared",
        "compared",
        "ran",
        "parsed",
        LEFT,
        LEFT,
    ]


def test_who_was_left_running_is_ended(tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    left = subprocess.Popen(["sleep", "300"], env=os.environ | {MARK: mark}, start_new_session=True)
    # Popen returns when the program is being put in place, which is a moment before its environment can be read.
    environment = Path(f"/proc/{left.pid}/environ")
    wait_until(lambda: mark.encode() in environment.read_bytes(), "the mark can be seen")
    assert end_marked(MARK, mark) == 1
    assert left.wait(10) == -9
