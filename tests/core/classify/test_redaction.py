"""Secrets are redacted in any context, and nothing else is."""

from __future__ import annotations

import json
import random
import re
import string
import time
import timeit
from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.classify import redaction
from rung.core.classify.redaction import redacted, redacted_headers

WINDOW = 12  # so many characters of a secret in a row are a leak
HEX = "0123456789abcdef"
ALNUM = string.ascii_letters + string.digits
URL = ALNUM + "_-"
CHANCE = random.Random(20261115)


def body(size: int, alphabet: str = ALNUM) -> str:
    """The random part of a fake, put together here so that no scanner takes this file for a leak."""
    return "".join(CHANCE.choice(alphabet) for _ in range(size))


def uuid() -> str:
    return "-".join(body(size, HEX) for size in (8, 4, 4, 4, 12))


def json64(**claims: object) -> str:
    return urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")


# What is known by its shape: the public head and the secret body.
SHAPES: list[tuple[str, str]] = [
    ("sk-" + "ant-api03-", body(93, URL) + "AA"),
    ("sk-" + "ant-admin01-", body(93, URL) + "AA"),
    ("sk-" + "ant-oat01-", body(80, URL)),
    ("sk-" + "ant-", "a" * 40),
    ("sk-" + "ant-api03-", "-_" * 40),
    ("sk-", body(48)),
    ("sk-", "a" * 40),
    ("sk-", body(20) + "T3Blbk" + "FJ" + body(20)),
    ("sk-" + "proj-", body(156, URL)),
    ("sk-" + "svcacct-", body(120, URL)),
    ("sk-" + "admin-", body(120, URL)),
    ("sk-" + "None-", body(48)),
    ("sk-", body(32, HEX)),
    ("sk-" + "or-v1-", body(64, HEX)),
    ("sk-" + "lf-", uuid()),
    ("pk-" + "lf-", uuid()),
    ("sk-" + "helicone-", body(32, HEX)),
    ("csk-", body(48, string.ascii_lowercase + string.digits)),
    ("pcsk_", body(70)),
    ("AIza", body(35, URL)),
    ("AIza", "-_" * 17 + "a"),
    ("ya29" + ".", body(120, URL)),
    ("GOCSPX" + "-", body(28, URL)),
    ("gsk_", body(52)),
    ("xai" + "-", body(80)),
    ("hf_", body(34, string.ascii_letters)),
    ("r8_", body(37)),
    ("pplx" + "-", body(48)),
    ("fw_", body(24)),
    ("fw_", body(22)),
    ("tgp_v1_", body(43, URL)),
    ("nvapi" + "-", body(64, URL)),
    ("AKIA", body(16, string.ascii_uppercase + "234567")),
    ("ASIA", body(16, string.ascii_uppercase + "234567")),
    ("ghp_", body(36)),
    ("gho_", body(36)),
    ("ghu_", body(36)),
    ("ghs_", body(36)),
    ("ghr_", body(36)),
    ("github" + "_pat_", body(22) + "_" + body(59)),
    ("glpat" + "-", body(20, URL)),
    ("glpat" + "-", "-_" * 10),
    ("xoxb" + "-", body(12, string.digits) + "-" + body(12, string.digits) + "-" + body(24)),
    ("xoxp" + "-", body(12, string.digits) + "-" + body(12, string.digits) + "-" + body(32, HEX)),
    ("xapp" + "-1-", body(11) + "-" + body(13, string.digits) + "-" + body(64, HEX)),
    ("sk_" + "live_", body(24)),
    ("rk_" + "live_", body(24)),
    ("sk_" + "test_", body(99)),
    ("sk_", body(48, HEX)),
    ("whsec" + "_", body(32)),
    ("npm" + "_", body(36)),
    ("pypi" + "-AgEIcHlwaS5vcmc", body(150, URL)),
    ("dapi", body(32, HEX)),
    ("SG" + ".", body(22, URL) + "." + body(43, URL)),
    ("SK", body(32, HEX)),
    (body(10, string.digits) + ":", "AA" + body(33, URL)),
    (body(24) + ".", body(6) + "." + body(38, URL)),
    ("hvs" + ".", body(24)),
    ("dop_v1" + "_", body(64, HEX)),
    ("doo_v1" + "_", body(64, HEX)),
    ("lsv2" + "_pt_", body(32, HEX) + "_" + body(10, HEX)),
    ("lsv2" + "_sk_", body(32, HEX) + "_" + body(10, HEX)),
    ("lin_api" + "_", body(40)),
    ("ntn" + "_", body(46)),
    ("secret" + "_", body(43)),
    ("vcp" + "_", body(56)),
    ("tvly" + "-", body(32)),
    ("tvly" + "-dev-", body(32)),
    ("e2b" + "_", body(40, HEX)),
    ("sbp" + "_", body(40, HEX)),
    ("dckr" + "_pat_", body(27, URL)),
    ("shpat" + "_", body(32, HEX)),
    ("jina" + "_", body(60)),
    ("key" + "-", body(32, HEX)),
    ("", json64(alg="HS256", typ="JWT") + "." + json64(sub="1234567890", name="x" * 12) + "." + body(43, URL)),
    ("", json64(alg="none") + "." + json64(user=body(30))),
    ("Bearer ", body(40)),
    ("Bearer ", uuid()),
    ("Bearer ", body(40, HEX)),
    ("bearer ", "a" * 40),
    ("Basic ", b64encode(b"someone:" + body(20).encode()).decode()),
]

