"""Redact secrets in a text before it is stored: keys, tokens, passwords, cookies, private keys.

    text                                           result
    rate limit reached for gpt-4o in 20 s          unchanged, the same object
    request_id req_011CSHoEeqs5C35K2UUqR7Fy        unchanged: an id, not a secret
    api_key=abcd1234                               api_key=<secret:named>
    {"password": "hunter2"}                        {"password": "<secret:password>"}
    Authorization: Bearer eyJhbGci…                Authorization: <secret:authorization>
    --token hunter2 --verbose                      --token <secret:argument> --verbose
    postgres://bob:hunter2@db/x                    postgres://bob:<secret:password>@db/x
    curl -u bob:hunter2 https://x                  curl -u bob:<secret:password> https://x
    <password>hunter2</password>                   <password><secret:password></password>
    ('x-api-key', 'abcd1234')                      ('x-api-key', '<secret:named>')
    https://hooks.slack.com/services/T0/B0/x9…     https://hooks.slack.com/services/<secret:webhook>
    AKIAIOSFODNN7EXAMPLE                           <secret:aws-key-id>
    sk-ant-api03-…                                 <secret:anthropic-key>

Redaction runs on every failure, so a cheap prefilter decides whether the patterns run at all. The prefilter makes three
tests on the whole text, each with one `bytes.translate` in C and one search, and looks for two rare words:

1. Does a name that takes a secret value occur (`key=`, `token:`, `password`, `--flag`, `user:password@host`)?
   Letters become classes and common letters are dropped, so `api_key=abcd` leaves `xxkaxcdx`, in which `ka` is
   "the k of key, then an assignment". See `_NAME_CLASSES`.
2. Does an unbroken run of 24 or more key characters occur that is not a harmless name, id or hash? See `_RUN_CLASSES`.
3. Does a run of 40 or more base64 characters occur, which may be an AWS secret key? See `_BASE64_CLASSES`.

If no test succeeds, the text is returned unchanged. All patterns take linear time on any text: their quantifiers
are possessive or bounded, and no two adjacent quantifiers match the same characters. The patterns run on an ASCII copy
of the text with one character for each original character, so match positions are valid in both.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Final

from rung.core.classify.key_shapes import key_patterns
from rung.core.classify.lazy_regex import LazyPattern
from rung.core.classify.named_secrets import NAMED_SECRETS, compiled

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    _Span = tuple[int, int, str]  # start, end, kind

# After this many secrets of one kind the rest of the text is redacted too: hostile input must not cost more.
_MAX_MATCHES: Final = 500


def redacted(text: str) -> str:
    """Return the text with each secret replaced by `<secret:kind>`; the same object if there is none."""
    flat = text.encode("ascii", "replace")
    names = flat.translate(_NAME_CLASSES, _DROPPED).decode()
    # "axx" is "://", and "cxx" is "curl": most texts have neither, and a search in the short names is cheap.
    if _has_secret_name(names) or ("axx" in names and b"hook" in flat) or ("cxx" in names and b"curl" in flat):
        return _replace_secrets(text, flat)
    if _LONG_RUN not in flat.translate(_ANY_RUN_CLASSES).decode():
        return text  # the runs of the other two tests are longer, or have fewer characters to choose from
    runs = flat.translate(_RUN_CLASSES).decode()
    if _LONG_RUN in runs and _has_suspicious_run(flat, runs):
        return _replace_secrets(text, flat)
    return _replace_secrets(text, flat) if _LONG_BASE64 in flat.translate(_BASE64_CLASSES).decode() else text


def secrets_in(text: str) -> list[str]:
    """Return the secrets that `redacted` would replace, in the order of the text."""
    if redacted(text) is text:
        return []
    return [text[start:end] for start, end, _ in _disjoint(_secret_spans(text.encode("ascii", "replace")))]


def redacted_headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Return the headers redacted, by header name and by value; the same object if nothing changed."""
    values = "\n".join(headers.values())
    if redacted(values) is values and not any(map(_is_secret_header, headers)):
        return headers  # the common case: one check for all values
    clean = {name: "<secret:header>" if _is_secret_header(name) else redacted(value) for name, value in headers.items()}
    return clean if any(clean[name] != value for name, value in headers.items()) else headers


