"""Sentences that say in their own words when a limit reopens are read; sentences with other times are not."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from rung.core.classify.classifier import classify
from rung.core.domain.failures import Kind

LISBON = ZoneInfo("Europe/Lisbon")
NOW = datetime(2026, 7, 13, 14, 0, tzinfo=LISBON).timestamp()  # a Monday
HOUR, DAY = 3_600.0, 86_400.0


def wait(text: str) -> float | None:
    """The wait that is read from an error with status 429."""
    return classify({"status": 429, "message": text}, NOW, LISBON).retry_after


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Usage limit reached. Your access will be restored in 3 hours.", 3 * HOUR),
        ("Quota exceeded: it refreshes in 1 day, 2 hours and 5 minutes", DAY + 2 * HOUR + 300),
        ("You are out of credits. They renew in 12 days.", 12 * DAY),
        ("You can use Claude Opus again in an hour (limit reached)", HOUR),
        ("Daily limit reached; come back in half an hour", 1_800.0),
        ("Rate limit: you are blocked for 10 minutes", 600.0),
        ("Usage limit: time remaining: 4h 12m", 4 * HOUR + 720),
        ("Limit reached. Resets: 2h13m", 2 * HOUR + 780),
        ("Limit reached. 3h 20m left until your limit resets", 3 * HOUR + 1_200),
        ("Usage limit reached (5 hours 3 minutes until reset)", 5 * HOUR + 180),
        ("Quota exhausted, next reset in 02:13:45", 2 * HOUR + 13 * 60 + 45),
        ("quota exhausted, reset after PT5H30M", 5 * HOUR + 1_800),
        ("limit reached, available again in P3DT4H", 3 * DAY + 4 * HOUR),
        ("Too many requests. Please wait approximately 45 seconds and retry.", 45.0),
        ("Limit exceeded. You will be able to send messages again in about 2 hours.", 2 * HOUR),
        ("rate limit hit, retry in 1,234 seconds", 1_234.0),
        ("rate limit hit: cooldown 90s", 90.0),
        ("Rate limit reached. Cooling down, will resume in 5m", 300.0),
        ("Se alcanzó el límite de uso. Inténtalo de nuevo en 3 horas.", 3 * HOUR),
        ("Limite de uso atingido. Tente novamente em 45 minutos.", 2_700.0),
        ("Limite d'utilisation atteinte. Réessayez dans 2 h 30", 2 * HOUR + 1_800),
        ("Nutzungslimit erreicht. Dein Limit wird in 3 Stunden zurückgesetzt.", 3 * HOUR),
        ("Достигнут лимит запросов. Повторите попытку через 15 минут.", 900.0),
        ("已达到使用上限，请在 3 小时后重试。", 3 * HOUR),
        ("利用制限に達しました。30分後に再試行してください。", 1_800.0),
        ("사용 한도에 도달했습니다. 2시간 후에 다시 시도하세요.", 2 * HOUR),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    """A duration near a verb of reopening is the wait, in any unit order and in several languages."""
    assert wait(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Usage limit reached. Your quota refreshes tomorrow at 9:00.", "2026-07-14 09:00"),
        ("You've used all credits. They will be replenished next Monday at 8am", "2026-07-20 08:00"),
        ("Limit reached: access will be restored on July 20 at 15:30", "2026-07-20 15:30"),
        ("You are rate limited for this workspace until 18:00", "2026-07-13 18:00"),
        ("Quota exhausted. Next reset: 2026-07-14T00:00:00Z", "2026-07-14 01:00"),
        ("Quota exhausted. Next reset at 1783986000", "2026-07-14 00:40"),
        ("Premium requests used up. Your allowance resets on the 1st of each month.", "2026-08-01 00:00"),
        ("Monthly limit reached; renews on the first of next month at 00:00 UTC", "2026-08-01 01:00"),
        ("Free tier limit reached, resets daily at midnight UTC", "2026-07-14 01:00"),
        ("usage limit: you can continue using it at 4:15 PM", "2026-07-13 16:15"),
        ("Weekly limit hit. It resets every Thursday at 07:00", "2026-07-16 07:00"),
        ("limit reached; the next window starts at 5pm", "2026-07-13 17:00"),
        ("limit exceeded, reset=1783955400", "2026-07-13 16:10"),
        ("Usage limit reached, resets 28.07.2026 15:00", "2026-07-28 15:00"),
        ("Limit reached. Resets Tue, 14 Jul 2026 06:34:00 GMT", "2026-07-14 07:34"),
        (
            "Limit reached. Resets at Tue Jul 14 2026 06:34:00 GMT+0200 (Central European Summer Time)",
            "2026-07-14 05:34",
        ),
        ("limit reached, resets at 6pm Asia/Tokyo", "2026-07-14 10:00"),
        ("limit reached, resets at 18:00 Beijing time", "2026-07-14 11:00"),
        ("Limite atteinte. Réinitialisation à 15h30.", "2026-07-13 15:30"),
        ("Nutzungslimit erreicht. Es wird um 15:00 Uhr zurückgesetzt.", "2026-07-13 15:00"),
        ("已达到 5 小时的使用上限。您的限额将在 2026-07-13 23:41:44 重置。", "2026-07-13 16:41"),
        ("[1308][Usage limit reached for 5 hour. Your limit will reset at 2026-07-13 23:41:44]", "2026-07-13 16:41"),
        ("额度已用完，重置时间：2026年7月14日 08:00", "2026-07-14 08:00"),
        ("利用上限に達しました。午後3時20分にリセットされます。", "2026-07-13 15:20"),
        ("사용량 한도에 도달했습니다. 오후 3시에 초기화됩니다.", "2026-07-13 15:00"),
        ("Достигнут лимит. Сброс в 15:30.", "2026-07-13 15:30"),
        ("Достигнут лимит. Он обновится завтра в 9:00", "2026-07-14 09:00"),
    ],
)
def test_times(text: str, expected: str) -> None:
    """A time of day, weekday, day of the month, date or timestamp near a verb of reopening is the reset."""
    seconds = wait(text)
    assert seconds is not None
    assert f"{datetime.fromtimestamp(NOW + seconds, LISBON):%Y-%m-%d %H:%M}" == expected


# Times that are none of a reset. Each error is a rate limit, so only the sentence can tell.
OTHER_TIMES = [
    "2026-07-13 14:30:05 ERROR 429 Too Many Requests: rate limit exceeded",
    "2026-07-13T14:30:05.123Z WARN rate limit exceeded (attempt 3 of 5)",
    "[15:30:05] rate limit exceeded; worker 3 started at 16:00",
    "Jul 13 15:02:11 host app[991]: rate limit exceeded",
    "INFO 07-13 15:02:11 engine.py:204] rate limit exceeded",
    "rate limit exceeded\nDate: Mon, 13 Jul 2026 17:28:00 GMT",
    "rate limit exceeded; Last-Modified: Mon, 13 Jul 2026 17:28:00 GMT",
    "rate limit exceeded: connection reset at 16:30:05 by peer",
    "rate limit exceeded, stream reset after 30 s",
    "quota exceeded; the counter was reset at 3:15pm",
    "quota exceeded; your usage has been reset at 3:15pm yesterday",
    "rate limit exceeded. Last reset: 15:00",
    "rate limit exceeded. last reset 2 hours ago",
    "usage limit: run it again on Tuesday with a smaller input",
    "usage limit reached, keep the logs until 6pm",
    "rate limit exceeded after 15:00 minutes of use",
    "rate limit exceeded after 30 seconds of streaming",
    "usage limit reached for gemini-2.5-pro, resets 3 times a day",
    "usage limit reached, resets in a while",
    "usage limit resets 25:00",
    "usage limit resets 13pm",
    "usage limit resets Foo 3",
    "usage limit resets Jul 45",
    "Limit reached. Limits reset every 5 hours.",
    "Limit reached. The limit resets each 24 hours on a rolling window.",
    "You have reached the limit of 50 requests per 3 hours. Please try again later.",
    "Rate limit of 60 requests in 1 minute exceeded. Try again later.",
    "Limit reached: 100 requests per day. Please wait and retry.",
    "usage limit reached, please wait a moment and try again",
    "usage limit reached. Please try again in a few minutes.",
    "usage limit reached. Please try again tomorrow.",
    "usage limit reached. Come back next week.",
    "usage limit reached. Your limit resets next month.",
    "usage limit reached. Resets soon.",
    "You've used 100% of your 5-hour limit",
    "You've used 85% of your weekly limit, 4 of 5 sessions",
    "limit exceeded for model claude-opus-4-5-20251101, try again later",
    "limit exceeded for gpt-4o-2024-08-06 on tokens per min (TPM): Limit 30000, Used 29950, Requested 1200. Try again later.",
    "rate limit exceeded (request id req_011CRzJ8m3pm): retry later",
    "rate limit exceeded for 10.0.0.12:3128, retry later",
    "rate limit exceeded, see https://example.com/docs/2026/07/14/limits for when it resets",
    "rate limit exceeded, available plans: Pro 20 $, Max 5x, Max 20x",
    "rate limit exceeded; available at https://example.com:8443/usage",
    "quota exceeded; support is available 24/7",
    "quota exceeded; available in 5 regions",
    "quota exceeded; the model is available on 3 platforms",
    "usage limit reached. Your subscription started on July 2, 2025.",
    "usage limit reached. Your plan was renewed on July 2.",
    "usage limit reached. Your card expires 07/28",
    "usage limit reached. Support answers from 9am to 5pm",
    "usage limit reached. The job ran for 2 hours before it stopped",
    "usage limit reached. Elapsed: 3h 20m",
    "usage limit reached. The task took 45 minutes.",
    "usage limit reached. Session started at 1:00 PM",
    "usage limit reached at 3:15pm",
    "usage limit reached on July 20",
    "rate limit reached, since 3pm",
    "quota exceeded; cached until 6pm",
    "quota exceeded; token valid until 2026-07-14T00:00:00Z",
    "quota exceeded; certificate expires at 2026-07-20T00:00:00Z",
    "quota exceeded. Request timed out after 600 seconds",
    "quota exceeded. Limits were raised until Jul 20 for Max plans.",
    "quota exceeded. Try the new model, out on July 20",
    "quota exceeded. Try again with a prompt of at most 3 days of logs",
    "quota exceeded. Try again with at most 5 m tokens",
    "quota exceeded. We will not retry in 5 minutes",
    "已达到 5 小时的使用上限，请稍后重试",
    "每 5 小时重置一次的限额已用完",
    "利用制限に達しました。しばらくしてから再試行してください。",
    "Nutzungslimit erreicht. Das Limit gilt in 5 Stunden für 100 Anfragen.",
    "the page resets at 3pm",
    "resets 7/8/2026 (usage limit)",
    "usage limit resets at 16:30 IST",
    "usage limit resets at 2026-07-13 16:30:00",
    "usage limit resets Dec 24",
    "rate limit exceeded, retry 3 of 5 after 20 tries",
    "rate limit exceeded\n  Retrying in 26 seconds… (attempt 5/10)",
    "limits reset on 07/08",
]


@pytest.mark.parametrize("text", OTHER_TIMES)
def test_other_times_are_not_resets(text: str) -> None:
    """Times of log lines, periods of a limit, past resets, dates of other things and vague words give no wait."""
    assert wait(text) is None


def test_there_are_enough_of_them() -> None:
    """At least sixty sentences with other times are held."""
    assert len(set(OTHER_TIMES)) >= 60


@pytest.mark.parametrize(
    ("text", "kind", "seconds"),
    [
        ("Limit reached for Opus. Resets in 3h.", Kind.QUOTA_EXHAUSTED, 3 * HOUR),
        ("You have used all of your messages for today. Come back in 5 hours.", Kind.QUOTA_EXHAUSTED, 5 * HOUR),
        ("No messages left. Next message available in 20 minutes.", Kind.RATE_LIMIT, 1_200.0),
        ("Model capacity reached for your plan, available in 12 minutes", Kind.RATE_LIMIT, 720.0),
        ("You've run out of premium requests. They reset on July 14.", Kind.QUOTA_EXHAUSTED, 10 * HOUR),
        ("Your organization has hit its spending cap until Jul 14", Kind.QUOTA_EXHAUSTED, 10 * HOUR),
        ("Weekly cap reached · back Tuesday 9am", Kind.QUOTA_EXHAUSTED, 19 * HOUR),
        ("limit reached; resets_in=7200s", Kind.QUOTA_EXHAUSTED, 2 * HOUR),
        ("Too many requests: resets_at=2026-07-13T15:00:00Z", Kind.RATE_LIMIT, 2 * HOUR),
        ('{"error":"rate_limited","retry_in":"45s"}', Kind.RATE_LIMIT, 45.0),
        ('{"detail":"Rate limit exceeded","wait_time":12}', Kind.RATE_LIMIT, 12.0),
        ("maximum recursion limit reached, try again with a smaller input", Kind.UNKNOWN, None),
        ("connection limit reached for the pool, wait until one is available", Kind.UNKNOWN, None),
        ("Claude Opus 4 limit reached, now using Sonnet 4", Kind.UNKNOWN, None),
    ],
)
def test_a_limit_without_a_status(text: str, kind: Kind, seconds: float | None) -> None:
    """A text alone is a limit if it says that a limit is over and when it reopens; other limits stay unknown."""
    failure = classify(text, NOW, LISBON)
    assert (failure.kind, failure.retry_after) == (kind, seconds)
