"""The incident, inbox, analytics and policy pages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from rung.wiring.settings_file import find

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    from tests.browser.conftest import Service
    from tests.browser.stage import Stage


def test_an_incident_is_drawn_as_a_ladder(service: Service, open_page: Callable[..., Page]) -> None:
    """An incident shows the rung that recovered it, the request changes as a diff, and the outcome."""
    page = open_page(service, "/sessions/mended-1")
    page.locator(".sidebar .list-link").first.click()
    expect(page.locator(".rung.ended-success")).to_contain_text("nudge")
    expect(page.locator(".rung.ended-success")).to_contain_text("1 of 3 tries")
    expect(page.locator(".rung.ahead")).to_have_count(5)  # two of them wait: for a limit, for a failing service
    expect(page.locator(".rung.skipped")).to_contain_text("retry")
    page.locator("summary", has_text="Request changes").click()
    expect(page.locator(".diff").first).to_contain_text("cart.py")
    expect(page.locator(".outcome-fields")).to_contain_text("recovered")
    page.get_by_role("button", name="JSON").click()
    expect(page.locator("pre", has_text="escalationPath")).to_be_visible()


def test_an_incident_is_live(service: Service, stage: Stage, open_page: Callable[..., Page]) -> None:
    """A running incident shows its current rung and a countdown, and updates when it ends."""
    again = stage.waits("limited-9", seconds=8)
    page = open_page(service, "/sessions/limited-9")
    page.locator(".sidebar .list-link").first.click()
    expect(page.locator(".rung.here.live")).to_contain_text("retry")
    expect(page.locator(".next-attempt .countdown")).to_have_text(re.compile(r"in \d+ s"))
    assert again.wait(20)
    expect(page.locator("h1 + .badge")).to_have_text("recovered")
    expect(page.locator(".rung.ended-success")).to_contain_text("retry")


def test_a_question_is_answered_in_the_inbox(service: Service, stage: Stage, open_page: Callable[..., Page]) -> None:
    """A question appears in the inbox, and its answer resumes the waiting agent."""
    stage.asks("asking-1")
    page = open_page(service, "/inbox")
    question = page.locator(".inbox-item", has_text="hand over from small to large")
    expect(question).to_be_visible()
    expect(page.locator(".bubble")).to_contain_text(re.compile(r"\d"))
    question.get_by_label("Note").fill("go ahead")
    question.get_by_role("button", name="Continue with large").click()
    expect(question).to_have_count(0)
    page.goto(service.url("/sessions/asking-1"))
    expect(page.locator("h1 + .badge")).to_have_text("recovered")
    expect(page.locator(".turn.recovered")).to_contain_text("large")


def test_a_group_that_comes_back_is_in_the_inbox(
    service: Service, stage: Stage, open_page: Callable[..., Page]
) -> None:
    """A resolved failure group that recurs appears in the inbox and can be resolved there."""
    page = open_page(service, "/analytics")
    group = page.locator(".groups tr", has_text="invalid x-api-key").first
    group.get_by_role("button", name="Resolve").click()
    expect(group).to_contain_text("resolved")
    stage.failed("broken-2")
    expect(group).to_contain_text("regression")
    page.goto(service.url("/inbox"))
    back = page.locator(".inbox-item", has_text="occurs again after it was resolved")
    back.get_by_role("button", name="Resolve").click()
    expect(back).to_have_count(0)


def test_a_webhook_can_be_set(service: Service, open_page: Callable[..., Page]) -> None:
    """An invalid webhook URL shows an error beside the field; a valid one is saved."""
    page = open_page(service, "/inbox", expects="422")
    field = page.get_by_label("Webhook URL")
    field.fill("ftp://example.invalid/hook")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".setting .error-text")).to_contain_text("webhook")
    field.fill("http://192.0.2.9:9/hook")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Webhook saved")).to_be_visible()
    page.reload()
    expect(field).to_have_value("http://192.0.2.9:9/hook")


def test_every_chart_leads_to_its_incidents(demo: Service, open_page: Callable[..., Page]) -> None:
    """The label of every bar, every day and every group links to its incidents."""
    charts = {
        ".days a": "since=",
        ".bars[aria-label='Failures by kind'] a": "kind=",
        ".bars[aria-label='Recoveries by rung'] a": "rung=",
        ".groups a.row-name": "fingerprint=",
        ".bar:has(.outcome-bar) a": "kind=",
        ".bars[aria-label='Escalation by model'] a": "rung=",
    }
    page = open_page(demo, "/analytics?period=all")
    for chart, leads in charts.items():
        page.goto(demo.url("/analytics?period=all"))
        for each in charts:  # a chart that appears later would move the others while one is being clicked
            expect(page.locator(each).first).to_be_visible()
        page.locator(chart).last.click() if chart == ".days a" else page.locator(chart).first.click()
        page.wait_for_url(re.compile(f"#/incidents.*{leads}"))
        expect(page.locator(".incidents tbody tr").first).to_be_visible()


def test_failures_can_be_told_apart_by_anything(demo: Service, open_page: Callable[..., Page]) -> None:
    """Failures can be grouped by kind, model, project, prompt and tool, and the choice is part of the URL."""
    page = open_page(demo, "/analytics?period=all")
    axes = {
        "model": ("model", "swift-1"), "project": ("project", "checkout"), "prompt": ("pattern", "review"),
        "recovery prompt": ("prompt", "nudge"),
    }  # fmt: skip
    for name, (axis, shown) in axes.items():
        page.get_by_role("button", name=name, exact=True).click()
        expect(page.locator(f".bars[aria-label='Failures by {axis}']")).to_contain_text(shown)
        assert f"by={axis}" in page.url
    page.locator(".bars[aria-label='Failures by prompt'] a").first.click()
    page.wait_for_url(re.compile("#/incidents.*prompt="))
    expect(page.locator(".incidents tbody tr").first).to_be_visible()
    page.goto(demo.url("/analytics?by=pattern"))
    page.locator(".bars[aria-label='Failures by pattern'] a").first.click()
    page.wait_for_url(re.compile("#/incidents.*pattern="))
    expect(page.locator(".incidents tbody tr").first).to_be_visible()
    page.goto(demo.url("/analytics"))
    page.get_by_label("Project").select_option("docs")
    page.reload()
    expect(page.get_by_label("Project")).to_have_value("docs")


def test_the_journal_can_be_exported(demo: Service, open_page: Callable[..., Page]) -> None:
    """The export menu downloads a file."""
    page = open_page(demo, "/analytics")
    page.locator(".menu summary").click()
    with page.expect_download() as loading:
        page.locator(".menu a", has_text="CSV").first.click()
    text = loading.value.path().read_text()
    assert text.startswith("id,")
    assert text.count("\n") > 10


def test_form_and_toml_are_one_draft(service: Service, open_page: Callable[..., Page]) -> None:
    """Form and TOML stay in sync, errors appear beside the field, and saving shows a diff first."""
    page = open_page(service, "/policies?project=shop")
    toml = page.get_by_label("Policy as TOML")
    page.get_by_label("Retries", exact=True).fill("5")
    expect(toml).to_have_value(re.compile(r"retries = 5"))
    expect(page.locator(".wait-chart li")).to_have_count(5)
    toml.fill("retries = 2\ndollars = 1.5\n")
    expect(page.get_by_label("Retries", exact=True)).to_have_value("2")
    expect(page.get_by_label("Dollars")).to_have_value("1.5")
    expect(page.locator(".wait-chart li")).to_have_count(2)
    toml.fill("retries = -1\n")
    expect(page.locator("small .error-text")).to_contain_text("whole number")
    expect(page.get_by_role("button", name="Review and save")).to_be_disabled()
    toml.fill("retries = 2\n")
    page.get_by_role("button", name="Review and save").click()
    expect(page.locator("dialog .diff .add")).to_contain_text("retries = 2")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved. The policy applies")).to_be_visible()
    expect(page.locator("tr", has_text="retries").or_(page.locator("tr", has_text="ladder")).first).to_contain_text(
        "project override"
    )
    page.reload()
    expect(toml).to_have_value(re.compile("retries = 2"))


def test_two_people_do_not_overwrite_each_other(service: Service, open_page: Callable[..., Page]) -> None:
    """A concurrent change of the policy is reported when saving."""
    page = open_page(service, "/policies?project=team%2Frace", expects="412|409")
    page.get_by_label("Retries", exact=True).fill("4")
    expect(page.get_by_label("Policy as TOML")).to_have_value(re.compile("retries = 4"))
    service.request("PUT", "projects/team%2Frace/retry-policy", {"settings": {"retries": 1}}, {"If-Match": '"0"'})
    page.get_by_role("button", name="Review and save").click()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("dialog .error-text")).to_contain_text("Someone else")


def test_a_draft_survives_a_live_update(service: Service, open_page: Callable[..., Page]) -> None:
    """Another person's save keeps an open draft and is announced; the draft is compared with it before it is saved."""
    place = "projects/team%2Fdraft/retry-policy"
    page = open_page(service, "/policies?project=team%2Fdraft")
    toml, retries = page.get_by_label("Policy as TOML"), page.get_by_label("Retries", exact=True)
    expect(retries).to_be_visible()
    service.request("PUT", place, {"settings": {"retries": 1}}, {"If-Match": '"0"'})
    expect(toml).to_have_value(re.compile("retries = 1"))  # without a draft, the page follows
    retries.fill("4")
    expect(toml).to_have_value(re.compile("retries = 4"))
    service.request("PUT", place, {"settings": {"retries": 2}}, {"If-Match": '"1"'})
    expect(page.locator(".save-bar")).to_contain_text("Someone else saved this policy")
    expect(toml).to_have_value(re.compile("retries = 4"))
    expect(retries).to_have_value("4")
    page.get_by_role("button", name="Compare with it").click()
    page.get_by_role("button", name="Review and save").click()
    expect(page.locator("dialog .diff .remove")).to_contain_text("retries = 2")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved. The policy applies")).to_be_visible()
    expect(page.get_by_role("button", name="Review and save")).to_have_count(0)
    assert service.request("GET", place)["maxRetries"] == 4


