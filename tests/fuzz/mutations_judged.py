"""Mutants that survive and that a person has judged: why no row can depend on the change.

The key is file, function, kind and the text before the change, so that a moved line stays judged.
"""

EQUIVALENT: dict[tuple[str, str, str, str], str] = {
    (
        "compile/rewrite.py",
        "_Sinking._through_costly",
        "statement removed",
        "moved[place].append(Where(condition))",
    ): "no condition moves then, and all stay after the operator: only work is lost",
    (
        "state/keys.py",
        "ordered",
        "not dropped",
        "not same_keys(*_neighbours(keys, order, ~changes)).all()",
    ): "rows are ordered by the keys themselves, as for hashes that collide, which is right and slower",
    (
        "functions/translation.py",
        "_applied",
        "comparison",
        "len(sql) > _LONGEST",
    ): "a text of exactly the longest length goes to Spark, which gives the same",
}
