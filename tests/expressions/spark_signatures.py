"""The types that Spark's functions, operators and casts refuse, asked of its analyzer.

`make functions` writes them into src/penstock/expressions/spark_types.py. A combination of types is in the
table only if Spark refuses every example of it, as columns and as constants, with ANSI mode and without, and
because of the types.
"""

import textwrap
from itertools import product
from pathlib import Path

from py4j import protocol
from pyspark.sql import SparkSession

from expressions.spark_registry import _plain_errors, registered
from penstock.expressions import spark_types
from penstock.expressions.functions import GENERATORS, UNREPEATABLE, WINDOW_ONLY, is_aggregate_name
from penstock.expressions.spark_types import LETTERS

TABLE = Path(spark_types.__file__)
_BEGIN, _END = '_REFUSED: Final = """\n', '"""  # end of the table\n'

# Names of columns, by letter: case does not tell columns apart.
_NAMES = {"D": "date"}
_TYPES = {
    "b": "boolean",
    "i": "int",
    "l": "bigint",
    "d": "double",
    "n": "decimal(10,2)",
    "s": "string",
    "x": "binary",
    "D": "date",
    "t": "timestamp",
    "z": "timestamp_ntz",
}
_NESTED = {"r": "struct<c:int,d:string>", "m": "map<string,int>"}
# A constant is cast where a column is not, and some arguments have to be constants.
_CONSTANTS = {"i": ["1"], "s": ["'1'"]}
_INSIDE = ({"a_a", "a_i"}, {"m__m", "m"})
_BINARY = "+ - * / % div = < <= > >= <=> and or || & | ^ like rlike ilike".split()  # noqa: SIM905 -- easier to read
_UNARY = {"unary-": "- {}", "not": "NOT {}", "~": "~ {}"}
# Parts of Spark's error classes that blame the types; others blame values or missing constants.
_BLAMES = (
    "UNEXPECTED_INPUT_TYPE",
    "BINARY_OP_DIFF_TYPES",
    "BINARY_OP_WRONG_TYPE",
    "DATA_DIFF_TYPES",
    "DIFF_TYPES",
    "CAST_WITHOUT_SUGGESTION",
    "CAST_WITH_CONF_SUGGESTION",
    "CAST_WITH_FUNC_SUGGESTION",
    "INVALID_ORDERING_TYPE",
    "UNEXPECTED_CLASS_TYPE",
    "NULL_TYPE",
    "HASH_MAP_TYPE",
    "HASH_VARIANT_TYPE",
)


def written(session: SparkSession) -> str:
    """The text of the file with what the session refuses."""
    text = TABLE.read_text()
    before, rest = text.split(_BEGIN)
    _, after = rest.split(_END)
    entries = [f"{name}/{shape}:{refused}" for (name, shape), refused in refused_by(session).items()]
    lines = "\n".join(
        textwrap.fill(each, 110, break_long_words=False, break_on_hyphens=False) for each in entries
    )
    return f"{before}{_BEGIN}{lines}\n{_END}{after}"


def refused_by(session: SparkSession, names=None) -> dict[tuple[str, str], str]:
    """What is refused, by name and number of arguments."""
    asked = _Analyzer(session)
    found = {}
    for name, forms in _forms(session):
        if names is not None and name not in names:
            continue
        for count, form in forms.items():
            if count == "cast":
                found[name, "2"] = _grouped(asked.refused_casts())
            elif count == 1:
                refused = asked.refused_ones(form)
                if refused and len(refused) < len(LETTERS):
                    found[name, "1"] = refused
            elif count == 2:
                pairs = asked.refused_pairs(form)
                if pairs:
                    found[name, "2"] = _grouped(pairs)
            else:
                places = asked.refused_places(form, count)
                if any(places):
                    found[name, str(count)] = ",".join(each or "-" for each in places)
    return found