def test_a_draft_survives_a_new_connection(service: Service, open_page: Callable[..., Page]) -> None:
    """When the live connection is made anew, everything is reloaded, and the draft stays."""
    place = "projects/team%2Fagain/retry-policy"
    leader = open_page(service, "/policies?project=team%2Fagain")
    page = leader.context.new_page()
    page.goto(service.url("/policies?project=team%2Fagain"))
    page.get_by_label("Retries", exact=True).fill("4")
    expect(page.get_by_label("Policy as TOML")).to_have_value(re.compile("retries = 4"))
    service.request("PUT", place, {"settings": {"retries": 1}}, {"If-Match": '"0"'})
    leader.close()  # the other page now reads the events
    expect(page.locator(".save-bar")).to_contain_text("Someone else saved this policy")
    expect(page.get_by_label("Policy as TOML")).to_have_value(re.compile("retries = 4"))
    page.get_by_role("button", name="Discard changes").click()
    expect(page.get_by_label("Policy as TOML")).to_have_value(re.compile("retries = 1"))


def test_a_policy_without_prices_promises_no_cost(service: Service, open_page: Callable[..., Page]) -> None:
    """The limits of a policy name dollars only where costs or a limit are set: an unknown price is not $0.00."""
    page = open_page(service, "/policies?project=team%2Fprices")
    limits = page.locator("p", has_text="Maximum per incident")
    page.get_by_label("Policy as TOML").fill('models = ["small", "large"]')
    expect(limits).to_contain_text("attempts")
    expect(limits).to_contain_text("no price known")
    page.get_by_label("Dollars").fill("2")
    expect(limits).to_contain_text("$2.00")
    page.get_by_role("button", name="Discard changes").click()


