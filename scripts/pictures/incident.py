"""Take a picture of the dashboard's incident page: the real service over the demo world, in Chromium."""

from __future__ import annotations

import base64
import json
import os
import re
import runpy
import secrets
import signal
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).resolve().parents[2]
VIEWPORT: Final = {"width": 1280, "height": 800}
THUMBNAIL: Final = 64  # columns and rows that two pictures are compared by
PAST_SESSION: Final = re.compile(r"[a-z]+-\d{3}")  # live sessions have four digits
TIMEOUT_MS: Final = 60_000
# What differs from run to run: ages, times and dates, and the ids that contain one.
CHANGES: Final = (
    (r'File ".*?(/examples/\S+)", line \d+', r"File \1"),
    (r"\d+ ?(s|min|h|d|seconds?|minutes?|hours?|days?) ago", "AGO"),
    (r"\b\d{1,2}:\d{2}(:\d{2})?( [AP]M)?\b", "TIME"),
    (r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun)\w*\b,?", "DAY"),
    (r"\b(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\w* \d{1,2}(, \d{4})?", "DATE"),
    (r"\b[0-9a-f]{8,}\b", "ID"),
)


class Picture(NamedTuple):
    """The picture of a page, and the page's text without what differs from run to run."""

    png: bytes
    text: str


def take() -> Picture:
    """Return the picture of an incident of the demo world."""
    from playwright.sync_api import sync_playwright

    chromium = runpy.run_path(str(ROOT / "scripts" / "find_chromium.py"))["find"]()
    if chromium is None:
        raise RuntimeError("Chromium not found: `make browser` installs one, or set RUNG_CHROMIUM to its path")
    token = secrets.token_urlsafe(16)
    with _service(token) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = browser.new_context(viewport=VIEWPORT, locale="en-US", timezone_id="UTC", color_scheme="light")  # type: ignore[arg-type]  # a TypedDict
        page = context.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        page.goto(f"{address}?token={token}")
        page.goto(f"{address}#/incidents/{_incident(address, token)}")
        page.get_by_text("attempt 1").first.wait_for()
        page.evaluate("document.fonts.ready")
        pages = re.sub(
            r"\d+", "", "\n".join(page.locator("nav a").all_inner_texts())
        )  # without the counts of the moment
        text = normalised(f"{pages}\n{page.inner_text('main')}")
        picture = Picture(page.screenshot(animations="disabled"), text)
        browser.close()
    return picture


def normalised(text: str) -> str:
    """Return the text of a page, one line per line, without what differs from run to run."""
    for pattern, word in CHANGES:
        text = re.sub(pattern, word, text)
    return "\n".join(line.strip() for line in text.splitlines() if line.strip()) + "\n"


def difference(one: bytes, other: bytes) -> float:
    """Return how much two pictures differ: the mean difference of their thumbnails, from 0 to 1."""
    from playwright.sync_api import sync_playwright

    urls = ["data:image/png;base64," + base64.b64encode(picture).decode() for picture in (one, other)]
    chromium = runpy.run_path(str(ROOT / "scripts" / "find_chromium.py"))["find"]()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        result: float = browser.new_page().evaluate(_COMPARE, [*urls, THUMBNAIL])
        browser.close()
    return result


_COMPARE: Final = """async ([one, other, size]) => {
  const pixels = async (url) => {
    const image = new Image(); image.src = url; await image.decode();
    const context = Object.assign(document.createElement('canvas'), {width: size, height: size}).getContext('2d');
    context.drawImage(image, 0, 0, size, size);
    return context.getImageData(0, 0, size, size).data;
  };
  const [a, b] = [await pixels(one), await pixels(other)];
  return a.reduce((sum, value, index) => sum + Math.abs(value - b[index]), 0) / (a.length * 255);
}"""


def _incident(address: str, token: str) -> str:
    """Return the id of the past incident that recovered by a new plan after most attempts; every run has the same one."""
    answer = _get(address, token, "incidents?status=recovered&rung=replan&limit=500")
    past = [item for item in answer["items"] if item["ladder"] == "task" and PAST_SESSION.fullmatch(item["session"])]
    return str(max(past, key=lambda item: (item["attempts"], item["session"]))["id"])


def _get(address: str, token: str, path: str) -> Any:
    request = urllib.request.Request(f"{address}api/{path}", headers={"Authorization": f"Bearer {token}"})  # noqa: S310  # loopback
    with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310  # loopback
        return json.load(response)


@contextmanager
def _service(token: str) -> Iterator[str]:
    """Start the service over the demo world, as `make run` does, and yield its address."""
    process = subprocess.Popen(  # noqa: S603  # own command
        [sys.executable, "-m", "examples.demo_world", "--port", "0", "--token", token],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert process.stdout is not None  # noqa: S101  # a pipe was asked for
    try:
        for line in process.stdout:
            if match := re.search(r"(http://\S+/)\?token=", line):
                yield match[1]
                return
        raise RuntimeError("the demo world did not start")
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
        process.stdout.close()
