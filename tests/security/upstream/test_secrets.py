"""What an upstream echoes or a library prints never takes a secret into the journal."""

from __future__ import annotations

import random
import string

import pytest

import rung
from rung.core.domain.event_codec import to_json

CHANCE = random.Random(14)
ALNUM = string.ascii_letters + string.digits


def some(size: int, alphabet: str = ALNUM) -> str:
    """Return the random part of a fake, made here so that no scanner takes this file for a leak."""
    return "".join(CHANCE.choice(alphabet) for _ in range(size))


URL_PART, HOOK, TOKEN, AWS = some(24), some(68, ALNUM + "_-"), some(33, ALNUM + "_-"), some(40, ALNUM + "/+")
DISCORD = f"M{some(23)}.{some(6)}.{some(38)}"
SECRETS = [
    ("passphrase=hunter2horse", "hunter2horse"),
    ("PASSPHRASE: hunter2", "hunter2"),
    ('{"passphrase": "correct horse"}', "correct horse"),
    ("<password>hunter2</password>", "hunter2"),
    ('<wsse:Password Type="PasswordText">hun ter2</wsse:Password>', "hun ter2"),
    ("<password><![CDATA[hunter2]]></password>", "hunter2"),
    ("<clientSecret>hunter2</clientSecret>", "hunter2"),
    ("curl -u bob:hunter2 https://x", "hunter2"),
    ("curl -s -u 'bob:hun ter2' https://x", "hun ter2"),
    ("curl --user bob:hunter2 https://x", "hunter2"),
    ("curl -ubob:hunter2 https://x", "hunter2"),
    ("['curl', '-u', 'bob:hunter2']", "hunter2"),
    ("Headers([('host', 'x'), ('authorization', 'Bearer abcd1234')])", "abcd1234"),
    ("[(b'authorization', b'Bearer abcd1234')]", "abcd1234"),
    ("Headers([('x-api-key', 'abcd1234')])", "abcd1234"),
    ("[('cookie', 'session=abcd1234')]", "abcd1234"),
    (f"POST https://hooks.slack.com/services/T00000000/B00000000/{URL_PART} 404", URL_PART),
    (f"https:\\/\\/hooks.slack.com\\/services\\/T00000000\\/B00000000\\/{URL_PART}", URL_PART),
    (f"https://hooks.slack.com/triggers/T0/12/{some(32, '0123456789abcdef')}", "/12/"),
    (f"xoxb-123456789012-123456789012-{URL_PART}", URL_PART),
    (f"https://discord.com/api/webhooks/123456789012345678/{HOOK}", HOOK),
    (f"https://discordapp.com/api/v10/webhooks/123456789012345678/{HOOK}", HOOK),
    (f"Improper token {DISCORD} has been passed", DISCORD),
    (f"mfa.{HOOK}", HOOK),
    (f"https://api.telegram.org/bot1234567890:AA{TOKEN}/sendMessage", TOKEN),
    (f"https://acme.webhook.office.com/webhookb2/a@b/IncomingWebhook/{some(32, '0123456789abcdef')}/c", "IncomingWeb"),
    (f"SignatureDoesNotMatch for {AWS}", AWS),
    (f"Credentials(secret={AWS!r}, region='eu')", AWS),
]


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_no_secret_of_an_error_is_recorded(text: str, secret: str) -> None:
    """An error that names a secret is recorded without it, wherever it stands."""
    events: list[object] = []

    def attempt(_: rung.Request) -> None:
        raise RuntimeError(f"call failed: {text}\nsee above")

    policy = rung.policy("task", attempts=1)
    rung.recover_sync(attempt, "do it", policy=policy, listeners=[lambda event, _: events.append(to_json(event))])
    recorded = repr(events)
    assert secret not in recorded
    assert "<secret:" in recorded
    assert "see above" in recorded
