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
from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.classify.lazy_regex import LazyPattern

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
    runs = flat.translate(_RUN_CLASSES).decode()
    if _LONG_RUN in runs and _has_suspicious_run(flat, runs):
        return _replace_secrets(text, flat)
    return _replace_secrets(text, flat) if _LONG_BASE64 in flat.translate(_BASE64_CLASSES).decode() else text


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

# Test 2: a long unbroken run. No other key in `_KEY_SHAPES` is shorter.
_RUN_CHARS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_RUN_CLASSES: Final = _table(" ", run=_RUN_CHARS)
_LONG_RUN: Final = "r" * 24

# Test 3: the 40 base64 characters of an AWS secret key, with digits and letters of both cases in random order.
_BASE64_CLASSES: Final = _table(" ", run=_RUN_CHARS[:-2] + "/+")
_LONG_BASE64: Final = "r" * 40
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


# -- patterns: keys recognised by their shape
#
# A key is searched by a rare character in it, not by its first one: a search that stops at every s or g is five times
# slower. So each row has the head before that character, and the pattern from the character on. A "+" before the head
# means that the head is too common inside words (task-…) and must start a word.

_KEY_SHAPES: Final = (
    ("anthropic-key", "s", r"k-ant-[\w-]{10,}+"),
    ("openrouter-key", "+s", r"k-or-[\w-]{16,}+"),
    ("langfuse-key", "+[sp]", r"k-lf-[\w-]{16,}+"),
    # OpenAI, and all providers that copied its format. Not words joined by dashes.
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
    # Also a truncated token, and any JSON in base64, which may contain secrets.
    ("jwt", "ey", r"J[\w-]{16,}+(?:\.[\w-]++){0,4}+"),
    ("twilio-key", "+S", r"K[0-9a-f]{32}"),
    ("sendgrid-key", "+S", r"G\.[\w-]{16,}+\.[\w-]{16,}+"),
    ("databricks-token", "da", r"pi[0-9a-f]{32}(?:-[0-9])?"),
    ("nvidia-key", "nva", r"pi-[\w-]{20,}+"),
    ("pypi-token", "py", r"pi-[\w-]{20,}+"),
    ("gitlab-token", "gl", r"pat-[\w.-]{20,}+"),
    ("tavily-key", "tvl", r"y-[\w-]{20,}+"),
    ("mailgun-key", "+ke", r"y-[0-9a-f]{32}"),
    # The digits before the colon are the bot's id, which is not secret.
    ("telegram-token", "", r":(?<=[0-9]{8}:)[\w-]{35}(?![\w-])"),
    ("discord-token", "", r"\.(?<=[\w-]{24}\.)[\w-]{6}\.[\w-]{27,}+"),
    ("discord-token", "+mfa", r"\.[\w-]{60,}+"),
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


class _KeyPattern(NamedTuple):
    pattern: re.Pattern[str]
    kinds: tuple[str, ...]  # by index of the matching group
    heads: tuple[int, ...]  # characters of the key before the match


# A cheap guard shared by all keys with this rare character, so that snake_case is skipped quickly.
_RARE_CHAR_GUARD: Final = {"_": "(?=[A-Za-z0-9]{10})", "k": "(?<=[spr]k)"}


@lru_cache(maxsize=1)  # lazy: compiling takes longer than starting the process
def _key_patterns() -> tuple[_KeyPattern, ...]:
    return tuple(_build_key_patterns())


def _build_key_patterns() -> Iterator[_KeyPattern]:
    """Build one pattern for each rare character."""
    rows: dict[str, list[tuple[str, int, str]]] = {}
    for kind, marked, tail in _KEY_SHAPES:
        head = marked.removeprefix("+")
        rare = tail[:2] if tail[0] == "\\" else tail[0]
        word = re.sub(r"[^\w-].*", "", tail.removeprefix(rare))
        # Cheap checks come first: the rest of the word, then the head.
        pattern = f"{word}(?<={head}{rare}{word})"
        if head != marked:  # not after a letter or digit, unless that ends an escape such as \n or %20
            before = f"{head}{rare}{word}"
            pattern += rf"(?:(?<![A-Za-z0-9]{before})|(?<=\\[nrtbf]{before})|(?<=%[0-9A-Fa-f]{{2}}{before}))"
        width = len(re.sub(r"\[.*?\]", "x", head))
        rows.setdefault(rare, []).append((kind, width, f"{pattern}({tail.removeprefix(rare + word)})"))
    for rare, group in rows.items():
        kinds, heads, patterns = zip(*group, strict=True)
        yield _KeyPattern(
            re.compile(f"{rare}{_RARE_CHAR_GUARD.get(rare, '')}(?:{'|'.join(patterns)})", re.ASCII), kinds, heads
        )


# -- patterns: secrets recognised by their name. They run on the lower-case text; the group `v` is the secret.

_QUOTE: Final = r"\\{0,8}+[\"']"  # with the backslashes of escaped JSON
_BLANK: Final = r"[ \t]{0,4}+"
# `=`, `=>`, `: `, `": "`, `: str = `, `%3D`. `t`: not a bare colon, which prose has too ("invalid token: identifier").
_ASSIGN: Final = (
    rf"(?:(?P<t>{_QUOTE}{_BLANK}[:=]|{_BLANK}(?:: ?str ?)?+=|%3[ad])|{_BLANK}:)>?{_BLANK}[\[(]?+(?:b(?=[\"']))?+"
)
# Or the comma between the name and the value of a header in a list (which may also be a list of names).
_LISTED: Final = rf"(?:{_ASSIGN}|{_QUOTE}, ?(?:b(?=[\"']))?+)"
_CHAR: Final = r"[^\s\"'\\&,;<>(){}\[\]|]"
# Not a word of prose: contains a digit, or is very long.
_RANDOM: Final = rf"(?:(?={_CHAR}{{8}})[^\s\"'\\&,;<>(){{}}\[\]|0-9]{{0,39}}+[0-9]|{_CHAR}{{16}})"
# Stricter, because prose often follows "Bearer".
_BEARER: Final = r"(?:(?=[a-z._~+/-]{0,39}+[0-9=])[a-z0-9._~+/=-]{8}|[a-z0-9._~+/=-]{24})[a-z0-9._~+/=-]*+"
# Excludes placeholders and references to a value elsewhere; the whole value must match, not the start of a password.
_NOT_A_PLACEHOLDER: Final = (
    r"(?!<secret:|\$[{(]|\{\{|(?:\*++|none|null|nil|true|false|required|missing|invalid|incorrect|must|is|not|empty"
    r"|str|string|unset|os|self|settings|config|env|args|getenv)(?(q)\\*+[\"']|(?:[\s\"'\\,;.)}\]]|$)))"
)
# Up to the closing quote, across other and escaped quotes; a JSON or repr string contains no line break.
_QUOTED: Final = r"(?:[^\\\"'\n]++|(?!(?P=q))(?:\\++[\"']?|[\"']))*+"


def _value(bare: str, check: str = "") -> str:
    return rf"(?P<q>{_QUOTE})?+{check}{_NOT_A_PLACEHOLDER}(?P<v>(?(q){_QUOTED}|(?:{bare})))"


# The letters before "key" where it is a credential (api, access, secret, private, auth, account, subscription, signing,
# master, license, admin, client, service), as opposed to a primary key or a cache key.
_BEFORE_KEY: Final = "(?:api|ess|ret|ate|uth|unt|ion|ing|ter|nse|min|ent|ice)"
_NEVER_SURE: Final = "(?P<s>(?!))?"
# Secret names by marker. Without the group `s` the name is often harmless, and the value must look like a secret.
_SECRET_NAMES: Final = {
    "key": rf"key(?=[\"'\\ \t:=%])(?:(?P<s>(?<={_BEFORE_KEY}key)|(?<={_BEFORE_KEY}[_ .-]key))|(?<=[?&;]key)|(?<=u0026key))",
    "token": "token(?P<s>(?<=[a-z0-9_-]token))?",
    "secret": "secret(?<!<secret)(?P<s>)",
    "sig": f"sig(?:nature)?+{_NEVER_SURE}",
    "credential": f"credential(?<=[_-]credential)s?+{_NEVER_SURE}",
}
# Excludes a passed variable, such as `token=self.token` in the source lines of a traceback.
_VALUE_CHECK: Final = (
    rf"(?(t)(?(s)(?={_CHAR}{{6}})|(?={_RANDOM}))|(?={_RANDOM}))"
    r"(?!(?:[a-z]{1,24}[_.]){0,4}(?:key|token|secret)(?![a-z0-9=]))"
)
_SCHEMES: Final = "bearer|basic|token|apikey|key|negotiate"
_MULTIPART_SCHEMES: Final = "digest|oauth|hawk|aws4-hmac-sha256"  # authorization schemes with several parameters


class _NamedSecret(NamedTuple):
    kind: str
    mark: str  # the pattern runs only on a text that contains this substring
    pattern: str


@lru_cache(maxsize=32)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


_NAMED_SECRETS: Final = (
    # With its body; up to the end of the text if that is truncated.
    _NamedSecret(
        "private-key",
        "private",
        r"(?P<v>-----begin [a-z0-9 ]{0,40}private key[a-z ]{0,8}-----"
        r"(?:[^-]++|-(?!----end ))*+(?:-----end [a-z0-9 ]{0,60}-----)?)",
    ),
    # Only the password of a URL: user and host are useful for diagnosis.
    _NamedSecret("password", "@", r":\\?/\\?/[^\s/?#@:\"'<>\\]{0,128}:(?P<v>[^\s/?#@\"'<>\\]{1,1024})@"),
    # curl -u bob:hunter2, also in an argument list. Not -u 1000:1000.
    _NamedSecret(
        "password",
        "curl",
        rf"(?<![\w-])(?:-u|--(?:proxy-)?user)(?:[ =]{{1,4}}|{_QUOTE}, ?)?+(?P<q>{_QUOTE})?+(?![0-9]++:[0-9]++(?![\w]))"
        rf"[^\s:\"'\\]{{1,128}}+:{_NOT_A_PLACEHOLDER}(?P<v>(?(q){_QUOTED}|[^\s\"'\\]++))",
    ),
    # <password>hunter2</password>; also with attributes or CDATA
    _NamedSecret(
        "password",
        "</",
        r"(?P<n>password|passwd|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key)(?:[ \t][^<>]{0,60}+)?+>"
        r"(?:<!\[cdata\[)?+(?P<v>[^<>\]]{1,1024}+)(?=(?:\]\]>)?</[a-z0-9_:.-]{0,40}?(?P=n)>)",
    ),
    # The addresses of webhooks: whoever has one may post.
    _NamedSecret(
        "webhook",
        "hook",
        r"(?:hooks\.slack\.com\\?/(?:services|workflows|triggers)|discord(?:app)?\.com\\?/api(?:\\?/v[0-9]{1,2})?\\?/webhooks\\?/[0-9]{5,20}"
        r"|webhook\.office\.com\\?/webhookb2)\\?/(?P<v>(?:[^\s\"'\\<>?#]|\\/){8,}+)",
    ),
    _NamedSecret(
        "authorization",
        "authorization",
        rf"authorization{_LISTED}"
        + _value(
            rf"(?:{_MULTIPART_SCHEMES}) [^\r\n\\]++|(?:(?:{_SCHEMES}) {{1,4}})?+{_CHAR}++",
            rf"(?=(?:{_MULTIPART_SCHEMES}) |(?:{_SCHEMES}) {{1,4}}{_CHAR}{{6}}|{_RANDOM})",
        ),
    ),
    _NamedSecret(
        "cookie",
        "cookie",
        rf"cookie{_LISTED}(?=(?:{_QUOTE})?[^\s\"'\\=]{{1,80}}=)" + _value(r"(?:=\"[^\"\r\n]*+\"|[^\r\n\"'\\])*+"),
    ),
    _NamedSecret("bearer", "bearer", rf"bearer(?:[ ]{{1,4}}|%20|\+)(?P<v>{_BEARER})"),
    _NamedSecret("basic", "basic", rf"basic(?:[ ]{{1,4}}|%20|\+)(?P<v>{_BEARER})"),
    *(
        _NamedSecret("password", name, rf"{name}{_ASSIGN}" + _value(r"[^\s\"'\\]++"))
        for name in ("password", "passwd", "passphrase", "pwd")
    ),
    *(
        _NamedSecret("named", mark, name + _LISTED + _value(f"{_CHAR}++", _VALUE_CHECK))
        for mark, name in _SECRET_NAMES.items()
    ),
    # --password hunter2, also in an argument list. Not prose such as "use --token instead".
    _NamedSecret(
        "argument",
        "--",
        r"--[a-z0-9]++(?:-[a-z0-9]++)*+"
        r"(?:(?<=password)|(?<=passwd)|(?<=passphrase)|(?<=-pwd)|(?<=token)|(?<=secret)|(?<=api-key)|(?<=apikey)|(?<=access-key)|(?<=secret-key))"
        rf"(?:[ ]{{1,4}}|{_QUOTE},[ ]?)(?=(?:{_QUOTE})?(?:[a-z]{{0,39}}[^a-z\s\"'\\.,:;)-]|{_CHAR}{{16}}))"
        + _value(r"[^\s\"'\\]++"),
    ),
)


def _replace_secrets(text: str, flat: bytes) -> str:
    spans = _secret_spans(flat)
    if not spans:
        return text
    parts: list[str] = []
    at = 0
    # Of two spans with equal start the longer wins; of two equal ones the key shape, which is more specific.
    for start, end, kind in sorted(spans, key=lambda span: (span[0], -span[1])):
        if end > max(start, at):
            parts += (text[at:start], f"<secret:{kind}>")
            at = end
    return "".join((*parts, text[at:]))


def _secret_spans(flat: bytes) -> list[_Span]:
    """Return the position and kind of each secret in the text."""
    spans: list[_Span] = []
    plain = flat.decode()
    if "AKIA" in plain or "ASIA" in plain or _has_suspicious_run(flat, flat.translate(_RUN_CLASSES).decode()):
        for pattern, kinds, heads in _key_patterns():
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
    for kind, mark, pattern_text in _NAMED_SECRETS:
        if mark in lowered:
            for count, match in enumerate(_compiled(pattern_text).finditer(lowered)):
                if count == _MAX_MATCHES:
                    spans.append((match.start(), len(lowered), "rest"))
                    break
                spans.append((*match.span("v"), kind))
    return spans