CARRIERS = {
    "alone": "{}",
    "sentence": "Incorrect API key provided: {}. You can find your API key at https://platform.example.com.",
    "quoted": "the key '{}' was refused",
    "header": "HTTP/1.1 401 Unauthorized\r\nX-Thing: {}\r\nDate: Sun, 15 Nov 2026 10:00:00 GMT",
    "address": "GET https://api.example.com/v1/models?x={}&page=2 failed",
    "env": "HOME=/root\nTHING={}\nPATH=/usr/bin",
    "log": "10:00:01 INFO start\n10:00:02 ERROR {}\n10:00:03 INFO end",
    "escaped line break": "first\\n{}\\nlast",
    "percent": "q=one%20{}%20two",
    "bytes": "b'{}'",
    "call": "Client(thing={}, retries=2)",
    "markup": "<td>{}</td>",
    "beyond ascii": "schlüssel → {} ← \ud800\0",
}


def carried(text: str) -> list[str]:
    """The text in everything it may come in, also in JSON, in JSON inside JSON, and in Python's repr."""
    plain = [carrier.replace("{}", text) for carrier in CARRIERS.values()]
    once = json.dumps({"error": {"message": text, "code": 401}})
    twice = json.dumps({"body": once})
    return [*plain, once, twice, json.dumps([twice]), repr({"message": text}), repr(once), repr([("x", text)])]


def survives(secret: str, text: str) -> bool:
    size = min(WINDOW, len(secret))
    return any(secret[at : at + size] in text for at in range(len(secret) - size + 1))


@pytest.mark.parametrize(("head", "secret"), SHAPES, ids=[f"{at}-{head}" for at, (head, _) in enumerate(SHAPES)])
def test_a_secret_known_by_its_shape_is_cut_from_every_carrier(head: str, secret: str) -> None:
    """What has the shape of a key does not survive, whatever stands around it; the second pass finds nothing."""
    for text in carried(head + secret):
        cut = redacted(text)
        assert not survives(secret, cut), (text, cut)
        assert "<secret:" in cut
        assert redacted(cut) is cut


