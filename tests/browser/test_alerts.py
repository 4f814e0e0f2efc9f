"""The alerts page: rules with state and value, history, tests and silences; and the budgets page."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from rung.core.alerts.evaluation import Reading
from rung.store import open_journal
from rung.store.alerts.states import record
from rung.wiring.settings_file import named
from tests.browser.conftest import up
from tests.browser.stage import Stage
from tests.browser.test_pages import LOOKS, look
from tests.trusting import write_trusted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Page

    from tests.browser.conftest import Service

SETTINGS = """
[alerts]
interval = 0.5
[alerts.channels.log]
type = "command"
run = ["tee", "{out}"]
[alerts.channels.bad]
type = "command"
run = ["sh", "-c", "cat >/dev/null; echo no such pager >&2; exit 3"]
[alerts.rules.failing]
when = "failure_rate"
threshold = 0.4
minimum = 2
channels = ["log"]
[alerts.rules.expensive]
when = "cost"
threshold = 500
channels = ["bad"]
[alerts.rules.stuck]
when = "stuck"
threshold = 50
project = "shop"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("alerts")


@pytest.fixture(scope="module")
def alerting(folder: Path) -> Iterator[Service]:
    """A service with alert rules, over a journal with failures."""
    write_trusted(folder / "rung.toml", SETTINGS.replace("{out}", str(folder / "out.json")))
    with Stage(folder / "journal.db") as stage, up("--no-gateway", journal=stage.place, folder=folder) as service:
        yield service


def test_rules_are_shown_with_what_they_count(alerting: Service, open_page: Callable[..., Page]) -> None:
    """A rule that fires is shown with its value, which leads to the incidents behind it, and is in the history."""
    page = open_page(alerting, "/alerts")
    row = page.locator("section[aria-label=Rules]").locator("tr", has_text="failing")
    expect(row.locator(".badge")).to_have_text("firing")
    expect(page.locator(".page-head-text p")).to_have_text("1 of 3 rules firing")
    expect(page.get_by_role("navigation", name="Pages").get_by_role("link", name="Alerts 1 firing")).to_be_visible()
    history = page.locator("section[aria-label=History]")
    expect(history.locator(".badge", has_text="log sent")).to_be_visible()
    expect(history).to_contain_text("attempts failed.")
    row.locator("td.number a").click()
    expect(page.locator("h1")).to_have_text("Incidents")
    expect(page.locator("table.incidents tbody tr").first).to_be_visible()


def test_a_rule_is_tested(alerting: Service, folder: Path, open_page: Callable[..., Page]) -> None:
    """The button sends a test; a channel that refuses it is named with its reason, and the history has both."""
    page = open_page(alerting, "/alerts")
    page.get_by_role("button", name="Test failing").click()
    expect(page.locator(".toast")).to_contain_text("Test sent to log")
    assert json.loads((folder / "out.json").read_text())["rule"] == "failing"
    page.get_by_role("button", name="Test expensive").click()
    expect(page.locator(".toast.failed")).to_contain_text("bad: RuntimeError: exit code 3: no such pager")
    history = page.locator("section[aria-label=History]")
    expect(history.locator(".badge", has_text="bad failed")).to_be_visible()
    page.get_by_role("link", name="expensive").click()
    expect(history.locator("tbody tr")).to_have_count(1)
    page.get_by_role("button", name="Remove filter: rule").click()
    expect(history.locator("tbody tr")).not_to_have_count(1)


def test_a_rule_is_silenced_and_woken(alerting: Service, open_page: Callable[..., Page]) -> None:
    """A silence is chosen from a list, shown with its end, and ended by a click."""
    page = open_page(alerting, "/alerts")
    page.get_by_role("combobox", name="Silence stuck").select_option("120")
    expect(page.locator(".toast")).to_contain_text("stuck is silenced until")
    page.get_by_role("button", name="End the silence of stuck").click()
    expect(page.get_by_role("combobox", name="Silence stuck")).to_be_visible()


def test_a_rule_that_is_cooling_down_is_not_shown_as_ok(tmp_path: Path, open_page: Callable[..., Page]) -> None:
    """A rule over its threshold within its cooldown has a state of its own, which says that it may fire again."""
    text = "[alerts.rules.rested]\nwhen = 'failure_rate'\nthreshold = 0.4\nminimum = 2\n"
    write_trusted(tmp_path / "rung.toml", text)
    settings = named(tmp_path / "rung.toml").alerts()
    assert settings is not None
    with Stage(tmp_path / "journal.db") as stage:
        with open_journal(stage.place) as journal:
            for value in (1.0, 0.0):  # it fires and is resolved
                record(journal, settings.rules["rested"], settings, Reading(value), now=None)
        with up("--no-gateway", journal=stage.place, folder=tmp_path) as service:
            page = open_page(service, "/alerts")
            row = page.locator("section[aria-label=Rules]").locator("tr", has_text="rested")
            expect(row.locator(".badge")).to_have_text("cooling down")
            expect(row).to_contain_text("over the threshold; may fire again at")
            expect(page.locator(".page-head-text p")).to_have_text("1 rule, none firing, 1 cooling down")
            page.close()  # before the service that it polls


def test_alerts_of_a_file_that_is_not_trusted(tmp_path: Path, open_page: Callable[..., Page]) -> None:
    """The page says that alerts are off, and shows the command that trusts the file, instead of how to add rules."""
    (tmp_path / "rung.toml").write_text("[alerts.rules.r]\nwhen = 'cost'\nthreshold = 5\n")
    with Stage(tmp_path / "journal.db") as stage, up("--no-gateway", journal=stage.place, folder=tmp_path) as service:
        page = open_page(service, "/alerts")
        expect(page.locator(".empty h2")).to_have_text("Alerts are off")
        expect(page.locator(".empty pre")).to_have_text(f"rung trust {tmp_path}/rung.toml")
        look(page, "alerts-off")
        page.close()  # before the service that it polls


@pytest.mark.parametrize("looks", LOOKS)
def test_the_page_can_be_used_by_everybody(looks: str, alerting: Service, open_page: Callable[..., Page]) -> None:
    """With rules and history it fits every screen, in both themes, without a serious accessibility violation."""
    page = open_page(alerting, "/alerts", **LOOKS[looks])
    expect(page.locator("section[aria-label=History]").locator("tbody tr").first).to_be_visible()
    look(page, f"alerts-rules-{looks}")


def test_a_budget_is_set_and_watched(alerting: Service, open_page: Callable[..., Page]) -> None:
    """Limits are saved, spending is shown against them and leads to the sessions that spent it."""
    page = open_page(alerting, "/budgets")
    expect(page.locator(".empty h2")).to_have_text("No budgets")
    page.get_by_label("All projects, per month").fill("0.05")
    page.get_by_role("button", name="Add a project").click()
    page.get_by_label("Project", exact=True).fill("shop")
    page.get_by_label("Per month", exact=True).fill("100")
    page.get_by_role("button", name="Save").click()
    rows = page.get_by_role("region", name="Spending").locator("li")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("$0.04 of $0.05, 80 %")
    rows.first.get_by_role("button", name="Acknowledge").click()
    expect(rows.first.get_by_role("button", name="Acknowledge")).to_have_count(0)
    look(page, "budgets-set")
    rows.nth(1).get_by_role("link", name="shop").click()
    expect(page.locator("h1")).to_have_text("Sessions")
    expect(page.locator(".grid-row").first).to_be_visible()
    assert "project=shop" in page.url