_SECRET_HEADERS: Final = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie", "apikey"})
_SECRET_ENDINGS: Final = ("-token", "-secret", "-key", "-password", "-authorization", "-signature", "-credential")


@lru_cache(maxsize=512)  # responses share a small set of header names
def _is_secret_header(name: str) -> bool:
    name = f"-{name}".lower().replace("_", "-")
    return name[1:] in _SECRET_HEADERS or name.endswith(_SECRET_ENDINGS)


# -- prefilter: two fingerprints, each one translation of the bytes in C


def _table(others: str, **classes: str) -> bytes:
    """Build a table for `bytes.translate` that maps the characters of each class to the first letter of its name."""
    table = bytearray(others.encode() * 256)
    for name, members in classes.items():
        for member in members:
            table[ord(member)] = ord(name[0])
    return bytes(table)


# Test 1: a name that takes a value. Each such name has a rare letter that is followed only by letters dropped here:
# [k]ey, to[k]en, coo[k]ie leave "ka" (key, assign), COO[K]IE "kia", [s]e[c]ret "sca", authori[z]ation "za" or, in
# capitals, "zBia", pass[w]or[d] and p[w][d] "wda", pa[ss]ph[r]a[s]e "ssxxsa" or "ssxxBsa". A comma assigns in a list of
# headers, ">" in XML. Quotes, backslashes and blanks are dropped too, so JSON, escaped
# JSON and `key = value` leave the same letters. AKIA and ASIA, the only key shapes too short for test 2, leave "BkiB"
# and "BsiB"; "--" (a flag, the line around a private key) leaves "ff"; user:password@host and ?a=b&sig=c leave "u".
_NAME_CLASSES: Final = _table(
    "x", key="kK", cred="cC", z="zZ", s="sS", B="A", i="I", d="dD", w="wW", assign=":=%,>", flag="-", u="@&"
)
_DROPPED: Final = b"eynirtaoEYNRTO\"'\\ \t"
_has_secret_name: Final = re.compile("ki?a|z(?:Bi)?a|sca|wda|ssxxB?sa|ff|u|B[ks]iB").search

# Test 2: a long unbroken run. No other key in `key_shapes` is shorter.
_RUN_CHARS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_RUN_CLASSES: Final = _table(" ", run=_RUN_CHARS)
_LONG_RUN: Final = "r" * 24

# Test 3: the 40 base64 characters of an AWS secret key, with digits and letters of both cases in random order.
_BASE64_CLASSES: Final = _table(" ", run=_RUN_CHARS[:-2] + "/+")
_LONG_BASE64: Final = "r" * 40
_ANY_RUN_CLASSES: Final = _table(" ", run=_RUN_CHARS + "/+")  # of both tests: most texts fail them together
_BASE64_WORD: Final = LazyPattern(rb"(?<![0-9A-Za-z/+_-])[0-9A-Za-z/+]{40}+(?![0-9A-Za-z/+=_-]|\.[0-9A-Za-z])")
_CASES: Final = _table("/", A=_RUN_CHARS[:26], a=_RUN_CHARS[26:52], n=_RUN_CHARS[52:62])
_MIN_CASE_CHANGES: Final = 16  # of 39; random keys have 25, give or take 3; paths and names have fewer


def _looks_like_aws_secret(word: bytes) -> bool:
    cases = word.translate(_CASES)
    return {*b"Aan"} <= {*cases} and sum(map(int.__ne__, cases, cases[1:])) >= _MIN_CASE_CHANGES


