"""Tables as they are printed."""

from klamm.cli.saying import counted, table


def test_columns_are_aligned_and_numbers_stand_to_the_right() -> None:
    assert table(("id", "rack", "state"), [(7, "R1", "running"), (10, "-", "dead")]) == "\n".join(
        ["id  rack  state", " 7  R1    running", "10  -     dead"]
    )


def test_a_column_of_numbers_and_words_stands_to_the_left() -> None:
    assert table(("pid",), [(12345,), ("-",)]).split("\n")[2] == "-"


def test_a_gap_among_numbers_stands_where_they_do() -> None:
    assert table(("lag", "host"), [(12345, None), (None, "h")]).split("\n")[1:] == ["12345  -", "    -  h"]


def test_a_table_without_rows_is_its_headings() -> None:
    assert table(("topic", "partitions"), []) == "topic  partitions"


def test_one_is_not_many() -> None:
    assert (counted(1, "node"), counted(0, "node"), counted(2, "node")) == ("1 node", "0 nodes", "2 nodes")