NAMES = [
    "api_key", "apikey", "api-key", "x-api-key", "X-Api-Key", "ANTHROPIC_API_KEY", "MISTRAL_API_KEY", "COHERE_API_KEY",
    "AZURE_OPENAI_API_KEY", "WANDB_API_KEY", "x-goog-api-key", "Ocp-Apim-Subscription-Key", "AccountKey",
    "SharedAccessKey", "aws_secret_access_key", "AWS_SECRET_ACCESS_KEY", "secret_key", "private_key", "master_key",
    "access_token", "refresh_token", "HF_TOKEN", "VERCEL_TOKEN", "aws_session_token", "AWS_SESSION_TOKEN",
    "X-Amz-Security-Token", "x-auth-token", "client_secret", "SECRET", "webhook-secret", "token", "password",
    "PASSWORD", "Password", "db_password", "PGPASSWORD", "passwd", "MYSQL_PWD", "pwd",
]  # fmt: skip
VALUES = [body(32), body(40, ALNUM + "+/"), body(32, HEX), body(8) + "7", uuid(), "a1" * 20, "x" * 24]


def assignments(name: str, value: str) -> list[str]:
    """Ways to write that the name has the value."""
    pair = json.dumps({name: value})
    return [
        f"{name}={value}",
        f"A=1\n{name}={value}\nB=2",
        f'export {name}="{value}"',
        f"{name} = {value}",
        f"{name} = '{value}'",
        f"{name}: {value}",
        f"  {name}: '{value}'\n  user: me",
        f"connect(user='me', {name}='{value}', port=1)",
        f'    {name}: str = "{value}"',
        f"<ul><li>{name}=&gt; {name}={value}</li></ul>",
        f"https://api.example.com/v1?{name}={value}",
        f"https://api.example.com/v1?a=b&{name}={value}&c=d",
        f"next={name}%3D{quote(value)}",
        f'{{"{name}":"{value}"}}',
        pair,
        json.dumps({"body": pair}),
        json.dumps([json.dumps({"body": pair})]),
        repr({name: value}),
        repr(pair),
        repr({name: value.encode()}),
        f"--{name.lower()}={value}",
    ]