def _forms(session):
    """Names with their forms by the number of arguments, with {} for each."""
    for name, form in _UNARY.items():
        yield name, {1: form}
    for name in _BINARY:
        yield name, {2: f"{{}} {name} {{}}"}
    yield "cast", {"cast": ""}
    skipped = GENERATORS | UNREPEATABLE | WINDOW_ONLY
    for name, counts in registered(session).items():
        if (
            name in skipped
            or is_aggregate_name(name)
            or name in {"window", "when", "and", "or", "not", "div"}
        ):
            continue
        forms = {
            count: f"{name}({', '.join(['{}'] * count)})"
            for count in counts
            if 1 <= count <= 4 and len(counts) < 8
        }
        if len(counts) >= 8:
            forms = {count: f"{name}({', '.join(['{}'] * count)})" for count in (1, 2)}
        yield name, forms


def _samples(letter, other=None):
    """Columns and constants of a kind; those of arrays and maps hold what the other argument is, too."""
    inside = [] if other is None else [_named(other)]
    if letter == "a":
        return [f"a_{each}" for each in dict.fromkeys([*inside, "i", "s", "f", "a", "r"])]
    if letter == "m":
        return ["m", *(f"m_{each}" for each in inside), *(f"m__{each}" for each in inside)]
    return [f"c_{_named(letter)}", *_CONSTANTS.get(letter, ())]


def _go_together(one, other):
    """Whether two examples are worth trying: two arrays or two maps are alike, or one is in the other."""
    nested = [each[:1] for each in (one, other) if each[:2] in {"a_", "m_", "m"}]
    return len(nested) < 2 or nested[0] != nested[1] or one == other or {one, other} in _INSIDE


def _named(letter):
    return _NAMES.get(letter, letter)