def test_a_draft_is_replayed_over_what_happened(demo: Service, open_page: Callable[..., Page]) -> None:
    """A template fills the draft, and the backtest reports on recorded incidents."""
    page = open_page(demo, "/policies")
    page.locator(".template", has_text="off").click()
    expect(page.get_by_label("Policy as TOML")).to_have_value(re.compile('template = "off"'))
    expect(page.locator(".template", has_text="off")).to_have_attribute("aria-pressed", "true")
    page.get_by_label("Period").select_option("30")
    page.get_by_role("button", name="Run backtest").click()
    expect(page.locator(".backtest .summary")).to_contain_text("Incidents replayed")
    expect(page.locator(".backtest .summary div", has_text="Incidents replayed")).not_to_contain_text(
        re.compile(r"replayed0$")
    )
    page.get_by_role("button", name="Discard changes").click()
    expect(page.get_by_role("button", name="Review and save")).to_have_count(0)


def test_whoever_may_only_read_is_told_so(service: Service, open_page: Callable[..., Page]) -> None:
    """With a read-only token, action buttons are disabled and the reason is shown."""
    made = service.request("POST", "tokens", {"name": "looker", "role": "read"})
    page = open_page(service, "/sessions/broken-1", expects="401|403")
    page.context.clear_cookies()
    page.goto(f"{service.address}?token={made['token']}")
    page.goto(service.url("/sessions/broken-1"))
    page.get_by_role("button", name="Escalate").click()
    expect(page.locator("dialog .disabled-reason")).to_have_text("Your token is read-only.")
    expect(page.locator("dialog .button.primary")).to_be_disabled()
    page.keyboard.press("Escape")
    page.goto(service.url("/policies"))
    expect(page.locator(".save-bar .disabled-reason")).to_have_text("Your token does not permit changing policies.")
    expect(page.get_by_label("Retries", exact=True)).to_be_disabled()


