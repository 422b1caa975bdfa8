"""The scalar functions and operators that a channel may evaluate, each certified against Spark."""

from penstock.functions import arithmetic, casts, comparison, mathematics, text, times
from penstock.functions.casts import CASTS
from penstock.functions.function import FUNCTIONS, GROUPS, Form, Function
from penstock.functions.translation import DEFAULT, SqlSetting, Translated, Uncertified, translated

__all__ = [
    "CASTS",
    "DEFAULT",
    "FUNCTIONS",
    "GROUPS",
    "Form",
    "Function",
    "SqlSetting",
    "Translated",
    "Uncertified",
    "translated",
]