@pytest.mark.parametrize("name", NAMES)
def test_a_value_with_a_secret_name_is_cut(name: str) -> None:
    """Of a named secret the value goes, in every way to write it, and the name stays."""
    for value in VALUES:
        for text in assignments(name, value):
            cut = redacted(text)
            assert not survives(value, cut), (text, cut)
            assert not survives(quote(value), cut), (text, cut)
            assert name.lower() in cut.lower()
            assert redacted(cut) is cut


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("password=hunter2", "password=<secret:password>"),
        ('{"password": "correct horse battery", "user": "me"}', '{"password": "<secret:password>", "user": "me"}'),
        (r'{"b": "{\"password\": \"a\\\"b c\", \"u\": 1}"}', r'{"b": "{\"password\": \"<secret:password>\", \"u\": 1}"}'),
        ('{"password": "it\'s \\"so\\"", "u": 1}', '{"password": "<secret:password>", "u": 1}'),
        ("{'password': 'x' * 3}", "{'password': '<secret:password>' * 3}"),
        ('{"password": "not that secret"}', '{"password": "<secret:password>"}'),
        ("password=none-of-yours", "password=<secret:password>"),
        ("password=**stars**", "password=<secret:password>"),
        ("access_token=abcdef", "access_token=<secret:named>"),
        ("{'client_secret': 'abcdef'}", "{'client_secret': '<secret:named>'}"),
        ('API_KEY="abcdef"', 'API_KEY="<secret:named>"'),
        ("token=abcdef", "token=abcdef"),  # so short it must have a digit: "token=parens" is grammar
        ("mysql --password hunter2 -h db", "mysql --password <secret:argument> -h db"),
        ("['--api-key', 'abc123', '-v']", "['--api-key', '<secret:argument>', '-v']"),
        ("postgres://me:s3cret@db:5432/x", "postgres://me:<secret:password>@db:5432/x"),
        ("redis://:s3cret@db", "redis://:<secret:password>@db"),
        (r"https:\/\/me:s3cret@db\/", r"https:\/\/me:<secret:password>@db\/"),
        ('Cookie: sid=1; b="2 3"; c=4\nHost: h', "Cookie: <secret:cookie>\nHost: h"),
        (r"GET /\r\nCookie: sid=1; b=2\r\nHost: h", r"GET /\r\nCookie: <secret:cookie>\r\nHost: h"),
        ("set-cookie: sid=abc; Path=/; HttpOnly", "set-cookie: <secret:cookie>"),
        ('{"Set-Cookie": "sid=abc; Path=/"}', '{"Set-Cookie": "<secret:cookie>"}'),
        ("Authorization: Basic dTpw", "Authorization: Basic dTpw"),  # four letters of base64 hold nothing
        ("Authorization: Basic dTpwYXNz was refused", "Authorization: <secret:authorization> was refused"),
        ('Authorization: Digest username="me", response="0f"', "Authorization: <secret:authorization>"),
        ("{'Authorization': 'Bearer abcdef'}", "{'Authorization': '<secret:authorization>'}"),
        ("[(b'Authorization', b'Bearer ab12cd34ef56ab12cd34ef56!')]", "[(b'Authorization', b'<secret:authorization>')]"),
        ("a -----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY----- b", "a <secret:private-key> b"),
        ("-----BEGIN PRIVATE KEY-----\nabc-def", "<secret:private-key>"),
        ("-----BEGIN PGP PRIVATE KEY BLOCK-----\\nabc\\n-----END PGP", "<secret:private-key>-----END PGP"),
        ("-----BEGIN PUBLIC KEY-----\nabc\n-----END PUBLIC KEY-----", "-----BEGIN PUBLIC KEY-----\nabc\n-----END PUBLIC KEY-----"),
        ("https://h/b?a=1&sig=ab%2Bcd12&se=2", "https://h/b?a=1&sig=<secret:named>&se=2"),
        ("https://h/b?key=abcd1234", "https://h/b?key=<secret:named>"),
        (r"https://h/b?a=1\u0026key=abcd1234", r"https://h/b?a=1\u0026key=<secret:named>"),
        ("?X-Amz-Credential=AKI/2026/s3&X-Amz-Signature=0f0f0f0f0f", "?X-Amz-Credential=<secret:named>&X-Amz-Signature=<secret:named>"),
        ("password: <secret:password>", "password: <secret:password>"),
    ],
)  # fmt: skip
def test_what_is_left(text: str, cut: str) -> None:
    """Only the secret goes; what says whose it was and what was tried stays."""
    assert redacted(text) == cut
    assert redacted(cut) is cut