class _Analyzer:
    def __init__(self, session):
        self._session, state = session, session._jsparkSession.sessionState()
        self._analyzer, self._parser = state.analyzer(), state.sqlParser()
        columns = {f"c_{_named(letter)}": kind for letter, kind in _TYPES.items()}
        columns |= {f"a_{_named(letter)}": f"array<{kind}>" for letter, kind in _TYPES.items()}
        columns |= {"a_f": "array<float>", "a_a": "array<array<int>>", "a_m": "array<map<string,int>>"}
        columns |= {"m_a": "map<array<int>,int>", "m_r": f"map<{_NESTED['r']},int>", "m_m": "map<int,int>"}
        columns |= {f"m__{each}": f"map<string,{columns[f'a_{each}'][6:-1]}>" for each in "am"}
        columns |= {"m__r": f"map<string,{_NESTED['r']}>"}
        columns |= {f"m_{_named(letter)}": f"map<{kind},int>" for letter, kind in _TYPES.items()}
        columns |= {f"m__{_named(letter)}": f"map<string,{kind}>" for letter, kind in _TYPES.items()}
        columns |= {"c_r": _NESTED["r"], "a_r": f"array<{_NESTED['r']}>", "m": _NESTED["m"]}
        ddl = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        session.createDataFrame([], ddl).createOrReplaceTempView("_kinds")

    def taken(self, expressions):
        """Whether each expression may be right, in one mode at least."""
        found = [False] * len(expressions)
        for ansi in ("true", "false"):
            left = [place for place, known in enumerate(found) if not known]
            self._session.conf.set("spark.sql.ansi.enabled", ansi)
            with _plain_errors():
                for place, known in zip(
                    left, self._resolved([expressions[each] for each in left]), strict=True
                ):
                    found[place] = known
        self._session.conf.set("spark.sql.ansi.enabled", "true")
        return found

    def _resolved(self, expressions):
        if not expressions:
            return []
        items = ", ".join(f"{each} AS c{place}" for place, each in enumerate(expressions))
        try:
            plan = self._analyzer.execute(self._parser.parsePlan(f"SELECT {items} FROM _kinds"))
        except protocol.Py4JJavaError as error:
            if len(expressions) == 1:
                return [not _blames_types(str(error.java_exception.getMessage()))]
            half = len(expressions) // 2
            return self._resolved(expressions[:half]) + self._resolved(expressions[half:])
        items = plan.projectList()
        found = [bool(items.apply(place).resolved()) for place in range(len(expressions))]
        return [
            known or not self._is_mismatch(items.apply(place).child(), each)
            for place, (known, each) in enumerate(zip(found, expressions, strict=True))
        ]

    def _is_mismatch(self, node, expression):
        """Whether an expression that is not resolved has the wrong types."""
        checked = str(node.checkInputDataTypes().toString())
        if not checked.startswith("TypeCheckSuccess"):
            return _blames_types(checked)
        try:
            self._session._jsparkSession.sql(f"SELECT {expression} FROM _kinds")
        except protocol.Py4JJavaError as error:
            return _blames_types(str(error.java_exception.getMessage()))
        return False

    def refused_ones(self, form):
        asked = [(letter, each) for letter in LETTERS for each in _samples(letter)]
        known = self.taken([form.format(each) for _, each in asked])
        taken = {letter for (letter, _), right in zip(asked, known, strict=True) if right}
        return "".join(each for each in LETTERS if each not in taken)

    def refused_pairs(self, form):
        """The pairs of letters of which every example is refused."""
        asked = [
            ((first, second), form.format(one, other))
            for first, second in product(LETTERS, LETTERS)
            for one, other in product(_samples(first, second), _samples(second, first))
            if _go_together(one, other)
        ]
        taken: set = set()
        # The columns alone first: they decide most pairs.
        for columns in (True, False):
            some = [
                (pair, text) for pair, text in asked if pair not in taken and ("1" not in text) == columns
            ]
            known = self.taken([text for _, text in some])
            taken |= {pair for (pair, _), right in zip(some, known, strict=True) if right}
        every = {pair for pair, _ in asked}
        return every - taken if taken else set()

    def refused_places(self, form, count):
        """The letters that each place refuses, where the places do not depend on each other."""
        tried = [
            each
            for each in product(("c_s", "c_i", "c_d", "c_t"), repeat=count)
            if count == 3 or len(set(each)) < 3
        ]
        known = self.taken([form.format(*each) for each in tried])
        base = next((each for each, right in zip(tried, known, strict=True) if right), None)
        if base is None or not self._independent(form.format(*base)):
            return []
        found = []
        for place in range(count):
            asked = [(letter, each) for letter in LETTERS for each in _samples(letter)]
            texts = [form.format(*base[:place], each, *base[place + 1 :]) for _, each in asked]
            taken = {letter for (letter, _), right in zip(asked, self.taken(texts), strict=True) if right}
            found.append("".join(each for each in LETTERS if each not in taken))
        return found

    def _independent(self, expression):
        """Whether the types of the arguments are declared one by one."""
        with _plain_errors():
            plan = self._parser.parsePlan(f"SELECT {expression} AS c0 FROM _kinds")
            try:
                node = self._analyzer.execute(plan).projectList().apply(0).child()
            except protocol.Py4JJavaError:
                return False
        kind = self._session._jvm.java.lang.Class.forName(
            "org.apache.spark.sql.catalyst.expressions.ExpectsInputTypes"
        )
        return bool(kind.isInstance(node))

    def refused_casts(self):
        asked = [
            ((first, second), f"cast({one} AS {kind})")
            for first in LETTERS
            for second, kind in _TYPES.items()
            for one in _samples(first)
        ]
        known = self.taken([text for _, text in asked])
        taken = {pair for (pair, _), right in zip(asked, known, strict=True) if right}
        return {pair for pair, _ in asked} - taken


def _blames_types(text):
    return any(each in text for each in _BLAMES)


def _grouped(pairs):
    """Pairs as text: letters of the first argument, > and those of the second, for each different second."""
    seconds = {}
    for first in LETTERS:
        found = "".join(second for second in LETTERS if (first, second) in pairs)
        if found:
            seconds.setdefault("*" if len(found) == len(LETTERS) else found, []).append(first)
    return ",".join(f"{''.join(firsts)}>{found}" for found, firsts in seconds.items())


if __name__ == "__main__":
    from penstock.runtime.spark.session import spark_session

    TABLE.write_text(written(spark_session("local[1]")))
