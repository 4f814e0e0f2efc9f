"""Each channel gets a notification in the documented form of its service; a refusal is told without a secret."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rung.adapters.alerts.delivery import check_channel, deliver, signed_headers
from rung.core.alerts.evaluation import Reading
from rung.core.alerts.notifications import Notification, new_notification
from rung.core.alerts.rules import AlertChannel, AlertRule, ChannelType, Metric
from rung.core.domain.errors import ConfigError
from tests.adapters.alerts.receiver import ROUTING_KEY, Receiver, receiving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HERE = {"127.0.0.1"}
NOW = 1_700_000_000.0
RULE = AlertRule(when=Metric.FAILURE_RATE, threshold=0.2, window=600.0, project="a<b>&*c*", name="failing")
FIRED = new_notification(RULE, "fired", "failing-1", Reading(0.25, "5 of 20."), NOW, url="https://rung.example/")
RESOLVED = new_notification(RULE, "resolved", "failing-1", Reading(0.0), NOW + 60)
TEST = new_notification(RULE, "test", "failing-test-1", Reading(None), NOW)
CHANNELS = {
    "slack": AlertChannel(type=ChannelType.SLACK, url_env="SLACK_URL", name="slack"),
    "teams": AlertChannel(type=ChannelType.TEAMS, url_env="TEAMS_URL", name="teams"),
    "pagerduty": AlertChannel(
        type=ChannelType.PAGERDUTY, url_env="PAGERDUTY_URL", key_env="PAGERDUTY_KEY", name="pagerduty"
    ),
    "webhook": AlertChannel(type=ChannelType.WEBHOOK, url_env="HOOK_URL", secret_env="HOOK_SECRET", name="webhook"),
}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


def send(receiver: Receiver, name: str, made: Notification) -> str:
    """Deliver to one of the receiver's services."""
    return deliver(CHANNELS[name], made, receiver.environment(), HERE, now=NOW)


@pytest.mark.parametrize("name", CHANNELS)
@pytest.mark.parametrize("made", [FIRED, RESOLVED, TEST], ids=lambda made: made.event)
def test_the_service_accepts_it(receiver: Receiver, name: str, made: Notification) -> None:
    """The body of every event is valid for the service, which knows what it is about."""
    assert send(receiver, name, made) == ""
    assert receiver.refused == []
    sent = json.dumps(receiver.events(name))
    assert "failing" in sent
    assert receiver.accepted[0].headers["user-agent"] == "rung"


@pytest.mark.parametrize("name", CHANNELS)
@pytest.mark.parametrize("url", ["https://rung.example", "https://rung.example/"])
def test_it_links_to_the_rule(receiver: Receiver, name: str, url: str) -> None:
    """Every service gets the address of the rule's page, whether the dashboard's address ends with a slash or not."""
    assert send(receiver, name, replace(FIRED, url=url)) == ""
    assert "https://rung.example/#/alerts?rule=failing" in json.dumps(receiver.events(name))
    assert replace(FIRED, url="").link == ""


@pytest.mark.parametrize("name", CHANNELS)
def test_a_long_notification_is_cut_to_the_limits(receiver: Receiver, name: str) -> None:
    """A very long project and detail stay within what the service accepts."""
    long = replace(FIRED, project="p" * 4_000, detail="d" * 4_000)
    assert send(receiver, name, long) == ""
    assert receiver.refused == []


def test_slack_reads_no_markup_from_a_name(receiver: Receiver) -> None:
    """What a project is called is text for Slack, not a mention or a link."""
    send(receiver, "slack", replace(FIRED, detail="<!channel>"))
    (body,) = receiver.events("slack")
    assert "<!channel>" not in json.dumps(body["blocks"][1:])
    assert "&lt;!channel&gt;" in body["text"]


def test_pagerduty_is_triggered_and_resolved_by_one_key(receiver: Receiver) -> None:
    """The end of an alert closes the page that its beginning opened; sent twice, there is one page."""
    send(receiver, "pagerduty", FIRED)
    send(receiver, "pagerduty", FIRED)
    assert list(receiver.open_pages) == ["failing-1"]
    assert receiver.open_pages["failing-1"]["payload"]["custom_details"]["value"] == 0.25
    send(receiver, "pagerduty", RESOLVED)
    assert receiver.open_pages == {}