HARMLESS = [
    "",
    "x",
    "\0\ud800\udfff\U0001f600",
    "Error code: 429 - {'error': {'type': 'rate_limit_error', 'message': 'too many requests'}}",
    "request id req_011CSHoEeqs5C35K2UUqR7Fy, model claude-sonnet-4-5-20250929",
    "Rate limit reached for gpt-4o in organization org-AbCdEfGhIjKlMnOpQrStUvWx on tokens per min (TPM): Limit 30000",
    "curl failed: docker run -u 1000:1000 image",
    "Authorization: Bearer <token> is missing </p>",
    "commit da39a3ee5e6b4b0d3255bfef95601890afd80709, src/components/UserProfile2/AvatarImageX",
    "the headers were ['accept', 'authorization', 'cookie', 'x-api-key']",
    "max_tokens: 4096, input_tokens: 12, total_tokens=128, 'prompt_tokens': 1",
    "token limit exceeded; the token count is 5",
    "key 'name' not found",
    "KeyError: 'token'",
    "KeyError: 'api_key'",
    "No module named 'sk-learn'; did you mean scikit-learn?",
    "branch sk-learn-compatible-estimators-for-everyone is gone",
    "task-0123456789abcdef0123456789 failed, disk-0123456789abcdef0123456789 is full",
    "Incorrect API key provided: sk-****abcd. You can find your API key at https://platform.example.com/account.",
    "Incorrect API key provided: sk-proj-********************abcd.",
    "The api_key client option must be set by passing api_key or by setting the OPENAI_API_KEY environment variable",
    "Invalid API key: please check it. Invalid token: identifier. Unexpected token: 'constructor'",
    "Missing bearer token. Basic authentication required. Bearer authentication failed.",
    "password: required. Password must be at least 8 characters. ['api_key', 'password', 'authorization', 'base_url', 'cookie', 'email']",
    "use --token or --password instead; see --api-key. sort --sort-key created_at",
    "client = Client(api_key=api_key, token=self.token, secret=settings.secret, timeout=3)",
    "cancellation_token=cancellation_token, api_key=os.environ['KEY'], password=None, token=null",
    'PASSWORD=${PASSWORD} api_key={{ api_key }} "api_key": "**********"',
    "primary_key=12345678, cache_key='user:12345678', sort_key: created_at_2026",
    '{"token": " Hello", "logprob": -0.1, "token_type": "bearer", "eos_token": "<|im_end|>"}',
    "commit 2fd4e1c67a2d28fced849ee1bb76e7391b93eb12 by me@example.com on 2026-11-15",
    "trace 550e8400-e29b-41d4-a716-446655440000 span 4bf92f3577b34da6a3ce929d0e0e4736",
    "/usr/lib/python3.11/site-packages/anthropic/_base_client.py:1023 in _request",
    "http://localhost:8080/@vite/client http://[::1]:80/a?b=c&d=e mailto:me@example.com",
    "x-ratelimit-remaining-requests: 5, anthropic-ratelimit-tokens-reset: 2026-11-15T10:00:00Z",
    "authorization: failed for the user; cookie: not set; credential: missing",
    "context_length_exceeded: the context window is 200000 tokens; content-type: application/json",
    "ASIA and the Pacific; AKIA is a prefix; SKU 12; eyJ is how it begins",
    "git@github.com:me/repo.git -- a -----BEGIN CERTIFICATE----- b",
    "req_" + "a1" * 12 + " " + " ".join(f"msg_{'b2' * 12}" for _ in range(12)),
]  # fmt: skip


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_stays(text: str) -> None:
    """Ordinary text comes back as the very same object."""
    assert redacted(text) is text


def test_a_wall_of_secrets_takes_the_rest_with_it() -> None:
    """After very many of a kind what follows is withheld, so that none of it can leak."""
    for one in ("password=hunter2\n", f"ghp_{body(36)}\n"):
        cut = redacted(one * 3000)
        assert cut.endswith("<secret:rest>")
        assert cut.count("\n") == 500
        assert redacted(cut) is cut


def test_headers_are_cut_by_name_and_by_value() -> None:
    """A header that is named like a secret loses its value; the others are looked at as text."""
    secret, plain = body(40), {"content-type": "application/json", "request-id": "req_011CSHoEeqs5C35K2UUqR7Fy"}
    named = [
        "authorization", "Proxy-Authorization", "cookie", "Set-Cookie", "x-api-key", "api-key", "apikey",
        "x-goog-api-key", "x-amz-security-token", "X-Auth-Token", "x-csrf-token", "X_Client_Secret", "token",
    ]  # fmt: skip
    cut = redacted_headers({**plain, **dict.fromkeys(named, secret), "via": f"1.1 me:ghp_{secret}"})
    assert cut == {**plain, **dict.fromkeys(named, "<secret:header>"), "via": "1.1 me:<secret:github-token>"}


def test_headers_without_secrets_are_the_same_object() -> None:
    """Nothing to cut, also because it has been cut before: the same mapping comes back."""
    for headers in ({}, {"retry-after": "5", "x-ratelimit-limit-tokens": "9"}, {"cookie": "<secret:header>"}):
        assert redacted_headers(headers) is headers