def test_a_stranger_is_asked_for_a_token(service: Service, open_page: Callable[..., Page]) -> None:
    """Without a cookie, the page asks for a token, rejects a wrong one and accepts the right one."""
    from tests.browser.conftest import TOKEN

    page = open_page(service, expects="401")
    expect(page.get_by_role("status").first).to_have_text(re.compile("live"))  # the sign-in has ended
    page.context.clear_cookies()
    page.goto(service.url("/inbox"))
    page.reload()
    expect(page.get_by_text("You are not signed in")).to_be_visible()
    page.get_by_label("Token").fill("not-the-right-token")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("unknown or expired token")
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("h1")).to_have_text("Inbox")


LOST = """() => {
  window.lostSeen = 0;
  const look = () => { if (document.body.innerText.includes("Connection to the service lost")) window.lostSeen += 1; };
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true, characterData: true });
  look();
}"""


def test_nobody_signed_in_is_no_lost_connection(service: Service, open_page: Callable[..., Page]) -> None:
    """Neither the sign-in form nor the page after signing in reports a lost connection, and the page is live at once."""
    from tests.browser.conftest import TOKEN

    page = open_page(service, expects="401")
    expect(page.get_by_role("status").first).to_have_text(re.compile("live"))
    page.context.clear_cookies()
    with page.expect_response(lambda response: response.url.endswith("/api/events")):
        page.reload()
    expect(page.get_by_text("You are not signed in")).to_be_visible()
    expect(page.locator(".connection")).to_have_text("signed out")
    page.evaluate(LOST)
    page.get_by_label("Token").fill(TOKEN)
    with page.expect_response(lambda response: response.url.endswith("/api/events") and response.ok, timeout=9_000):
        page.get_by_role("button", name="Sign in").click()  # a pause between connections is longer
    expect(page.locator(".connection")).to_have_text("live")
    assert page.evaluate("window.lostSeen") == 0


def test_settings_files_that_are_not_trusted_are_shown(
    service: Service, open_page: Callable[..., Page], tmp_path: Path
) -> None:
    """The policy page shows a rung.toml that was met, what it sets, and how to trust it, and offers no button for that."""
    (tmp_path / "rung.toml").write_text('journal = "<b>x</b>.db"\n')
    find(tmp_path, quiet=True)
    page = open_page(service, "/policies")
    row = page.locator("tr", has_text=str(tmp_path))
    expect(row).to_contain_text("undecided")
    expect(row).to_contain_text("journal")
    expect(row.locator("button")).to_have_count(0)
    expect(page.get_by_text("rung trust FILE")).to_be_visible()