def test_a_test_leaves_no_page_open(receiver: Receiver) -> None:
    """A test triggers an event of severity info and resolves it at once."""
    send(receiver, "pagerduty", TEST)
    assert [one["event_action"] for one in receiver.events("pagerduty")] == ["trigger", "resolve"]
    assert receiver.events("pagerduty")[0]["payload"]["severity"] == "info"
    assert receiver.open_pages == {}


def test_a_webhook_is_signed(receiver: Receiver) -> None:
    """The receiver can verify the signature, and the id is the same whenever it is sent again."""
    send(receiver, "webhook", FIRED)
    send(receiver, "webhook", FIRED)
    assert {one.headers["webhook-id"] for one in receiver.accepted} == {"failing-1-fired"}
    assert receiver.events("webhook")[0] == FIRED.to_json()


def test_a_wrong_signature_is_refused(receiver: Receiver) -> None:
    """Another secret gives another signature, which the receiver does not accept."""
    environment = {**receiver.environment(), "HOOK_SECRET": "another"}
    assert "400" in deliver(CHANNELS["webhook"], FIRED, environment, HERE, now=NOW)
    assert receiver.refused == ["webhook: webhook-signature"]


def test_the_signature_of_the_specification() -> None:
    """The example of the Standard Webhooks specification has the signature that it says."""
    headers = signed_headers(
        "msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}', "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", 1_614_265_330
    )
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_command_gets_json_on_standard_input(tmp_path: Path) -> None:
    """A command reads the notification, and nothing of it is on the command line."""
    out = tmp_path / "got.json"
    code = f"import sys; open({str(out)!r}, 'w').write(sys.stdin.read())"
    channel = AlertChannel(type=ChannelType.COMMAND, run=(sys.executable, "-c", code), name="command")
    assert deliver(channel, FIRED, {}, now=NOW) == ""
    assert json.loads(out.read_text()) == FIRED.to_json()


@pytest.mark.parametrize(
    ("run", "told"),
    [
        ((sys.executable, "-c", "import sys; sys.exit('no pager')"), "exit code 1: no pager"),
        (("/no/such/program",), "No such file"),
        ((sys.executable, "-c", "import time; time.sleep(60)"), "AttemptTimeout"),
    ],
)
def test_a_command_that_fails_is_told(run: tuple[str, ...], told: str) -> None:
    """A failing, missing or hanging command is a reason, not an exception."""
    channel = AlertChannel(type=ChannelType.COMMAND, run=run, timeout=0.5, name="command")
    assert told in deliver(channel, FIRED, {}, now=NOW)


def test_a_refusal_names_no_secret(receiver: Receiver) -> None:
    """Errors about an address or a key are told with the setting's name in its place."""
    receiver.failing = 1
    assert "503" in send(receiver, "slack", FIRED)
    secret = "http://127.0.0.1:1/services/T0SECRET"
    told = deliver(CHANNELS["slack"], FIRED, {"SLACK_URL": secret}, now=NOW)
    assert "T0SECRET" not in told
    assert "SLACK_URL" in told


@pytest.mark.parametrize(
    ("environment", "key"),
    [
        ({}, "alerts.channels.slack.url_env"),
        ({"SLACK_URL": " "}, "alerts.channels.slack.url_env"),
        ({"SLACK_URL": "http://169.254.169.254/latest"}, "alerts.channels.slack.url_env"),
        ({"SLACK_URL": "file:///etc/passwd"}, "alerts.channels.slack.url_env"),
    ],
)
def test_a_channel_is_checked_before_it_is_used(environment: dict[str, Any], key: str) -> None:
    """A variable that is not set, and one with an address that may not be used, are errors at the start."""
    with pytest.raises(ConfigError) as caught:
        check_channel(CHANNELS["slack"], environment)
    assert caught.value.key == key
    assert "latest" not in str(caught.value)


def test_pagerduty_has_its_public_address() -> None:
    """Without `url_env`, events go to PagerDuty's own endpoint."""
    channel = AlertChannel(type=ChannelType.PAGERDUTY, key_env="KEY", name="page")
    check_channel(channel, {"KEY": ROUTING_KEY})
