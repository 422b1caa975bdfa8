"""Functions of text; positions and lengths count code points, as in Spark.

Not here: upper and lower case (Spark's upper case of ß is SS), regular expressions (Java's are not DuckDB's),
formats.
"""

from penstock.functions.function import Form, define

__all__: list[str] = []

_SS = ("string", "string")

define("text", "||", Form(_SS, "string", "{0} || {1}", order="all"), written="{0} || {1}")
define("text", "concat", Form(("string*",), "string", "{joined}", order="all"))
define("text", "concat_ws", Form(("string", "string*"), "string", "concat_ws({all})", order="all"))
define(
    "text",
    "length char_length character_length len",
    Form(("string",), "int", "CAST(length({0}) AS INTEGER)"),
)
define("text", "octet_length", Form(("string",), "int", "CAST(strlen({0}) AS INTEGER)"))
define("text", "bit_length", Form(("string",), "int", "CAST(8 * strlen({0}) AS INTEGER)"))
define("text", "trim", Form(("string",), "string", "trim({0}, ' ')"))
define("text", "btrim", Form(("string",), "string", "trim({0}, ' ')"), Form(_SS, "string", "trim({0}, {1})"))
define("text", "ltrim", Form(("string",), "string", "ltrim({0}, ' ')"))
define("text", "rtrim", Form(("string",), "string", "rtrim({0}, ' ')"))
define("text", "startswith", Form(_SS, "boolean", "starts_with({0}, {1})"))
define("text", "endswith", Form(_SS, "boolean", "suffix({0}, {1})"))
define("text", "contains", Form(_SS, "boolean", "contains({0}, {1})"))
define("text", "instr", Form(_SS, "int", "CAST(strpos({0}, {1}) AS INTEGER)"))
define("text", "locate position", Form(_SS, "int", "CAST(strpos({1}, {0}) AS INTEGER)"))
define(
    "text",
    "replace",
    Form(
        ("string", "string", "string"),
        "string",
        "CASE WHEN {1} = '' AND {2} IS NOT NULL THEN {0} ELSE replace({0}, {1}, {2}) END",
    ),
)
define(
    "text",
    "repeat",
    Form(
        ("string", "int"),
        "string",
        "CASE WHEN {1} <= 0 THEN CASE WHEN {0} IS NOT NULL THEN '' END ELSE repeat({0}, {1}) END",
    ),
)
define("text", "space", Form(("int",), "string", "CASE WHEN {0} <= 0 THEN '' ELSE repeat(' ', {0}) END"))
define(
    "text",
    "left",
    Form(
        ("string", "int"),
        "string",
        "CASE WHEN {1} <= 0 THEN CASE WHEN {0} IS NOT NULL THEN '' END ELSE left({0}, {1}) END",
    ),
)
define(
    "text",
    "right",
    Form(
        ("string", "int"),
        "string",
        "CASE WHEN {1} <= 0 THEN CASE WHEN {0} IS NOT NULL THEN '' END ELSE right({0}, {1}) END",
    ),
)
_PART = (
    "CASE WHEN {0} IS NULL OR {1} IS NULL OR {2} IS NULL THEN NULL "
    "WHEN {2} <= 0 THEN '' "
    "WHEN {1} >= 0 THEN substring({0}, greatest(CAST({1} AS BIGINT), 1), CAST({2} AS BIGINT)) "
    "WHEN length({0}) + CAST({1} AS BIGINT) >= 0 "
    "THEN substring({0}, length({0}) + CAST({1} AS BIGINT) + 1, CAST({2} AS BIGINT)) "
    "ELSE substring({0}, 1, greatest(length({0}) + CAST({1} AS BIGINT) + CAST({2} AS BIGINT), 0)) END"
)
define(
    "text",
    "substring substr",
    Form(("string", "int"), "string", _PART.replace("{2}", "2147483647")),
    Form(("string", "int", "int"), "string", _PART),
)
for _name in ("lpad", "rpad"):
    define(
        "text",
        _name,
        Form(
            ("string", "int", "string"),
            "string",
            "CASE WHEN {0} IS NULL OR {2} IS NULL THEN NULL WHEN {1} <= 0 THEN '' "
            f"WHEN {{2}} = '' THEN left({{0}}, {{1}}) ELSE {_name}({{0}}, {{1}}, {{2}}) END",
        ),
    )
define(
    "text",
    "ascii",
    Form(("string",), "int", "CASE WHEN {0} = '' THEN 0 ELSE CAST(unicode({0}) AS INTEGER) END"),
)
define("text", "md5", Form(("string",), "string", "md5({0})"))
define("text", "sha sha1", Form(("string",), "string", "sha1({0})"))
define(
    "text",
    "sha2",
    Form(("string", "int"), "string", "sha256({0})", literals={1: lambda text: text in {"0", "256"}}),
)
_HEX = (
    "CASE WHEN {0} >= 0 THEN to_hex(CAST({0} AS BIGINT)) "
    "ELSE to_hex(CAST(CAST({0} AS HUGEINT) + 18446744073709551616 AS UBIGINT)) END"
)
define(
    "text",
    "hex",
    Form(("bigint",), "string", _HEX),
    Form(("int",), "string", _HEX),
    Form(("string",), "string", "hex({0})"),
)
define("text", "translate", Form(("string", "string", "string"), "string", "translate({0}, {1}, {2})"))
define(
    "text",
    "split_part",
    Form(
        ("string", "string", "int"),
        "string",
        "CASE WHEN {0} IS NULL OR {1} IS NULL OR {2} IS NULL THEN NULL "
        "WHEN {2} = 0 THEN error('split_part counts from 1') "
        "WHEN {1} = '' THEN CASE WHEN {2} IN (1, -1) THEN {0} ELSE '' END "
        "ELSE split_part({0}, {1}, {2}) END",
        raises=True,
    ),
)
define(
    "text",
    "reverse",
    Form(("string",), "string", "array_to_string(list_reverse(regexp_extract_all({0}, '(?s).')), '')"),
)
define(
    "text",
    "like",
    Form(("string", "string"), "boolean", "({0} LIKE {1})", literals={1: lambda text: "\\" not in text}),
    written="{0} like {1}",
)
define(
    "text",
    "chr char",
    Form(("bigint",), "string", "CASE WHEN {0} < 0 THEN '' ELSE chr(CAST({0} & 255 AS INTEGER)) END"),
)
define(
    "text",
    "find_in_set",
    Form(
        _SS,
        "int",
        "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN contains({0}, ',') THEN 0 "
        "ELSE CAST(coalesce(list_position(string_split({1}, ','), {0}), 0) AS INTEGER) END",
    ),
)
define(
    "text",
    "bin",
    Form(
        ("bigint",),
        "string",
        "CASE WHEN {0} >= 0 THEN bin({0}) "
        "ELSE bin(CAST(CAST({0} AS HUGEINT) + 18446744073709551616 AS UBIGINT)) END",
    ),
)
