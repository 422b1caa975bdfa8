# ruff: noqa: SIM905 -- names in a block of text are easier to read than in quotes
"""Facts about Spark's functions by name: which are not allowed in a query, and what the others return."""

from collections.abc import Iterable
from typing import Final

__all__ = [
    "GENERATORS",
    "RETURNS",
    "SAME_AS_INPUT",
    "TAKES_UNIT",
    "UNREPEATABLE",
    "WINDOW_ONLY",
    "add_aggregates",
    "is_aggregate_name",
]

# Spark's aggregates, whether a query can use them or not; the registry of aggregates adds its own names.
_AGGREGATES: Final = set(
    """
    any any_value approx_count_distinct approx_percentile approx_top_k approx_top_k_accumulate
    approx_top_k_combine array_agg avg bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg
    bitmap_or_agg bool_and bool_or collect_list collect_set collect_union corr count count_if
    count_min_sketch covar_pop covar_samp every first first_value grouping grouping_id hll_sketch_agg
    hll_union_agg histogram_numeric kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float
    kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float kurtosis last last_value listagg
    max max_by mean measure median min min_by mode percentile percentile_approx percentile_cont
    percentile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy
    regr_syy schema_of_variant_agg skewness some std stddev stddev_pop stddev_samp string_agg sum
    theta_intersection_agg theta_sketch_agg theta_union_agg try_avg try_sum
    tuple_intersection_agg_double tuple_intersection_agg_integer tuple_sketch_agg_double
    tuple_sketch_agg_integer tuple_union_agg_double tuple_union_agg_integer var_pop var_samp variance
    vector_avg vector_sum
    """.split()
)
WINDOW_ONLY: Final = frozenset(
    "counter_diff cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number".split()
)
GENERATORS: Final = frozenset(
    """
    explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer session_window
    stack variant_explode variant_explode_outer window window_time
    """.split()
)
# A replayed epoch must give what its first attempt gave; these ask the clock, a generator or the machine.
UNREPEATABLE: Final = frozenset(
    """
    catalog curdate current_catalog current_database current_date current_datetime current_path
    current_role current_schema current_time current_timestamp current_timezone current_user getdate
    input_file_block_length input_file_block_start input_file_name java_method localtime localtimestamp
    monotonically_increasing_id now rand randn random randstr reflect session_user shuffle
    spark_partition_id try_reflect uniform user uuid version
    """.split()
)
TAKES_UNIT: Final = frozenset("date_add date_diff dateadd datediff timestampadd timestampdiff".split())

# Only types that hold for any arguments; Spark decides the type of a function that is not listed here.
RETURNS: Final = {
    "split": "array<string>",
    **dict.fromkeys(
        """
        acos acosh asin asinh atan atan2 atanh cbrt cos cosh degrees exp expm1 hypot ln log log10
        log1p log2 pow power radians sin sinh sqrt tan tanh double
        """.split(),
        "double",
    ),
    **dict.fromkeys(
        """
        base64 date_format format_number format_string from_unixtime get_json_object hex initcap
        lcase lower ltrim md5 printf regexp_extract regexp_replace repeat replace rtrim sha1 sha2
        soundex split_part string substring_index to_json translate trim ucase upper
        """.split(),
        "string",
    ),
    **dict.fromkeys(
        """
        ascii bit_length char_length character_length day dayofmonth
        dayofweek dayofyear hash hour instr int length levenshtein locate minute month octet_length
        position quarter second size weekday weekofyear year
        """.split(),
        "int",
    ),
    **dict.fromkeys(
        """
        bigint crc32 timestampdiff to_unix_timestamp unix_micros unix_millis unix_seconds
        unix_timestamp xxhash64
        """.split(),
        "bigint",
    ),
    **dict.fromkeys(
        """
        array_contains boolean contains endswith exists forall isnan isnotnull isnull like ilike
        regexp regexp_like rlike startswith
        """.split(),
        "boolean",
    ),
    **dict.fromkeys("date date_sub last_day make_date next_day to_date".split(), "date"),
    **dict.fromkeys("timestamp_micros timestamp_millis timestamp_seconds".split(), "timestamp"),
    "float": "float",
    "smallint": "smallint",
    "tinyint": "tinyint",
    "binary": "binary",
}
# These return an array, a map, a struct or a variant, whatever they are given.
NESTED: Final = frozenset(
    """
    array array_append array_compact array_distinct array_except array_insert array_intersect array_prepend
    array_remove array_repeat array_sort array_union arrays_zip filter flatten from_avro from_csv from_json
    from_protobuf from_xml json_object_keys map map_concat map_entries map_filter map_from_arrays
    map_from_entries map_keys map_values map_zip_with named_struct parse_json regexp_extract_all sentences
    sequence session_window shuffle slice sort_array split str_to_map struct to_variant_object transform
    transform_keys transform_values try_parse_json window xpath zip_with
    """.split()
)
# These return the type that all their arguments share.
SAME_AS_INPUT: Final = frozenset("coalesce greatest ifnull least nullif nvl".split())


def is_aggregate_name(name: str | None) -> bool:
    """Whether a lower-case name is that of an aggregate function, Spark's or Penstock's.

    >>> is_aggregate_name("kurtosis"), is_aggregate_name("floor")
    (True, False)
    """
    return name in _AGGREGATES


def add_aggregates(names: Iterable[str]) -> None:
    """Register names of aggregates, so that scalar expressions do not take them for functions."""
    _AGGREGATES.update(names)
