"""Redaction: secrets are cut out of a text before it is stored. Keys, tokens, passwords, cookies, private keys.

    text                                           result
    rate limit reached for gpt-4o in 20 s          unchanged, the same object
    request_id req_011CSHoEeqs5C35K2UUqR7Fy        unchanged: an id, not a secret
    api_key=abcd1234                               api_key=<secret:named>
    {"password": "hunter2"}                        {"password": "<secret:password>"}
    Authorization: Bearer eyJhbGci…                Authorization: <secret:authorization>
    --token hunter2 --verbose                      --token <secret:argument> --verbose
    postgres://bob:hunter2@db/x                    postgres://bob:<secret:password>@db/x
    AKIAIOSFODNN7EXAMPLE                           <secret:aws-key-id>
    sk-ant-api03-…                                 <secret:anthropic-key>

It runs on every failure, so a cheap prefilter decides whether the patterns run at all. The prefilter asks two
questions of the whole text, each answered by one `bytes.translate` in C and one search:

1. Does a name that takes a secret value occur (`key=`, `token:`, `password`, `--flag`, `user:password@host`)?
   Letters become classes and common letters are dropped, so `api_key=abcd` leaves `xxkaxcdx`, in which `ka` is
   "the k of key, then an assignment". See `_NAMES`.
2. Does an unbroken run of 24 or more key characters occur that is no harmless name, id or hash? See `_RUNS`.

With two answers of no, the text is returned as it is. All patterns take linear time on any text: what they repeat
is possessive or bounded, and no part repeats over another's characters. They read the text as ASCII, one character
for each, so that a match has the same position in both.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.classify.lazy_regex import Pattern

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    _Span = tuple[int, int, str]  # from, to, kind

# After so many secrets of one kind the rest of the text goes too: a wall of bait must not cost more.
_MANY: Final = 500


def redacted(text: str) -> str:
    """The text with `<secret:what>` for each secret in it; the very same object if there is none."""
    flat = text.encode("ascii", "replace")
    names = flat.translate(_NAMES, _DROPPED).decode()
    if _sign(names):
        return _cut(text, flat)
    runs = flat.translate(_RUNS).decode()
    return _cut(text, flat) if _RUN in runs and _has_strange_run(flat, runs) else text


def redacted_headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    """The headers without their secrets: by name the whole value, else as in text; the same object if unchanged."""
    told = "\n".join(headers.values())
    if redacted(told) is told and not any(map(_names_a_secret, headers)):
        return headers  # mostly: looked at once, not one by one
    cut = {name: "<secret:header>" if _names_a_secret(name) else redacted(value) for name, value in headers.items()}
    return cut if any(cut[name] != value for name, value in headers.items()) else headers


_SECRET_HEADERS: Final = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie", "apikey"})
_SECRET_ENDINGS: Final = ("-token", "-secret", "-key", "-password", "-authorization", "-signature", "-credential")


@lru_cache(maxsize=512)  # the same few names come with every response
def _names_a_secret(name: str) -> bool:
    name = f"-{name}".lower().replace("_", "-")
    return name[1:] in _SECRET_HEADERS or name.endswith(_SECRET_ENDINGS)


# The two fingerprints. Each is one translation of the bytes, in C.


def _table(others: str, **classes: str) -> bytes:
    """A table for bytes.translate: the characters of each class become the first letter of its name."""
    table = bytearray(others.encode() * 256)
    for name, members in classes.items():
        for member in members:
            table[ord(member)] = ord(name[0])
    return bytes(table)


# First: a name that takes a value. Each such name has a rare letter in it, and after that only letters dropped
# here: [k]ey, to[k]en, coo[k]ie leave "ka" (key, assign), COO[K]IE "kia", [s]e[c]ret leaves "sca", authori[z]ation "za" or, in
# capitals, "zBia", pass[w]or[d] and p[w][d] "wda". Quotes, backslashes and blanks are dropped too, so JSON, escaped
# JSON and `key = value` look alike. AKIA and ASIA, the only shapes too short for a run, leave "BkiB" and "BsiB";
# "--" (a flag, the line around a private key) "ff", user:password@host and ?a=b&sig=c a "u".
_NAMES: Final = _table(
    "x", key="kK", cred="cC", z="zZ", s="sS", B="A", i="I", d="dD", w="wW", assign=":=%", flag="-", u="@&"
)
_DROPPED: Final = b"eynirtaoEYNRTO\"'\\ \t"
_sign: Final = re.compile("ki?a|z(?:Bi)?a|sca|wda|ff|u|B[ks]iB").search

# Second: a long unbroken run. No other key that is known by its shape is shorter.
_WORD: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_RUNS: Final = _table(" ", run=_WORD)
_RUN: Final = "r" * 24

# A run that is no secret: words and numbers (a model, an error code, a header, a file), a NAME_IN_CAPITALS, a
# ClassOrMethod (humps of three letters and more: nothing random looks so), a line drawn, an id, a UUID, a hash.
# Not after "Bearer": there it may be one.
_HARMLESS: Final = Pattern(
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
_HARMLESS_RUNS: Final = 8  # are looked at; with more, the patterns are the cheaper way


def _has_strange_run(flat: bytes, runs: str) -> bool:
    """Is any long run none of the harmless?"""
    end = 0
    for _ in range(_HARMLESS_RUNS):
        at = runs.find(_RUN, end)
        if at < 0:
            return False
        harmless = _HARMLESS.match(flat, at)
        if harmless is None:
            return True
        end = harmless.end()
    return True


# The patterns: keys that are known by their shape.
#
# A key is found by a rare character in it, not by its first: a search that stops at every s or g would be
# five times slower. So each row has what stands before that character, and the pattern from it on. "+" before
# the head: the head is too common to be found inside a word (task-…), so it must begin one.

_KEYS: Final = (
    ("anthropic-key", "s", r"k-ant-[\w-]{10,}+"),
    ("openrouter-key", "+s", r"k-or-[\w-]{16,}+"),
    ("langfuse-key", "+[sp]", r"k-lf-[\w-]{16,}+"),
    # OpenAI, with all who copied its shape. Not words joined by dashes.
    ("openai-key", "+s", r"k-(?!(?:[a-z]{1,16}[_-]){0,8}[a-z]{1,16}(?![\w-]))[\w-]{20,}+"),
    ("cerebras-key", "+cs", r"k-[a-z0-9]{20,}+"),
    ("groq-key", "gs", r"k_[A-Za-z0-9]{20,}+"),
    ("pinecone-key", "pcs", r"k_[\w-]{20,}+"),
    ("stripe-key", "+[sr]", r"k_(?:live|test)_[A-Za-z0-9]{10,}+"),
    ("elevenlabs-key", "+s", r"k_[0-9a-f]{32,}+"),
    ("xai-key", "+", r"xai-[A-Za-z0-9]{20,}+"),
    ("perplexity-key", "ppl", r"x-[A-Za-z0-9]{20,}+"),
    ("slack-token", "xo", r"x[a-z]-[\w.-]{10,}+"),
    ("slack-token", "+", r"xapp-[\w-]{16,}+"),
    ("google-key", "AI", r"za[\w-]{30,}+"),
    ("google-token", "+ya2", r"9\.[\w-]{16,}+"),
    ("google-secret", "GOCSP", r"X-[\w-]{20,}+"),
    ("aws-key-id", "AK", r"IA[A-Z0-9]{16}"),
    ("aws-key-id", "AS", r"IA[A-Z0-9]{16}"),
    # Also what is left of one that was cut off, and JSON in base64, which may hold anything.
    ("jwt", "ey", r"J[\w-]{16,}+(?:\.[\w-]++){0,4}+"),
    ("twilio-key", "+S", r"K[0-9a-f]{32}"),
    ("sendgrid-key", "+S", r"G\.[\w-]{16,}+\.[\w-]{16,}+"),
    ("databricks-token", "da", r"pi[0-9a-f]{32}(?:-[0-9])?"),
    ("nvidia-key", "nva", r"pi-[\w-]{20,}+"),
    ("pypi-token", "py", r"pi-[\w-]{20,}+"),
    ("gitlab-token", "gl", r"pat-[\w.-]{20,}+"),
    ("tavily-key", "tvl", r"y-[\w-]{20,}+"),
    ("mailgun-key", "+ke", r"y-[0-9a-f]{32}"),
    # What stands before is the bot's name; it may stay.
    ("telegram-token", "", r":(?<=[0-9]{8}:)[\w-]{35}(?![\w-])"),
    ("discord-token", "", r"\.(?<=[\w-]{24}\.)[\w-]{6}\.[\w-]{27,}+"),
    ("vault-token", "+hvs", r"\.[\w-]{20,}+"),
    ("github-token", "gh[pousr]", r"_[A-Za-z0-9]{20,}+"),
    ("github-token", "github_pat", r"_\w{20,}+"),
    ("huggingface-token", "+hf", r"_[A-Za-z0-9]{20,}+"),
    ("replicate-token", "+r8", r"_[A-Za-z0-9]{20,}+"),
    ("fireworks-key", "+fw", r"_[A-Za-z0-9]{20,}+"),
    ("together-key", "tg", r"p_v1_[\w-]{20,}+"),
    ("npm-token", "+npm", r"_[A-Za-z0-9]{20,}+"),
    ("digitalocean-token", "do[opr]_v1", r"_[0-9a-f]{32,}+"),
    ("langsmith-key", "lsv2_[ps][tk]", r"_\w{20,}+"),
    ("linear-key", "lin_api", r"_[A-Za-z0-9]{20,}+"),
    ("notion-token", "+ntn", r"_[A-Za-z0-9]{20,}+"),
    ("notion-token", "+secret", r"_[A-Za-z0-9]{32,}+"),
    ("vercel-token", "+vc[piark]", r"_[A-Za-z0-9]{20,}+"),
    ("e2b-key", "+e2b", r"_[0-9a-f]{20,}+"),
    ("stripe-secret", "whsec", r"_[A-Za-z0-9]{20,}+"),
    ("supabase-key", "+sbp", r"_[0-9a-f]{32,}+"),
    ("docker-token", "dckr_", r"pat_[\w-]{20,}+"),
    ("shopify-token", "shp[acps][ats]", r"_[0-9a-fA-F]{32}"),
    ("jina-key", "jina", r"_[A-Za-z0-9]{20,}+"),
)


class _Keys(NamedTuple):
    pattern: re.Pattern[str]
    kinds: tuple[str, ...]  # by the number of the group that matched
    heads: tuple[int, ...]  # how much of the key stands before the match


# What all keys with this rare character have in common: so that snake_case is passed over quickly.
_FIRST: Final = {"_": "(?=[A-Za-z0-9]{10})", "k": "(?<=[spr]k)"}


@lru_cache(maxsize=1)  # made when the first strange run is seen: compiling takes longer than starting
def _all_keys() -> tuple[_Keys, ...]:
    return tuple(_keys())


def _keys() -> Iterator[_Keys]:
    """One pattern for each rare character."""
    rows: dict[str, list[tuple[str, int, str]]] = {}
    for kind, marked, tail in _KEYS:
        head = marked.removeprefix("+")
        rare = tail[:2] if tail[0] == "\\" else tail[0]
        word = re.sub(r"[^\w-].*", "", tail.removeprefix(rare))
        # What is cheap to refuse comes first: the rest of the word, then what stands before it.
        found = f"{word}(?<={head}{rare}{word})"
        if head != marked:  # after no letter or digit, but for one that ends an escape: \n, %20
            before = f"{head}{rare}{word}"
            found += rf"(?:(?<![A-Za-z0-9]{before})|(?<=\\[nrtbf]{before})|(?<=%[0-9A-Fa-f]{{2}}{before}))"
        width = len(re.sub(r"\[.*?\]", "x", head))
        rows.setdefault(rare, []).append((kind, width, f"{found}({tail.removeprefix(rare + word)})"))
    for rare, group in rows.items():
        kinds, heads, patterns = zip(*group, strict=True)
        yield _Keys(re.compile(f"{rare}{_FIRST.get(rare, '')}(?:{'|'.join(patterns)})", re.ASCII), kinds, heads)


# The patterns: secrets that are known by their name. They read the text in small letters, and `v` is the secret.

_QUOTE: Final = r"\\{0,8}+[\"']"  # in escaped JSON with its backslashes
_BLANK: Final = r"[ \t]{0,4}+"
# `=`, `=>`, `: `, `": "`, `: str = `, `%3D`. `t`: no bare colon, which prose has too ("invalid token: identifier").
_ASSIGN: Final = (
    rf"(?:(?P<t>{_QUOTE}{_BLANK}[:=]|{_BLANK}(?:: ?str ?)?+=|%3[ad])|{_BLANK}:)>?{_BLANK}[\[(]?+(?:b(?=[\"']))?+"
)
# Or the comma between the name and the value of a header in a list; but it may be a list of names.
_LISTED: Final = rf"(?:{_ASSIGN}|{_QUOTE}, ?(?:b(?=[\"']))?+)"
_CHAR: Final = r"[^\s\"'\\&,;<>(){}\[\]|]"
# No word of prose: with a digit in it, or very long
_RANDOM: Final = rf"(?:(?={_CHAR}{{8}})[^\s\"'\\&,;<>(){{}}\[\]|0-9]{{0,39}}+[0-9]|{_CHAR}{{16}})"
# After "Bearer" there is more prose
_BEARER: Final = r"(?:(?=[a-z._~+/-]{0,39}+[0-9=])[a-z0-9._~+/=-]{8}|[a-z0-9._~+/=-]{24})[a-z0-9._~+/=-]*+"
# What stands for no value, or for one that is elsewhere: the whole of it, not the beginning of a password
_NOTHING: Final = (
    r"(?!<secret:|\$[{(]|\{\{|(?:\*++|none|null|nil|true|false|required|missing|invalid|incorrect|must|is|not|empty"
    r"|str|string|unset|os|self|settings|config|env|args|getenv)(?(q)\\*+[\"']|(?:[\s\"'\\,;.)}\]]|$)))"
)
# To the closing quote, over others within and escaped ones; JSON and repr have no line break in a string.
_QUOTED: Final = r"(?:[^\\\"'\n]++|(?!(?P=q))(?:\\++[\"']?|[\"']))*+"


def _value(bare: str, check: str = "") -> str:
    return rf"(?P<q>{_QUOTE})?+{check}{_NOTHING}(?P<v>(?(q){_QUOTED}|(?:{bare})))"


# What stands before "key" when it opens something (api, access, secret, private, auth, account, subscription,
# signing, master, license, admin, client, service), and not when it is a column's or a cache's.
_OPENS: Final = "(?:api|ess|ret|ate|uth|unt|ion|ing|ter|nse|min|ent|ice)"
_NEVER: Final = "(?P<s>(?!))?"
# Names of secrets by their marks, and (not `s`) names that are often harmless: then the value must look like a secret.
_NAME: Final = {
    "key": rf"key(?=[\"'\\ \t:=%])(?:(?P<s>(?<={_OPENS}key)|(?<={_OPENS}[_ .-]key))|(?<=[?&;]key)|(?<=u0026key))",
    "token": "token(?P<s>(?<=[a-z0-9_-]token))?",
    "secret": "secret(?<!<secret)(?P<s>)",
    "sig": f"sig(?:nature)?+{_NEVER}",
    "credential": f"credential(?<=[_-]credential)s?+{_NEVER}",
}
# A variable that is passed on is none: `token=self.token`, in the source lines of a traceback.
_CHECK: Final = (
    rf"(?(t)(?(s)(?={_CHAR}{{6}})|(?={_RANDOM}))|(?={_RANDOM}))"
    r"(?!(?:[a-z]{1,24}[_.]){0,4}(?:key|token|secret)(?![a-z0-9=]))"
)
_SCHEMES: Final = "bearer|basic|token|apikey|key|negotiate"
_PARTED: Final = "digest|oauth|hawk|aws4-hmac-sha256"  # schemes with many parts after them


class _Row(NamedTuple):
    kind: str
    mark: str  # the pattern runs only on a text with it, and begins with letters: those C looks for by itself
    pattern: str


@lru_cache(maxsize=32)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


_ROWS: Final = (
    # The body goes with it; to the end of the text if that was cut off.
    _Row(
        "private-key",
        "private",
        r"(?P<v>-----begin [a-z0-9 ]{0,40}private key[a-z ]{0,8}-----"
        r"(?:[^-]++|-(?!----end ))*+(?:-----end [a-z0-9 ]{0,60}-----)?)",
    ),
    # Of an address, only the password: user and host say what was tried.
    _Row("password", "@", r":\\?/\\?/[^\s/?#@:\"'<>\\]{0,128}:(?P<v>[^\s/?#@\"'<>\\]{1,1024})@"),
    _Row(
        "authorization",
        "authorization",
        rf"authorization{_LISTED}"
        + _value(
            rf"(?:{_PARTED}) [^\r\n\\]++|(?:(?:{_SCHEMES}) {{1,4}})?+{_CHAR}++",
            rf"(?=(?:{_PARTED}) |(?:{_SCHEMES}) {{1,4}}{_CHAR}{{6}}|{_RANDOM})",
        ),
    ),
    _Row(
        "cookie",
        "cookie",
        rf"cookie{_LISTED}(?=(?:{_QUOTE})?[^\s\"'\\=]{{1,80}}=)" + _value(r"(?:=\"[^\"\r\n]*+\"|[^\r\n\"'\\])*+"),
    ),
    _Row("bearer", "bearer", rf"bearer(?:[ ]{{1,4}}|%20|\+)(?P<v>{_BEARER})"),
    _Row("basic", "basic", rf"basic(?:[ ]{{1,4}}|%20|\+)(?P<v>{_BEARER})"),
    *(
        _Row("password", name, rf"{name}{_ASSIGN}" + _value(r"[^\s\"'\\]++"))
        for name in ("password", "passwd", "passphrase", "pwd")
    ),
    *(_Row("named", mark, name + _LISTED + _value(f"{_CHAR}++", _CHECK)) for mark, name in _NAME.items()),
    # --password hunter2, also as a list of arguments. Not a word of prose: "use --token instead".
    _Row(
        "argument",
        "--",
        r"--[a-z0-9]++(?:-[a-z0-9]++)*+"
        r"(?:(?<=password)|(?<=passwd)|(?<=passphrase)|(?<=-pwd)|(?<=token)|(?<=secret)|(?<=api-key)|(?<=apikey)|(?<=access-key)|(?<=secret-key))"
        rf"(?:[ ]{{1,4}}|{_QUOTE},[ ]?)(?=(?:{_QUOTE})?(?:[a-z]{{0,39}}[^a-z\s\"'\\.,:;)-]|{_CHAR}{{16}}))"
        + _value(r"[^\s\"'\\]++"),
    ),
)


def _cut(text: str, flat: bytes) -> str:
    spans = _found(flat)
    if not spans:
        return text
    parts: list[str] = []
    at = 0
    # Of two that begin together the longer; of two alike the one that was found by its shape, which says more.
    for start, end, kind in sorted(spans, key=lambda span: (span[0], -span[1])):
        if end > max(start, at):
            parts += (text[at:start], f"<secret:{kind}>")
            at = end
    return "".join((*parts, text[at:]))


def _found(flat: bytes) -> list[_Span]:
    """Where secrets stand in the text, and of what kind."""
    spans: list[_Span] = []
    plain = flat.decode()
    if "AKIA" in plain or "ASIA" in plain or _has_strange_run(flat, flat.translate(_RUNS).decode()):
        for pattern, kinds, heads in _all_keys():
            for count, match in enumerate(pattern.finditer(plain)):
                if count == _MANY:
                    spans.append((match.start(), len(plain), "rest"))
                    break
                row = (match.lastindex or 0) - 1
                spans.append((match.start() - heads[row], match.end(), kinds[row]))
    small = plain.lower()
    for kind, mark, pattern_text in _ROWS:
        if mark in small:
            for count, match in enumerate(_compiled(pattern_text).finditer(small)):
                if count == _MANY:
                    spans.append((match.start(), len(small), "rest"))
                    break
                spans.append((*match.span("v"), kind))
    return spans
