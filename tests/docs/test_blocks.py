"""How pages are read: blocks, markers, files, and output that is compared."""

import pytest

from tests.docs.blocks import BadMarker, blocks_in, marks_of
from tests.docs.installing import main as install
from tests.docs.outputs import missing_line

PAGE = """\
# A page

<!-- a remark -->
<!-- needs: spark, java -->
<!-- limit: 5 -->

```python
# orders.py
print("`")
```

1. In a list:

   ~~~console
   $ klamm up
   ready
   ~~~

<!-- skip: never mind -->
Words between a marker and a block part them.

```
klamm down
```
"""


def test_blocks_are_found_with_their_markers() -> None:
    orders, console, plain = blocks_in(PAGE, "page.md")
    assert (orders.line, orders.label, orders.file) == (7, "python", "orders.py")
    assert orders.needs == {"spark", "java"} and orders.limit_seconds == 5
    assert console.text == "$ klamm up\nready" and console.is_shell and console.marks == {}
    assert plain.text == "klamm down" and plain.marks == {} and plain.file is None


def test_tests_are_told_from_scripts() -> None:
    (tests,) = blocks_in("```python\nimport pytest\n\n\nasync def test_it():\n    pass\n```\n", "page.md")
    (script,) = blocks_in("```python\nprint('def test_it')\n```\n", "page.md")
    assert tests.has_tests and not script.has_tests


@pytest.mark.parametrize("wrong", ["<!-- skp: a typing mistake -->", "<!-- needs: docker -->"])
def test_a_marker_that_is_none_is_noticed(wrong: str) -> None:
    with pytest.raises(BadMarker):
        marks_of(wrong, "page.md")


def test_a_block_that_does_not_end_is_noticed() -> None:
    with pytest.raises(BadMarker):
        blocks_in("```sh\nklamm up\n", "page.md")


def test_shown_lines_are_looked_for_in_order() -> None:
    said = "topic    partitions\norders            2\ninvoice          10\n"
    assert missing_line("topic partitions\ninvoice 10", said) is None
    assert missing_line("invoice 10\norders 2", said) == "orders 2"
    assert missing_line("invoice 11", said) == "invoice 11"
    assert missing_line("invoice 11", said, r"\d+") is None
    assert missing_line("top…\n…\ninv… 10", said) is None


def test_what_nobody_can_know_is_taken_for_the_same() -> None:
    shown = "member xChsrHasSVy7soItjkkVFg up after 0.42 s"
    assert missing_line(shown, "member EbJfdZ4IRL+oONPrNzlPbw up after 12 s") is None
    assert missing_line(shown, "member billing up after 12 s") is not None


@pytest.mark.parametrize(
    ("words", "code"), [(["klamm"], 0), (["klamm[spark,java]"], 0), (["klamm[sparc]"], 1), (["klam"], 1)]
)
def test_what_a_page_installs_has_to_be_there(words: list[str], code: int) -> None:
    assert install(["install", *words]) == code
