"""Mutants that survive and that a person has judged: why no row can depend on the change.

The key is file, function, kind and the text before the change, so that a moved line stays judged.
"""

EQUIVALENT: dict[tuple[str, str, str, str], str] = {}