@given(
    st.text(),
    st.text(),
    st.sampled_from(SHAPES),
    st.sampled_from(" \n\t'\"(,;<>|→"),
    st.sampled_from(" \n\t'\"),;<>|→"),
)
def test_a_planted_secret_never_survives(before: str, after: str, fake: tuple[str, str], left: str, right: str) -> None:
    """Between any two texts a secret is found, and the second pass changes nothing."""
    head, secret = fake
    cut = redacted(before + left + head + secret + right + after)
    assert not survives(secret, cut)
    assert redacted(cut) == cut


@given(st.text(), st.text(), st.sampled_from(["password", "API_KEY", "client_secret"]), st.sampled_from(VALUES))
def test_a_planted_assignment_never_survives(before: str, after: str, name: str, value: str) -> None:
    """Nor does a named one."""
    assert not survives(value, redacted(f"{before} {name}={value} {after}"))


PIECES = [
    "password", "api_key", "token", "secret", "Cookie", "Authorization", "Bearer ", "Basic ", "sk-", "sk-ant-", "eyJ",
    "AKIA", "ghp_", "-----BEGIN PRIVATE KEY-----", "-----END ", "://", "@", "&", "?", "=", ":", ": ", '"', "'", "\\", ",",
    "--", "<secret:", "named>", "rest>", " ", "\n", "[", "b", "a1b2c3d4", "x" * 24, "A" * 16, "%3D", "${", "é", ".", "_",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_twice_is_once(text: str) -> None:
    """Whatever the pieces of secrets are put together to, the second pass changes nothing."""
    cut = redacted(text)
    assert redacted(cut) == cut
    assert redacted(text) is text or cut != text


CLEAN = (
    "Error code: 429 - {'error': {'type': 'rate_limit_error', 'message': 'This request would exceed your organization "
    "rate limit of 30,000 input tokens per minute (org-abc123). Please reduce the prompt length or max_tokens: 4096, or "
    "try again later. See https://docs.anthropic.com/en/api/rate-limits; contact sales for more about it. The service "
    "is busy at the moment; retry in 20s'}, 'status': 'overloaded'}"
)


def seconds(text: str, times: int) -> float:
    """Of this process alone: what else the machine does must not count."""
    return min(timeit.repeat(lambda: redacted(text), number=times, repeat=7, timer=time.process_time)) / times


def test_a_clean_text_is_nearly_free() -> None:
    """It runs on every failure: 400 characters without a secret cost about a microsecond (twenty on a busy machine)."""
    assert seconds(CLEAN, 500) < 20 * 1.5e-6


BAIT = [
    "a", "sk-", "://", "eyJ", "-----BEGIN ", "-----BEGIN RSA PRIVATE KEY-----", "password=", "password= ", "\"'", '\\"',
    "'\"\\", "api_key=", 'api_key="', "token: ", "Bearer ", 'Cookie: a="', "://a:b@", "ghp_", "AKIA", "--", "-", "_",
    "k", "\\", 'password="\\', "a" * 24 + " ", "sk-" + "a" * 19 + "!", "req_" + "a1" * 12 + " ", "<secret:named>",
    "\0", "\ud800", "é", "password>", "</password ", "<password>x</", "curl -u a:", "</curl -u ", "hooks.slack.com/services/",
    "aB1/" * 10 + " ", "aB1+", "token>x", "', 'authorization", "<token><![cdata[", "curl --user ",
]  # fmt: skip


@pytest.mark.parametrize("bait", BAIT)
def test_bait_takes_linear_time(bait: str) -> None:
    """64 KiB made to trap a pattern take milliseconds (five times the bound here), as any other text."""
    assert seconds((bait * 65_536)[:65_536], 1) < 5 * 3e-3


def test_the_examples_of_the_module_hold() -> None:
    """Every row of the table in the module's docstring that is written out is what `redacted` returns."""
    rows = re.findall(r"^    (\S.*?) {2,}(\S.*)$", redaction.__doc__ or "", re.MULTILINE)[1:]
    whole = [(text, result) for text, result in rows if "…" not in text]
    assert len(whole) >= 7
    for text, result in whole:
        assert redacted(text) == (text if result.startswith("unchanged") else result)
