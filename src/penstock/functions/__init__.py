"""The scalar functions and operators that a channel may evaluate, each certified against Spark."""

from penstock.functions import arithmetic, casts, comparison, mathematics, text, times
from penstock.functions.casts import CASTS
from penstock.functions.function import FUNCTIONS, GROUPS, Form, Function
from penstock.functions.translation import (
    DEFAULT,
    SqlSetting,
    Translated,
    Types,
    Uncertified,
    duck_name,
    passed_or_translated,
    translated,
)

__all__ = [
    "CASTS",
    "DEFAULT",
    "FUNCTIONS",
    "GROUPS",
    "Form",
    "Function",
    "SqlSetting",
    "Translated",
    "Types",
    "Uncertified",
    "arithmetic",
    "casts",
    "comparison",
    "duck_name",
    "mathematics",
    "passed_or_translated",
    "text",
    "times",
    "translated",
]
