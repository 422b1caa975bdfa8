import pytest

from penstock.errors import BadJoin, BadWindow
from penstock.query.sql.clauses import cut_clauses

NESTED = """
WITH a AS (SELECT x FROM s [RANGE 1 MINUTE])
SELECT x FROM (SELECT b.x FROM a JOIN b ON a.x = b.x LAST 2 ROWS) AS c JOIN d ON c.x = d.x WITHIN 3 HOURS
UNION ALL SELECT x FROM e [RANGE 4 DAYS]
"""


def test_a_clause_belongs_to_the_select_around_it():
    _, found = cut_clauses(NESTED)
    windows = [each.window.size if each.window else None for each in found]
    assert windows == ["1 MINUTE", None, None, "4 DAYS"]
    assert [each.bounds[0].within if each.joins else None for each in found] == [None, "3 HOURS", None, None]
    assert found[2].bounds[0].last == 2


def test_all_that_is_left_keeps_its_place():
    rest, _ = cut_clauses(NESTED)
    assert len(rest) == len(NESTED)
    assert all(new in {old, " "} for old, new in zip(NESTED, rest, strict=True))
    assert not any(word in rest for word in ("RANGE", "LAST", "WITHIN", "["))


def test_a_window_knows_the_joins_before_it():
    _, (found,) = cut_clauses("SELECT x FROM a JOIN b LAST 1 ROW [RANGE 1 HOUR] JOIN c LAST 1 ROW")
    assert (found.window_after, found.joins) == (1, 2)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 'FROM a [RANGE 1 HOUR]' AS s, arr[1] FROM a",
        "SELECT x FROM a -- JOIN b WITHIN 1 HOUR",
        "SELECT trim(FROM x) AS x, `within` FROM a WHERE x IS DISTINCT FROM y",
        "SELECT last FROM a JOIN b ON a.within = b.last",
    ],
)
def test_what_is_no_clause_is_left(text):
    rest, found = cut_clauses(text)
    assert rest == text
    assert [(each.window, each.bounds, each.comma) for each in found] == [(None, {}, None)]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("SELECT x FROM a [RANGE 1 HOUR] [RANGE 2 HOURS]", BadWindow),
        ("SELECT x FROM a WHERE y [RANGE 1 HOUR]", BadWindow),
        ("SELECT x FROM a GROUP BY y LAST 3 ROWS", BadJoin),
    ],
)
def test_a_clause_in_the_wrong_place(text, error):
    with pytest.raises(error, match=r"\n +\^$"):
        cut_clauses(text)