# A run that is not a secret: words and numbers (a model, an error code, a header, a file), a NAME_IN_CAPITALS, a
# ClassOrMethod (humps of three or more letters do not occur in random keys), a ruled line, an id, a UUID, a hash.
# Not after "Bearer", where any of these may be a token.
_HARMLESS: Final = LazyPattern(
    rb"(?<!earer )(?:"
    rb"(?:req|msg|toolu|call|chatcmpl|resp|run|batch|file|gen|org|user|rs|fc)[_-][0-9A-Za-z]{16,64}+"
    rb"|(?:[a-z]{1,16}+[0-9]{0,4}+|[0-9]{1,8}+)(?:[_-]{1,2}+(?:[a-z]{1,16}+[0-9]{0,4}+|[0-9]{1,8}+))*+"
    rb"|[A-Z]{2,16}+(?:[_-][A-Z]{1,16}+[0-9]{0,2}+)++"
    rb"|_?[a-z]{0,16}+(?:[A-Z]{1,6}[a-z]{2,16}+)++(?:[_-](?:[A-Z]{1,6}[a-z]{2,16}+)++)*+"
    rb"|([0-9A-Za-z_-])\1{23,}+"
    rb"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    rb"|[0-9a-f]{24,64}+"
    rb")(?![0-9A-Za-z_-])"
)
_MAX_HARMLESS_RUNS: Final = 8  # runs that are checked; with more, running the patterns is cheaper


def _has_suspicious_run(flat: bytes, runs: str) -> bool:
    """Return whether any long run is not known to be harmless."""
    end = 0
    for _ in range(_MAX_HARMLESS_RUNS):
        at = runs.find(_LONG_RUN, end)
        if at < 0:
            return False
        harmless = _HARMLESS.match(flat, at)
        if harmless is None:
            return True
        end = harmless.end()
    return True


def _replace_secrets(text: str, flat: bytes) -> str:
    spans = _secret_spans(flat)
    if not spans:
        return text
    parts: list[str] = []
    at = 0
    for start, end, kind in _disjoint(spans):
        parts += (text[at:start], f"<secret:{kind}>")
        at = end
    return "".join((*parts, text[at:]))


def _disjoint(spans: list[_Span]) -> Iterator[_Span]:
    """Yield the spans in order. An overlapping one is cut off at the end of the one before it."""
    at = 0
    # Of two spans with equal start the longer wins; of two equal ones the key shape, which is more specific.
    for start, end, kind in sorted(spans, key=lambda span: (span[0], -span[1])):
        if end > max(start, at):
            yield max(start, at), end, kind
            at = end


def _secret_spans(flat: bytes) -> list[_Span]:
    """Return the position and kind of each secret in the text."""
    spans: list[_Span] = []
    plain = flat.decode()
    if "AKIA" in plain or "ASIA" in plain or _has_suspicious_run(flat, flat.translate(_RUN_CLASSES).decode()):
        for pattern, kinds, heads in key_patterns():
            for count, match in enumerate(pattern.finditer(plain)):
                if count == _MAX_MATCHES:
                    spans.append((match.start(), len(plain), "rest"))
                    break
                row = (match.lastindex or 0) - 1
                spans.append((match.start() - heads[row], match.end(), kinds[row]))
    if _LONG_BASE64 in flat.translate(_BASE64_CLASSES).decode():
        words = (word for word in _BASE64_WORD.finditer(flat) if _looks_like_aws_secret(word[0]))
        spans += [(*word.span(), "aws-secret") for word in islice(words, _MAX_MATCHES)]
        spans += [(word.start(), len(plain), "rest") for word in islice(words, 1)]
    lowered = plain.lower()
    for kind, mark, pattern_text in NAMED_SECRETS:
        if mark in lowered:
            for count, match in enumerate(compiled(pattern_text).finditer(lowered)):
                if count == _MAX_MATCHES:
                    spans.append((match.start(), len(lowered), "rest"))
                    break
                spans.append((*match.span("v"), kind))
    return spans
