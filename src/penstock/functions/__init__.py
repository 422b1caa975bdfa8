"""The scalar functions and operators that a channel may evaluate, each certified against Spark."""

from penstock.functions import arithmetic, casts, comparison, mathematics, text, times
from penstock.functions.function import FUNCTIONS, Form, Function
from penstock.functions.translate import DEFAULT, SqlSetting, Translated, Uncertified, translated

__all__ = [
    "DEFAULT",
    "FUNCTIONS",
    "Form",
    "Function",
    "SqlSetting",
    "Translated",
    "Uncertified",
    "translated",
]
