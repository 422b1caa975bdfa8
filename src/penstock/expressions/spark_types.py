"""The types that Spark's functions, operators and casts refuse: a query is read without a JVM.

The table is Spark's own, as `make functions` writes it; a test compares a part of it with a session. It has
what is refused with ANSI mode and without, so that whatever one of them allows is left to the session.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

__all__ = ["LETTERS", "letter_of", "refuses"]

LETTERS: Final = "bildnsxDtzamr"
"""boolean int bigint double decimal string binary date timestamp timestamp_ntz array map struct."""

_OF_TYPE: Final = {
    "boolean": "b",
    "tinyint": "i",
    "smallint": "i",
    "int": "i",
    "bigint": "l",
    "float": "d",
    "double": "d",
    "string": "s",
    "binary": "x",
    "date": "D",
    "timestamp": "t",
    "timestamp_ntz": "z",
}
_OF_NESTED: Final = {"decimal(": "n", "array<": "a", "map<": "m", "struct<": "r"}


def letter_of(kind: str) -> str:
    """The letter of a type in the table.

    >>> letter_of("smallint"), letter_of("array<int>")
    ('i', 'a')
    """
    return _OF_TYPE.get(kind) or next(
        letter for start, letter in _OF_NESTED.items() if kind.startswith(start)
    )


def refuses(name: str, given: Sequence[str]) -> bool:
    """Whether Spark refuses arguments of these types, whatever their values are.

    >>> refuses("upper", ["array<string>"]), refuses("upper", ["int"]), refuses("unheard_of", ["int"])
    (True, False, False)
    """
    refused = _table().get((name, len(given)))
    letters = [letter_of(each) for each in given]
    if refused is None:
        return False
    if len(given) == 2:
        return any(letters[0] in firsts and letters[1] in seconds for firsts, seconds in refused)
    return any(each in places for each, places in zip(letters, refused, strict=True))


@cache
def _table() -> Mapping[tuple[str, int], Sequence[Sequence[str]]]:
    """For one argument or more than two, the letters that each refuses; for two, pairs of letters."""
    found: dict[tuple[str, int], Sequence[Sequence[str]]] = {}
    for entry in _REFUSED.split():
        head, _, text = entry.partition(":")
        name, _, count = head.rpartition("/")
        parts = text.split(",")
        pairs = [
            (firsts, LETTERS if each == "*" else each)
            for firsts, _, each in (p.partition(">") for p in parts)
        ]
        found[name, int(count)] = pairs if count == "2" else parts
    return found


_REFUSED: Final = """
unary-/1:bxDtzamr
not/1:ildnxDtzamr
~/1:bdnsxDtzamr
+/2:bxtzamr>*,i>bxtzamr,ldns>bxDtzamr,D>bldnsxDtzamr
-/2:bxamr>*,ildn>bxDtzamr,s>bxamr,D>bldnxamr,tz>bildnxamr
*/2:bxDtzamr>*,ildns>bxDtzamr
//2:bxDtzamr>*,ildns>bxDtzamr
%/2:bxDtzamr>*,ildns>bxDtzamr
div/2:bdxDtzamr>*,il>bdxDtzamr,n>bdsxDtzamr,s>bdnsxDtzamr
=/2:bildn>xDtzamr,s>amr,x>bildnDtzamr,Dtz>bildnxamr,a>bildnsxDtzmr,m>*,r>bildnsxDtzam
</2:b>ildnxDtzamr,ildn>bxDtzamr,s>amr,x>bildnDtzamr,Dtz>bildnxamr,a>bildnsxDtzmr,m>*,r>bildnsxDtzam
<=/2:b>ildnxDtzamr,ildn>bxDtzamr,s>amr,x>bildnDtzamr,Dtz>bildnxamr,a>bildnsxDtzmr,m>*,r>bildnsxDtzam
>/2:b>ildnxDtzamr,ildn>bxDtzamr,s>amr,x>bildnDtzamr,Dtz>bildnxamr,a>bildnsxDtzmr,m>*,r>bildnsxDtzam
>=/2:b>ildnxDtzamr,ildn>bxDtzamr,s>amr,x>bildnDtzamr,Dtz>bildnxamr,a>bildnsxDtzmr,m>*,r>bildnsxDtzam
<=>/2:bildn>xDtzamr,s>amr,x>bildnDtzamr,Dtz>bildnxamr,a>bildnsxDtzmr,m>*,r>bildnsxDtzam
and/2:b>ildnxDtzamr,ildnxDtzamr>*,s>ildnsxDtzamr
or/2:b>ildnxDtzamr,ildnxDtzamr>*,s>ildnsxDtzamr
||/2:bildnsxDtz>amr,a>bildnsxDtzmr,mr>*
&/2:bdnxDtzamr>*,il>bdnxDtzamr,s>bdnsxDtzamr
|/2:bdnxDtzamr>*,il>bdnxDtzamr,s>bdnsxDtzamr
^/2:bdnxDtzamr>*,il>bdnxDtzamr,s>bdnsxDtzamr
like/2:bildnsxDtz>amr,amr>*
rlike/2:bildnsxDtz>amr,amr>*
ilike/2:bildnsxDtz>amr,amr>*
cast/2:bdn>xDz,il>Dz,x>bildnDtz,Dt>x,z>bildnx,amr>bildnxDtz
abs/1:bxDtzamr
acos/1:bxDtzamr
acosh/1:bxDtzamr
add_months/2:bildnxamr>*,sDtz>bxDtzamr
aes_decrypt/2:bildnDtzamr>*,sx>bildnDtzamr
aes_decrypt/3:bildnDtzamr,bildnDtzamr,amr
aes_decrypt/4:bildnDtzamr,bildnDtzamr,amr,amr
aes_encrypt/2:bildnDtzamr>*,sx>bildnDtzamr
aes_encrypt/3:bildnDtzamr,bildnDtzamr,amr
aes_encrypt/4:bildnDtzamr,bildnDtzamr,amr,amr
approx_top_k_estimate/1:bildnsxDtzam
approx_top_k_estimate/2:bildnsxDtzam>*,r>bxDtzamr
array/2:b>ildnxDtzamr,ildn>bxDtzamr,s>amr,x>bildnDtzamr,Dtz>bildnxamr,a>bildnsxDtzmr,m>bildnsxDtzar,r>bildnsxDtzam
array_append/2:bildnsxDtzmr>*
array_compact/1:bildnsxDtzmr
array_contains/2:bildnsxDtzmr>*,a>m
array_distinct/1:bildnsxDtzmr
array_except/2:bildnsxDtzmr>*,a>bildnsxDtzmr
array_intersect/2:bildnsxDtzmr>*,a>bildnsxDtzmr
array_join/2:bildnsxDtzmr>*,a>bildnxDtzamr
array_max/1:bildnsxDtzmr
array_min/1:bildnsxDtzmr
array_position/2:bildnsxDtzmr>*,a>m
array_prepend/2:bildnsxDtzmr>*
array_remove/2:bildnsxDtzmr>*,a>m
array_repeat/2:bildnsxDtzamr>bldnsxDtzamr
array_size/1:bildnsxDtzmr
array_sort/1:bildnsxDtzmr
array_sort/2:bildnsxDtzmr>*
array_union/2:bildnsxDtzmr>*,a>bildnsxDtzmr
arrays_overlap/2:bildnsxDtzmr>*,a>bildnsxDtzmr
arrays_zip/1:bildnsxDtzmr
arrays_zip/2:bildnsxDtzmr>*,a>bildnsxDtzmr
ascii/1:amr
asin/1:bxDtzamr
asinh/1:bxDtzamr
atan/1:bxDtzamr
atan2/2:bxDtzamr>*,ildns>bxDtzamr
atanh/1:bxDtzamr
base64/1:bildnDtzamr
bigint/1:xzamr
bin/1:bxDtzamr
binary/1:bdnDtzamr
bit_count/1:dnsxDtzamr
bit_get/2:bdnsxDtzamr>*,il>bxDtzamr
bit_length/1:amr
bitmap_bit_position/1:bxDtzamr
bitmap_bucket_number/1:bxDtzamr
bitmap_count/1:bildnsDtzamr
boolean/1:xzamr
bround/1:bxDtzamr
bround/2:bxDtzamr>*,ildns>bxDtzamr
cardinality/1:bildnsxDtzr
cbrt/1:bxDtzamr
ceil/1:bxDtzamr
ceiling/1:bxDtzamr
char/1:bxDtzamr
char_length/1:amr
character_length/1:amr
chr/1:bxDtzamr
coalesce/2:b>ildnxDtzamr,ildn>bxDtzamr,s>amr,x>bildnDtzamr,Dtz>bildnxamr,a>bildnsxDtzmr,m>bildnsxDtzar,r>bildnsxDtzam
collate/2:bildnsxDtzamr>bildnxDtzamr
collation/1:bildnxDtzamr
concat/1:mr
concat/2:bildnsxDtz>amr,a>bildnsxDtzmr,mr>*
concat_ws/1:amr
concat_ws/2:bildnsxDtz>mr,amr>*
contains/2:bildnsxDtz>amr,amr>*
conv/3:amr,bxDtzamr,bxDtzamr
convert_timezone/2:bildnsxDtz>bildnxamr,amr>*
convert_timezone/3:amr,amr,bildnxamr
cos/1:bxDtzamr
cosh/1:bxDtzamr
cot/1:bxDtzamr
crc32/1:bildnDtzamr
csc/1:bxDtzamr
date/1:bildnxamr
date_add/2:bildnxamr>*,sDtz>bldnxDtzamr
date_diff/2:bildnxamr>*,sDtz>bildnxamr
date_format/2:bildnxamr>*,sDtz>amr
date_from_unix_date/1:bxDtzamr
date_sub/2:bildnxamr>*,sDtz>bldnxDtzamr
date_trunc/2:bildnsxDtz>bildnxamr,amr>*
dateadd/2:bildnxamr>*,sDtz>bldnxDtzamr
datediff/2:bildnxamr>*,sDtz>bildnxamr
day/1:bildnxamr
dayname/1:bildnxamr
dayofmonth/1:bildnxamr
dayofweek/1:bildnxamr
dayofyear/1:bildnxamr
decimal/1:xzamr
degrees/1:bxDtzamr
double/1:xzamr
element_at/2:bildnsxDtzr>*,a>bldnsxDtzamr,m>m
elt/2:bxDtzamr>*,ildns>amr
encode/2:bildnsxDtz>amr,amr>*
endswith/2:bildnsxDtz>amr,amr>*
exists/2:bildnsxDtzmr>*
exp/1:bxDtzamr
expm1/1:bxDtzamr
factorial/1:bxDtzamr
filter/2:bildnsxDtzmr>*
find_in_set/2:bildnsxDtz>amr,amr>*
flatten/1:bildnsxDtzmr
float/1:xzamr
floor/1:bxDtzamr
forall/2:bildnsxDtzmr>*
format_number/2:bsxDtzamr>*,ildn>bldnxDtzamr
format_string/1:amr
format_string/2:amr>*
from_base32/1:amr
from_unixtime/1:bxDtzamr
from_unixtime/2:bxDtzamr>*,ildns>amr
from_utc_timestamp/2:bildnxamr>*,sDtz>amr
get/2:bildnsxDtzmr>*,a>bxDtzamr
get_json_object/2:bildnxDtzamr>*,s>bildnxDtzamr
getbit/2:bdnsxDtzamr>*,il>bxDtzamr
greatest/2:b>ildnsxDtzamr,ildn>bsxDtzamr,s>bildnxDtzamr,x>bildnsDtzamr,Dtz>bildnsxamr,a>bildnsxDtzmr,m>*,r>bildnsxDtzam
hash/1:m
hash/2:bildnsxDtzar>m,m>*
hex/1:amr
hll_sketch_estimate/1:bildnsDtzamr
hll_union/2:bildnsDtzamr>*,x>bildnsDtzamr
hmac/2:bildnDtzamr>*,sx>bildnDtzamr
hmac/3:bildnDtzamr,bildnDtzamr,amr
hour/1:bildnxamr
hour/2:bildnxamr>*
hypot/2:bxDtzamr>*,ildns>bxDtzamr
in/1:m
in/2:b>ildnxDtzamr,ildn>bxDtzamr,s>amr,x>bildnDtzamr,Dtz>bildnxamr,a>bildnsxDtzmr,m>*,r>bildnsxDtzam
initcap/1:amr
instr/2:bildnsxDtz>amr,amr>*
instr/3:amr,amr,bxDtzamr
instr/4:amr,amr,bxDtzamr,bxDtzamr
int/1:xzamr
is_valid_utf8/1:amr
isnan/1:bxDtzamr
jaro_winkler_similarity/2:bildnsxDtz>amr,amr>*
json_array_length/1:bildnxDtzamr
json_object_keys/1:bildnxDtzamr
kll_sketch_get_n_bigint/1:bildnDtzamr
kll_sketch_get_n_double/1:bildnDtzamr
kll_sketch_get_n_float/1:bildnDtzamr
kll_sketch_merge_bigint/2:bildnDtzamr>*,sx>bildnDtzamr
kll_sketch_merge_double/2:bildnDtzamr>*,sx>bildnDtzamr
kll_sketch_merge_float/2:bildnDtzamr>*,sx>bildnDtzamr
kll_sketch_to_string_bigint/1:bildnDtzamr
kll_sketch_to_string_double/1:bildnDtzamr
kll_sketch_to_string_float/1:bildnDtzamr
last_day/1:bildnxamr
lcase/1:amr
least/2:b>ildnsxDtzamr,ildn>bsxDtzamr,s>bildnxDtzamr,x>bildnsDtzamr,Dtz>bildnsxamr,a>bildnsxDtzmr,m>*,r>bildnsxDtzam
left/2:bildnsxDtz>bxDtzamr,amr>*
len/1:amr
length/1:amr
levenshtein/2:bildnsxDtz>amr,amr>*
levenshtein/3:amr,amr,bxDtzamr
ln/1:bxDtzamr
locate/2:bildnsxDtz>amr,amr>*
locate/3:amr,amr,bxDtzamr
log/1:bxDtzamr
log/2:bxDtzamr>*,ildns>bxDtzamr
log10/1:bxDtzamr
log1p/1:bxDtzamr
log2/1:bxDtzamr
lower/1:amr
lpad/2:bildnsxDtz>bxDtzamr,amr>*
lpad/3:amr,bxDtzamr,amr
ltrim/1:amr
ltrim/2:bildnsxDtz>amr,amr>*
luhn_check/1:amr
make_date/3:bxDtzamr,bxDtzamr,bxDtzamr
make_dt_interval/1:bxDtzamr
make_dt_interval/2:bxDtzamr>*,ildns>bxDtzamr
make_dt_interval/3:bxDtzamr,bxDtzamr,bxDtzamr
make_dt_interval/4:bxDtzamr,bxDtzamr,bxDtzamr,bxDtzamr
make_interval/1:bxDtzamr
make_interval/2:bxDtzamr>*,ildns>bxDtzamr
make_timestamp/1:bildnsxtzamr
make_valid_utf8/1:amr
make_ym_interval/1:bxDtzamr
make_ym_interval/2:bxDtzamr>*,ildns>bxDtzamr
map_concat/1:bildnsxDtzar
map_concat/2:bildnsxDtzar>*,m>bildnsxDtzar
map_contains_key/2:bildnsxDtzar>*,m>m
map_entries/1:bildnsxDtzar
map_filter/2:bildnsxDtzar>*
map_from_arrays/2:bildnsxDtzmr>*,a>bildnsxDtzmr
map_from_entries/1:bildnsxDtzmr
map_keys/1:bildnsxDtzar
map_values/1:bildnsxDtzar
mask/1:bildnxDtzamr
mask/2:bildnxDtzamr>*,s>bildnxDtzamr
mask/3:bildnxDtzamr,bildnxDtzamr,bildnxDtzamr
mask/4:bildnxDtzamr,bildnxDtzamr,bildnxDtzamr,bildnxDtzamr
md5/1:bildnDtzamr
minute/1:bildnxamr
minute/2:bildnxamr>*
mod/2:bxDtzamr>*,ildns>bxDtzamr
month/1:bildnxamr
monthname/1:bildnxamr
months_between/2:bildnxamr>*,sDtz>bildnxamr
months_between/3:bildnxamr,bildnxamr,ildnxDtzamr
nanvl/2:bxDtzamr>*,ildns>bxDtzamr
negative/1:bxDtzamr
next_day/2:bildnxamr>*,sDtz>amr
octet_length/1:amr
overlay/3:xamr,xamr,bxDtzamr
overlay/4:xamr,xamr,bxDtzamr,bxDtzamr
parse_json/1:bildnxDtzamr
parse_url/2:bildnxDtzamr>*,s>bildnxDtzamr
pmod/2:bxDtzamr>*,ildns>bxDtzamr
position/2:bildnsxDtz>amr,amr>*
position/3:amr,amr,bxDtzamr
positive/1:bxDtzamr
pow/2:bxDtzamr>*,ildns>bxDtzamr
power/2:bxDtzamr>*,ildns>bxDtzamr
printf/1:amr
printf/2:amr>*
quarter/1:bildnxamr
quote/1:amr
radians/1:bxDtzamr
raise_error/1:amr
regexp/2:bildnsxDtz>amr,amr>*
regexp_count/2:bildnsxDtz>amr,amr>*
regexp_extract/2:bildnsxDtz>amr,amr>*
regexp_extract/3:amr,amr,bxDtzamr
regexp_extract_all/2:bildnsxDtz>amr,amr>*
regexp_extract_all/3:amr,amr,bxDtzamr
regexp_instr/2:bildnsxDtz>amr,amr>*
regexp_instr/3:amr,amr,bxDtzamr
regexp_like/2:bildnsxDtz>amr,amr>*
regexp_replace/3:amr,amr,amr
regexp_replace/4:amr,amr,amr,bxDtzamr
regexp_substr/2:bildnsxDtz>amr,amr>*
repeat/2:bildnsxDtz>bxDtzamr,amr>*
replace/2:bildnsxDtz>amr,amr>*
replace/3:amr,amr,amr
reverse/1:mr
right/2:bildnsxDtz>bxDtzamr,amr>*
rint/1:bxDtzamr
round/1:bxDtzamr
round/2:bxDtzamr>*,ildns>bxDtzamr
rpad/2:bildnsxDtz>bxDtzamr,amr>*
rpad/3:amr,bxDtzamr,amr
rtrim/1:amr
rtrim/2:bildnsxDtz>amr,amr>*
sec/1:bxDtzamr
second/1:bildnxamr
second/2:bildnxamr>*
sentences/1:amr
sentences/2:bildnsxDtz>amr,amr>*
sentences/3:amr,amr,amr
sha/1:bildnDtzamr
sha1/1:bildnDtzamr
sha2/2:bildnDtzamr>*,sx>bxDtzamr
shiftleft/2:bxDtzamr>*,ildns>bxDtzamr
shiftright/2:bxDtzamr>*,ildns>bxDtzamr
shiftrightunsigned/2:bxDtzamr>*,ildns>bxDtzamr
sign/1:bxDtzamr
signum/1:bxDtzamr
sin/1:bxDtzamr
sinh/1:bxDtzamr
size/1:bildnsxDtzr
smallint/1:xzamr
sort_array/1:bildnsxDtzmr
sort_array/2:bildnsxDtzmr>*
soundex/1:bildnxDtzamr
space/1:bxDtzamr
split/2:bildnsxDtz>amr,amr>*
split/3:amr,amr,bxDtzamr
split_part/3:amr,amr,bxDtzamr
sqrt/1:bxDtzamr
st_geogfromwkb/1:bildnDtzamr
st_geomfromwkb/1:bildnDtzamr
st_geomfromwkb/2:bildnDtzamr>*,sx>bxDtzamr
startswith/2:bildnsxDtz>amr,amr>*
str_to_map/1:bildnxDtzamr
str_to_map/2:bildnxDtzamr>*,s>bildnxDtzamr
str_to_map/3:bildnxDtzamr,bildnxDtzamr,bildnxDtzamr
substr/2:bildnsxDtz>bxDtzamr,amr>*
substr/3:amr,bxDtzamr,bxDtzamr
substring/2:bildnsxDtz>bxDtzamr,amr>*
substring/3:amr,bxDtzamr,bxDtzamr
substring_index/3:amr,amr,bxDtzamr
tan/1:bxDtzamr
tanh/1:bxDtzamr
theta_difference/2:bildnsDtzamr>*,x>bildnsDtzamr
theta_intersection/2:bildnsDtzamr>*,x>bildnsDtzamr
theta_sketch_estimate/1:bildnsDtzamr
theta_union/2:bildnsDtzamr>*,x>bildnsDtzamr
timestamp/1:xamr
timestamp_micros/1:bdnsxDtzamr
timestamp_millis/1:bdnsxDtzamr
timestamp_nanos/1:bdsxDtzamr
timestamp_seconds/1:bsxDtzamr
tinyint/1:xzamr
to_base32/1:bildnDtzamr
to_binary/1:amr
to_char/2:bamr>*,ildnsDtz>amr
to_date/1:amr
to_date/2:bildnsxDtz>amr,amr>*
to_number/2:bildnsxDtz>amr,amr>*
to_timestamp/1:amr
to_timestamp/2:bildnsxDtz>amr,amr>*
to_timestamp_ltz/1:amr
to_timestamp_ltz/2:bildnsxDtz>amr,amr>*
to_timestamp_ntz/1:amr
to_timestamp_ntz/2:bildnsxDtz>amr,amr>*
to_unix_timestamp/1:bildnxamr
to_unix_timestamp/2:bildnxamr>*,sDtz>bildnxDtzamr
to_utc_timestamp/2:bildnxamr>*,sDtz>amr
to_varchar/2:bamr>*,ildnsDtz>amr
to_variant_object/1:bildnsxDtz
to_xml/1:bildnsxDtzam
transform/2:bildnsxDtzmr>*
transform_values/2:bildnsxDtzar>*
translate/3:amr,amr,amr
trim/1:amr
trim/2:bildnsxDtz>amr,amr>*
trunc/2:bildnxamr>*,sDtz>amr
try_parse_json/1:bildnxDtzamr
try_to_date/1:amr
try_to_date/2:bildnsxDtz>amr,amr>*
try_to_number/2:bildnsxDtz>amr,amr>*
try_to_timestamp/1:amr
try_to_timestamp/2:bildnsxDtz>amr,amr>*
try_validate_utf8/1:amr
tuple_difference_double/2:bildnsDtzamr>*,x>bildnsDtzamr
tuple_difference_integer/2:bildnsDtzamr>*,x>bildnsDtzamr
tuple_difference_theta_double/2:bildnsDtzamr>*,x>bildnsDtzamr
tuple_difference_theta_integer/2:bildnsDtzamr>*,x>bildnsDtzamr
tuple_intersection_double/2:bildnsDtzamr>*,x>bildnsDtzamr
tuple_intersection_integer/2:bildnsDtzamr>*,x>bildnsDtzamr
tuple_intersection_theta_double/2:bildnsDtzamr>*,x>bildnsDtzamr
tuple_intersection_theta_integer/2:bildnsDtzamr>*,x>bildnsDtzamr
tuple_sketch_estimate_double/1:bildnsDtzamr
tuple_sketch_estimate_integer/1:bildnsDtzamr
tuple_sketch_summary_double/1:bildnsDtzamr
tuple_sketch_summary_double/2:bildnsDtzamr>*,x>bildnxDtzamr
tuple_sketch_summary_integer/1:bildnsDtzamr
tuple_sketch_summary_integer/2:bildnsDtzamr>*,x>bildnxDtzamr
tuple_sketch_theta_double/1:bildnsDtzamr
tuple_sketch_theta_integer/1:bildnsDtzamr
tuple_union_double/2:bildnsDtzamr>*,x>bildnsDtzamr
tuple_union_integer/2:bildnsDtzamr>*,x>bildnsDtzamr
tuple_union_theta_double/2:bildnsDtzamr>*,x>bildnsDtzamr
tuple_union_theta_integer/2:bildnsDtzamr>*,x>bildnsDtzamr
ucase/1:amr
unbase64/1:amr
unhex/1:amr
unix_date/1:bildnsxtzamr
unix_micros/1:bildnsxDamr
unix_millis/1:bildnsxDamr
unix_seconds/1:bildnsxDamr
unix_timestamp/1:bildnxamr
unix_timestamp/2:bildnxamr>*,sDtz>bildnxDtzamr
upper/1:amr
url_decode/1:amr
url_encode/1:amr
validate_utf8/1:amr
vector_cosine_similarity/2:bildnsxDtzmr>*,a>bildnsxDtzmr
vector_inner_product/2:bildnsxDtzmr>*,a>bildnsxDtzmr
vector_l2_distance/2:bildnsxDtzmr>*,a>bildnsxDtzmr
vector_norm/1:bildnsxDtzmr
vector_normalize/1:bildnsxDtzmr
weekday/1:bildnxamr
weekofyear/1:bildnxamr
width_bucket/4:bxDtzamr,bxDtzamr,bxDtzamr,bxDtzamr
xxhash64/1:m
xxhash64/2:bildnsxDtzar>m,m>*
year/1:bildnxamr
"""  # end of the table
