"""Secrets recognised by their name or place, such as `password=…`. They are matched in lower case; the group `v` is the secret."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

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


class NamedSecret(NamedTuple):
    """Pattern of one kind of secret."""

    kind: str
    mark: str  # the pattern runs only on a text that contains this substring
    pattern: str


@lru_cache(maxsize=32)
def compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern on its first use."""
    return re.compile(pattern, re.ASCII)


NAMED_SECRETS: Final = (
    # With its body; up to the end of the text if that is truncated.
    NamedSecret(
        "private-key",
        "private",
        r"(?P<v>-----begin [a-z0-9 ]{0,40}private key[a-z ]{0,8}-----"
        r"(?:[^-]++|-(?!----end ))*+(?:-----end [a-z0-9 ]{0,60}-----)?)",
    ),
    # Only the password of a URL: user and host are useful for diagnosis.
    NamedSecret("password", "@", r":\\?/\\?/[^\s/?#@:\"'<>\\]{0,128}:(?P<v>[^\s/?#@\"'<>\\]{1,1024})@"),
    # curl -u bob:hunter2, also in an argument list. Not -u 1000:1000.
    NamedSecret(
        "password",
        "curl",
        rf"(?<![\w-])(?:-u|--(?:proxy-)?user)(?:[ =]{{1,4}}|{_QUOTE}, ?)?+(?P<q>{_QUOTE})?+(?![0-9]++:[0-9]++(?![\w]))"
        rf"[^\s:\"'\\]{{1,128}}+:{_NOT_A_PLACEHOLDER}(?P<v>(?(q){_QUOTED}|[^\s\"'\\]++))",
    ),
    # <password>hunter2</password>; also with attributes or CDATA
    NamedSecret(
        "password",
        "</",
        r"(?P<n>password|passwd|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key)(?:[ \t][^<>]{0,60}+)?+>"
        r"(?:<!\[cdata\[)?+(?P<v>[^<>\]]{1,1024}+)(?=(?:\]\]>)?</[a-z0-9_:.-]{0,40}?(?P=n)>)",
    ),
    # The addresses of webhooks: whoever has one may post.
    NamedSecret(
        "webhook",
        "hook",
        r"(?:hooks\.slack\.com\\?/(?:services|workflows|triggers)|discord(?:app)?\.com\\?/api(?:\\?/v[0-9]{1,2})?\\?/webhooks\\?/[0-9]{5,20}"
        r"|webhook\.office\.com\\?/webhookb2)\\?/(?P<v>(?:[^\s\"'\\<>?#]|\\/){8,}+)",
    ),
    NamedSecret(
        "authorization",
        "authorization",
        rf"authorization{_LISTED}"
        + _value(
            rf"(?:{_MULTIPART_SCHEMES}) [^\r\n\\]++|(?:(?:{_SCHEMES}) {{1,4}})?+{_CHAR}++",
            rf"(?=(?:{_MULTIPART_SCHEMES}) |(?:{_SCHEMES}) {{1,4}}{_CHAR}{{6}}|{_RANDOM})",
        ),
    ),
    NamedSecret(
        "cookie",
        "cookie",
        rf"cookie{_LISTED}(?=(?:{_QUOTE})?[^\s\"'\\=]{{1,80}}=)" + _value(r"(?:=\"[^\"\r\n]*+\"|[^\r\n\"'\\])*+"),
    ),
    NamedSecret("bearer", "bearer", rf"bearer(?:[ ]{{1,4}}|%20|\+)(?P<v>{_BEARER})"),
    NamedSecret("basic", "basic", rf"basic(?:[ ]{{1,4}}|%20|\+)(?P<v>{_BEARER})"),
    *(
        NamedSecret("password", name, rf"{name}{_ASSIGN}" + _value(r"[^\s\"'\\]++"))
        for name in ("password", "passwd", "passphrase", "pwd")
    ),
    *(
        NamedSecret("named", mark, name + _LISTED + _value(f"{_CHAR}++", _VALUE_CHECK))
        for mark, name in _SECRET_NAMES.items()
    ),
    # --password hunter2, also in an argument list. Not prose such as "use --token instead".
    NamedSecret(
        "argument",
        "--",
        r"--[a-z0-9]++(?:-[a-z0-9]++)*+"
        r"(?:(?<=password)|(?<=passwd)|(?<=passphrase)|(?<=-pwd)|(?<=token)|(?<=secret)|(?<=api-key)|(?<=apikey)|(?<=access-key)|(?<=secret-key))"
        rf"(?:[ ]{{1,4}}|{_QUOTE},[ ]?)(?=(?:{_QUOTE})?(?:[a-z]{{0,39}}[^a-z\s\"'\\.,:;)-]|{_CHAR}{{16}}))"
        + _value(r"[^\s\"'\\]++"),
    ),
)
