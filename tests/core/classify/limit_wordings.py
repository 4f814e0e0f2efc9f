"""Wordings of plan and usage limits from public issues, each with its source and the reset that it names.

`TUNED` was collected first, and the readers were written for it. `HELD_OUT` was collected afterwards, with other
searches, and measured before anything was changed for it.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple


class Wording(NamedTuple):
    """One message. `at`: local time when it was seen; `reset`: local time of the reset, or None if it names none.

    `seconds` replaces `reset` for a message that names a duration. `headers` are those of the response.
    """

    source: str
    text: str
    at: str
    zone: str
    reset: str | None = None
    seconds: float | None = None
    headers: dict[str, str] = {}  # noqa: RUF012  # never changed


def _wording(source: str, text: str, at: str, zone: str, reset: str | None = None, **more: Any) -> Wording:
    return Wording(source, text, at, zone, reset, **more)


TUNED: Final = (
    _wording(
        "anthropics/claude-code#77082",
        "You've hit your session limit · resets 8:30pm (Asia/Tokyo)",
        "2026-07-13 15:50", "Asia/Tokyo", "2026-07-13 20:30",
    ),
    _wording(
        "anthropics/claude-code#74079",
        "You've hit your session limit · resets 12:50am (America/Los_Angeles)",
        "2026-07-04 05:20", "Europe/Berlin", "2026-07-04 09:50",  # the machine's zone is another
    ),
    _wording(
        "anthropics/claude-code#54698",
        "You've hit your limit · resets 1:30am (Asia/Dhaka)",
        "2026-04-29 20:58", "Asia/Dhaka", "2026-04-30 01:30",
    ),
    _wording(
        "aniketkarne/CCAutoRenew#3",
        "Claude usage limit reached. Your limit will reset at 12am.",
        "2025-07-15 20:10", "America/New_York", "2025-07-16 00:00",
    ),
    _wording(
        "anthropics/claude-code#2087",
        "Claude AI usage limit reached|1749924000",
        "2025-06-14 10:00", "America/New_York", "2025-06-14 14:00",
    ),
    _wording(
        "anthropics/claude-code#2087 (terminal)",
        "Claude usage limit reached. Your limit will reset at 1pm (Etc/GMT+5).",
        "2025-06-14 10:00", "America/New_York", "2025-06-14 14:00",
    ),
    _wording(
        "anthropics/claude-code#80062",
        "You’ve hit your limit for Claude messages. Limits will reset at 9:30 AM.  View your usage details.",
        "2026-07-22 05:12", "Europe/London", "2026-07-22 09:30",
    ),
    _wording(
        "anthropics/claude-code#69160",
        "You've hit your session limit · resets 3:20am (Asia/Calcutta)",
        "2026-06-17 22:30", "Asia/Calcutta", "2026-06-18 03:20",
    ),
    _wording(
        "anthropics/claude-code#10333 (last week)",
        "Opus weekly limit reached ∙ resets Oct 24",
        "2025-10-20 11:00", "America/Chicago", "2025-10-24 00:00",
    ),
    _wording(
        "anthropics/claude-code#10333",
        "Opus weekly limit reached ∙ resets Oct 31, 9am",
        "2025-10-25 18:00", "America/Chicago", "2025-10-31 09:00",
    ),
    _wording(
        "anthropics/claude-code#92834",
        "You've hit your weekly limit · resets Sep 15 at 7pm",
        "2026-09-08 20:00", "UTC", "2026-09-15 19:00",
    ),
    _wording(
        "anthropics/claude-code#12308",
        "5-hour limit reached · resets 2pm (Pacific/Auckland) · /upgrade to Max 20x or turn on /extra-usage",
        "2025-11-25 11:00", "Pacific/Auckland", "2025-11-25 14:00",
    ),
    _wording(
        "anthropics/claude-code#6918",
        "5hour limit reached, resets at 9pm",
        "2025-08-31 18:10", "Europe/Berlin", "2025-08-31 21:00",
    ),
    _wording(
        "anthropics/claude-code#75243",
        "● Teammate @bhost failed: You've hit your session limit · resets 5:20am (America/Denver)\n"
        "  ⎿  You've hit your session limit · resets 5:20am (America/Denver)\n"
        "     /usage-credits to finish what you’re working on.\n"
        "✻ Claude resuming /loop wakeup (Jul 7 4:35am)\n"
        "  ⎿  You've hit your session limit · resets 5:20am (America/Denver)\n",
        "2026-07-07 04:35", "America/Denver", "2026-07-07 05:20",
    ),
    _wording(
        "anthropics/claude-code#12829 and Wei-Shaw/claude-relay-service#1260 (headers)",
        '{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your account\'s rate '
        'limit. Please try again later."}}',
        "2026-09-05 02:00", "UTC", "2026-09-05 05:40",
        headers={
            "anthropic-ratelimit-unified-status": "rejected",
            "anthropic-ratelimit-unified-5h-status": "rejected",
            "anthropic-ratelimit-unified-5h-reset": "1788586800",
            "anthropic-ratelimit-unified-7d-status": "allowed",
            "anthropic-ratelimit-unified-7d-reset": "1788937200",
            "anthropic-ratelimit-unified-representative-claim": "seven_day",
            "anthropic-ratelimit-unified-reset": "1788937200",
        },
    ),
    _wording(
        "openai/codex#3899",
        "■ You've hit your usage limit. Upgrade to Pro (https://openai.com/chatgpt/pricing) or try again in 5 days 22 hours"
        " 11\nminutes.",
        "2025-09-19 10:00", "UTC", seconds=511_860,
    ),
    _wording(
        "openai/codex#3124",
        "You've hit your usage limit. Upgrade to Pro (https://openai.com/chatgpt/pricing) or try again in 2 days 17 hours "
        "14 minutes.",
        "2025-09-03 10:00", "UTC", seconds=234_840,
    ),
    _wording(
        "openai/codex#28089",
        "You've hit your usage limit. Upgrade your plan to continue, or try again at 10 de jul. de 2026, 11:52.",
        "2026-06-13 12:07", "America/Sao_Paulo", "2026-07-10 11:52",
    ),
    _wording(
        "openai/codex#28089 (banner)",
        "Você atingiu o limite de mensagens do Codex. Seu limite de uso será redefinido em 10 de jul. de 2026, 11:52.",
        "2026-06-13 12:07", "America/Sao_Paulo", "2026-07-10 11:52",
    ),
    _wording(
        "openai/codex#26668",
        "You've hit your usage limit. Upgrade to Plus to continue using Codex (https://chatgpt.com/explore/plus), or try "
        "again at Jul 5th, 2026 8:19 PM.",
        "2026-06-05 20:30", "Europe/Amsterdam", "2026-07-05 20:19",
    ),
    _wording(
        "openai/codex#19417",
        "You’re out of Codex messages\nYour rate limit resets on Apr 25, 2026, 12:54 AM. To continue using Codex, add "
        "credits or upgrade to Pro today.",
        "2026-04-24 21:00", "Europe/Zagreb", "2026-04-25 00:54",
    ),
    _wording(
        "openai/codex#24499",
        "You’re out of Codex messages\nTo get more access now, send a request to your admin, or wait until May 30, 2026, "
        "4:12 PM.",
        "2026-05-25 13:00", "Asia/Kolkata", "2026-05-30 16:12",
    ),
    _wording(
        "openai/codex#19830",
        "You've hit your usage limit. Tu límite de uso se restablece el 26 may 2026, 2:40 p.m.",
        "2026-05-21 18:40", "America/Puerto_Rico", "2026-05-26 14:40",
    ),
    _wording(
        "james-6-23/codex2api#9",
        '{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"free",'
        '"resets_at":1775317531,"resets_in_seconds":602705}}',
        "2026-03-28 16:20", "UTC", seconds=602_705,
    ),
    _wording(
        "router-for-me/CLIProxyAPI#1666 (resets_at alone)",
        '{\n  "error": {\n    "type": "usage_limit_reached",\n    "message": "The usage limit has been reached",\n'
        '    "plan_type": "free",\n    "resets_at": 1772180859\n  }\n}',
        "2026-02-21 05:12", "UTC", "2026-02-27 08:27:39",
    ),
    _wording(
        "icebear0828/codex-proxy#65 (headers)",
        "[Error] non_sse_response: HTTP/2 429",
        "2026-03-13 08:09:32", "UTC", seconds=471_285,
        headers={
            "x-codex-active-limit": "codex",
            "x-codex-primary-used-percent": "100",
            "x-codex-secondary-used-percent": "0",
            "x-codex-primary-reset-after-seconds": "471285",
            "x-codex-secondary-reset-after-seconds": "0",
            "x-codex-primary-reset-at": "1773860656",
            "x-codex-secondary-reset-at": "",
        },
    ),
    _wording(
        "google-gemini/gemini-cli#13004",
        '✕ [API Error: [{ "error": { "code": 429, "message": "You have exhausted your capacity on this model. Your quota '
        'will reset after 8h44m7s.", "errors": [ { "message": "You have exhausted your capacity o',
        "2025-11-13 10:00", "UTC", seconds=31_447,
    ),
    _wording(
        "google-gemini/gemini-cli#22107",
        "Attempt 1 failed: You have exhausted your capacity on this model. Your quota will reset after 5s.. Retrying after "
        "6173ms...",
        "2026-03-12 10:00", "UTC", seconds=5,
    ),
    _wording(
        "router-for-me/CLIProxyAPI#1702",
        "You have exhausted your capacity on this model. Your quota will reset after 53s.",
        "2026-02-24 10:00", "UTC", seconds=53,
    ),
    _wording(
        "google-gemini/gemini-cli#15576",
        "✕ [API Error: You have exhausted your daily quota on this model.]",
        "2025-12-26 10:00", "UTC",
    ),
    _wording(
        "github/copilot-cli#2144",
        "✗ Sorry, you've hit a rate limit that restricts the number of Copilot model requests you can make within a specific"
        " time period. Please try again in 2 hours. Please review our Terms of \n  Service",
        "2026-03-18 10:00", "UTC", seconds=7_200,
    ),
    _wording(
        "github/copilot-cli#2754",
        "Sorry, you've hit a rate limit that restricts the number of Copilot model requests you can make within a specific "
        "time\nperiod. Please try again in 15 hours 23 minutes. Please review our Terms of Service",
        "2026-04-16 10:00", "UTC", seconds=55_380,
    ),
    _wording(
        "github/copilot-cli#2828",
        "You've reached your weekly rate limit. Please wait for your limit to reset on April 20, 2026 at 2:00 AM or switch "
        "to \nauto model to continue. Learn More (https://docs.github.com/en/copilot/concepts/rate-limits).",
        "2026-04-18 21:40", "Europe/Berlin", "2026-04-20 02:00",
    ),
    _wording(
        "microsoft/vscode-copilot-release#6479",
        "Sorry, your request was rate-limited. Please wait 587 hours 33 minutes before trying again.",
        "2025-03-13 10:00", "UTC", seconds=2_115_180,
    ),
    _wording(
        "microsoft/vscode#305497",
        "You've hit your global rate limit. Please upgrade your plan or wait for your limit to reset. Learn More",
        "2026-03-27 10:00", "UTC",
    ),
    _wording(
        "anomalyco/opencode#28431",
        "Too Many Requests: quota exceeded [retrying in ~1 week attempt #1]",
        "2026-05-20 10:00", "UTC", seconds=604_800,
    ),
    _wording(
        "anomalyco/opencode#50091",
        "Free usage exceeded, subscribe to Go [retrying in 73801s - attempt #1]",
        "2026-09-20 09:07", "Asia/Kathmandu", seconds=73_801,
    ),
    _wording(
        "anomalyco/opencode#50093",
        "Free usage exceeded, subscribe to Go\nretrying in 20h28m - attempt #1",
        "2026-09-20 09:07", "UTC", seconds=73_680,
    ),
    _wording(
        "kingparks/cursor-vip#528",
        "You've hit your free requests limit. Upgrade to Pro for more usage, frontier models, Background Agents, and more. "
        "Your usage limits will reset when your monthly cycle ends on 10/3/2025.",
        "2025-09-04 09:00", "Asia/Shanghai", "2025-10-03 00:00",
    ),
    _wording(
        "cursor/cursor#3703",
        "Error: You've hit your usage limit\n  Get Cursor Pro for more Agent usage, unlimited Tab, and more.\n"
        "  chatMessage: *You've hit your free requests limit. [Upgrade to \n  Pro](https://www.cursor.com/api/auth/checkout)"
        " for more usage, frontier models, Background Agents, \n  and more. Your usage limits will reset when your monthly "
        "cycle ends on 11/17/2025.*\n  spendLimits: [50,100,200]",
        "2025-10-21 12:00", "Asia/Vladivostok", "2025-11-17 00:00",
    ),
)  # fmt: skip

HELD_OUT: Final = (
    _wording(
        "anthropics/claude-code#26775",
        "You're out of extra usage · resets 11:30am (Asia/Colombo)",
        "2026-02-19 08:00", "Asia/Colombo", "2026-02-19 11:30",
    ),
    _wording(
        "anthropics/claude-code#77725",
        "You've hit your session limit · resets 6:40pm (Asia/Kolkata)",
        "2026-07-15 10:00", "UTC", "2026-07-15 13:10",
    ),
    _wording(
        "anthropics/claude-code#94390",
        "You've hit your weekly limit · resets 5pm (America/Detroit)",
        "2026-09-14 08:00", "America/Detroit", "2026-09-14 17:00",
    ),
    _wording(
        "anthropics/claude-code#85572",
        "You've hit your session limit · resets 3pm (America/Bogota)",
        "2026-08-10 10:20", "America/Bogota", "2026-08-10 15:00",
    ),
    _wording(
        "anthropics/claude-code#74751",
        "You've hit your session limit · resets 1am (Asia/Singapore)",
        "2026-07-06 20:30", "Asia/Singapore", "2026-07-07 01:00",
    ),
    _wording(
        "anthropics/claude-code#91376",
        "❯ hi\nYou've hit your monthly spend limit · your session limit resets 2:40pm (Asia/Jakarta)\n/usage-credits to adjust "
        "your monthly spend limit.",
        "2026-09-02 11:15", "Asia/Jakarta", "2026-09-02 14:40",
    ),
    _wording(
        "anthropics/claude-code#68157",
        "You've hit your monthly spend limit · raise it at claude.ai/settings/usage",
        "2026-06-13 10:00", "UTC",
    ),
    _wording(
        "anthropics/claude-code#1450",
        "Claude Max usage limit reached. Your limit will reset at 12am.",
        "2025-05-30 21:30", "America/New_York", "2025-05-31 00:00",
    ),
    _wording(
        "anthropics/claude-code#8835",
        'limit reached with "Claude AI usage limit reached|1760004000" ',
        "2025-10-03 14:00", "UTC", "2025-10-09 10:00",
    ),
    _wording(
        "snarktank/ralph#147",
        "You've hit your limit · resets 12:30am (America/Sao_Paulo)",
        "2026-04-24 22:00", "America/Sao_Paulo", "2026-04-25 00:30",
    ),
    _wording(
        "kunchenguid/firstmate#336",
        "Claude usage limit reached. Your limit will reset at 4 PM (UTC).",
        "2026-07-08 08:00", "America/New_York", "2026-07-08 12:00",
    ),
    _wording(
        "dev-error-db.com, Claude Code's own documentation",
        "You've hit your weekly limit · resets Mon 12:00am",
        "2026-06-18 12:00", "America/New_York", "2026-06-22 00:00",
    ),
    _wording(
        "anthropics/claude-code#6392",
        "🔮 Predictions:\n   Tokens will run out: 12:20 PM\n   Limit resets at:     1:00 PM\n\n⏰ Cost limit will be exceeded before "
        "reset!\n5-hour limit reached",
        "2025-08-26 11:16", "Europe/Paris", "2025-08-26 13:00",
    ),
    _wording(
        "promptdriven/pdd#2175",
        "You have hit your usage limit. Visit https://chatgpt.com/codex/settings/usage to purchase more credits or try again "
        "at Jul 23rd, 2026 4:15 AM.",
        "2026-07-17 12:00", "UTC", "2026-07-23 04:15",
    ),
    _wording(
        "earendil-works/pi#4172",
        'Error: Codex error: {"type":"error","error":{"type":"usage_limit_reached","message":"The usage limit has been\n '
        'reached","plan_type":"plus","resets_at":1777936568,"eligible_promo":null,"resets_in_seconds":13872},"status_code":429,'
        '\n "headers":{"X-Codex-Active-Limit":"premium","X-Codex-Primary-Used-Percent":"100","X-Codex-S\n '
        'econdary-Used-Percent":"80","X-Codex-Primary-Reset-After-Seconds":"13873","X-Codex-Primary-Reset-At":"1777936568",'
        '"X-Codex-Secondary-Reset-At":"1778239400"}}',
        "2026-05-04 19:24", "UTC", seconds=13_872,
    ),
    _wording(
        "pingdotgg/t3code#10473",
        "Codex usage limit reached. The weekly limit resets in 5d 5h. The workspace has no credits to continue sooner: ask "
        "your workspace owner to add credits, or send the message again once the limit resets.",
        "2026-09-07 12:00", "UTC", seconds=450_000,
    ),
    _wording(
        "openai/codex#27083",
        "You've hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit "
        "https://chatgpt.com/codex/settings/usage to purchase more credits or try again at 4:44 AM.",
        "2026-06-08 01:10", "Europe/Moscow", "2026-06-08 04:44",
    ),
    _wording(
        "openai/codex#44966",
        "usage limit reached until 2:43 AM",
        "2026-09-12 22:30", "America/New_York", "2026-09-13 02:43",
    ),
    _wording(
        "openai/codex#16453",
        "You're out of Codex messages. Come back next week.",
        "2026-04-01 10:00", "UTC",
    ),
    _wording(
        "openai/codex#4095",
        "■ You've hit your usage limit. Upgrade to Pro (https://openai.com/chatgpt/pricing) or try again in 4 days 6 hours 37 "
        "minutes.",
        "2025-09-23 10:00", "UTC", seconds=369_420,
    ),
    _wording(
        "openai/codex#8987",
        "ERROR: Quota exceeded. Check your plan and billing details.",
        "2026-01-09 10:00", "UTC",
    ),
    _wording(
        "google-gemini/gemini-cli#15880",
        "│ Usage limit reached for gemini-2.5-flash-lite.          │\n│ Access resets at 2:55 PM PST.             │",
        "2026-01-04 20:10", "UTC", "2026-01-04 22:55",
    ),
    _wording(
        "google-gemini/gemini-cli#17088",
        "Usage limit reached for gemini-2.5-flash-lite. Access resets at 8:48 PM GMT+2.  /stats for usage details  /model to "
        "switch models.  /auth to switch to API key.",
        "2026-01-20 12:50", "Europe/Athens", "2026-01-20 20:48",
    ),
    _wording(
        "earendil-works/pi#2851",
        '"stopReason":"error","errorMessage":"Cloud Code Assist API error (429): You have exhausted your capacity on this '
        'model. Your quota will reset after 12h34m16s."}}',
        "2026-04-05 10:00", "UTC", seconds=45_256,
    ),
    _wording(
        "google-gemini/gemini-cli#3796",
        "⚡ You have reached your daily quota limit.\n  ⚡ Automatically switching from gemini-2.5-pro to gemini-2.5-flash for "
        "the remainder of this session.",
        "2025-07-10 10:00", "UTC",
    ),
    _wording(
        "google-gemini/gemini-cli#29429 (fixture of the server's fields)",
        '{"error": {"code": 429, "message": "Individual quota reached. Please upgrade your subscription to increase your '
        'limits.", "status": "RESOURCE_EXHAUSTED", "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": '
        '"QUOTA_EXHAUSTED", "metadata": {"quotaResetTimeStamp": "2026-09-21T09:19:49Z"}}]}}',
        "2026-09-20 10:00", "UTC", "2026-09-21 09:19:49",
    ),
    _wording(
        "microsoft/vscode-copilot-release#8512",
        "You've reached your monthly chat messages limit. Upgrade to Copilot Pro (30-day free trial) or wait until May 18, 2025 "
        "for your limit to reset.",
        "2025-04-24 12:00", "America/Chicago", "2025-05-18 00:00",
    ),
    _wording(
        "microsoft/vscode-copilot-release#6801",
        "You've reached your monthly chat messages limit. Upgrade to Copilot Pro (30-day free trial) or wait until 21 April "
        "2025 for your limit to reset.",
        "2025-03-22 12:00", "Europe/London", "2025-04-21 00:00",
    ),
    _wording(
        "microsoft/vscode-copilot-release#13081",
        "You've reached your monthly chat messages quota. Upgrade to Copilot Pro (30-day free trial) or wait for your "
        "allowance to renew.",
        "2025-06-21 12:00", "UTC",
    ),
    _wording(
        "github/copilot-cli#2769",
        '{"type":"session.error","data":{"errorType":"rate_limit","message":"Sorry, you\'ve hit a rate limit that restricts the '
        'number of Copilot model requests you can make within a specific time period. Please try again in 51 hours. Please '
        'review our Terms of Service"}}',
        "2026-04-16 12:00", "UTC", seconds=183_600,
    ),
    _wording(
        "github/copilot-cli#3819",
        "✗ You've hit your rate limit. Please wait for your limit to reset in 3 hours 49 minutes or switch to auto model to "
        "continue. Learn More (https://docs.github.com/copilot/concepts/rate-limits).",
        "2026-06-16 12:00", "UTC", seconds=13_740,
    ),
    _wording(
        "microsoft/vscode#325598",
        "2026-07-13 14:19:54.128 [info] ccreq:95bcee45.copilotmd | success | gpt-5-mini | 59757ms | [summarize]\n"
        "2026-07-13 14:19:56.485 [error] WebSocket CAPI error: Sorry, you've exceeded your 5 hour session limits. Please retry "
        "after 2733 seconds. (user_global_rate_limited:pro)",
        "2026-07-13 14:19", "UTC", seconds=2_733,
    ),
    _wording(
        "github/copilot-cli#2740",
        "Sorry, you have been rate-limited. Please wait 2 minutes before trying again or consider switching to Auto. Learn More",
        "2026-04-15 12:00", "UTC", seconds=120,
    ),
    _wording(
        "microsoft/vscode-copilot-release#6808",
        "Copilot Limit Reached. These limits will reset on April 20, 2025",
        "2025-03-22 12:00", "America/New_York", "2025-04-20 00:00",
    ),
    _wording(
        "anomalyco/opencode#42686",
        "Monthly usage limit reached. It will reset in 10 days 19 hours.",
        "2026-08-15 12:00", "UTC", seconds=932_400,
    ),
    _wording(
        "anomalyco/opencode#49170",
        "weekly usage limit reached. It will reset in 5 days 10 hours. To continue using this model now, enable usage from "
        "your available balance - ",
        "2026-09-15 12:00", "UTC", seconds=468_000,
    ),
    _wording(
        "anomalyco/opencode#27492",
        "Free usage exceeded, subscribe to Go\nإعادة المحاولة خلال 62056 ثواني - المحاولة رقم 1",
        "2026-06-21 12:00", "UTC", seconds=62_056,
    ),
    _wording(
        "anomalyco/opencode#24473",
        "Subscription quota exceeded. You can continue using free models.",
        "2026-04-26 12:00", "UTC",
    ),
    _wording(
        "yuaotian/go-cursor-help#582",
        "You've hit your free requests limit. Upgrade to Pro for more usage, frontier models, Background Agents, and more. Your "
        "usage limits will reset when your monthly cycle ends on 8/24/2025",
        "2025-08-09 12:00", "Asia/Shanghai", "2025-08-24 00:00",
    ),
    _wording(
        "kingparks/cursor-vip#520",
        "You've hit your free requests limit. Upgrade to Pro for more usage, frontier models, Background Agents, and more. Your "
        "usage limits will reset when your monthly cycle ends on 10/1/2025.",
        "2025-09-02 12:00", "Asia/Shanghai", "2025-10-01 00:00",
    ),
    _wording(
        "kingparks/cursor-vip#479",
        "You've hit your usage limit\nGet Cursor Pro for more Agents use, unlimited Tab, and more.",
        "2025-08-09 12:00", "UTC",
    ),
)  # fmt: skip

# Collected last, and measured once more before anything was changed.
CONFIRMING: Final = (
    _wording(
        "anthropics/claude-code#84978",
        "You've hit your session limit · resets 6am (Europe/Budapest)",
        "2026-08-08 02:10", "Europe/Budapest", "2026-08-08 06:00",
    ),
    _wording(
        "stablyai/orca#18799",
        "You've hit your usage limit ... try again at 5:42 PM.",
        "2026-09-05 13:00", "Asia/Taipei", "2026-09-05 17:42",
    ),
    _wording(
        "Intense-Visions/harness-engineering#164",
        "You've hit your limit · resets 8pm (America/Indianapolis)",
        "2026-04-17 16:30", "America/Indianapolis", "2026-04-17 20:00",
    ),
    _wording(
        "anthropics/claude-code#68816",
        '{"type": "assistant", "isApiErrorMessage": true, "error": "rate_limit", "apiErrorStatus": 429, "message": {"role": '
        '"assistant", "model": "<synthetic>", "stop_reason": "stop_sequence", "content": [{ "type": "text", "text": "You\'ve hit '
        'your weekly limit · resets Jun 3 at 4pm (Europe/Berlin)" }]}}',
        "2026-05-30 12:00", "Europe/Berlin", "2026-06-03 16:00",
    ),
    _wording(
        "gabrielkoerich/orch#3239",
        "You've hit your session limit · resets 10:30am",
        "2026-06-02 07:00", "America/Sao_Paulo", "2026-06-02 10:30",
    ),
    _wording(
        "anthropics/claude-code#12686",
        "Weekly limit reached · resets Dec 2, 7pm (Europe/Moscow) ·",
        "2025-11-29 12:00", "Europe/Moscow", "2025-12-02 19:00",
    ),
    _wording(
        "anthropics/claude-code#9046",
        "Claude AI usage limit reached|1760000400",
        "2025-10-06 22:56", "UTC", "2025-10-09 09:00",
    ),
    _wording(
        "anthropics/claude-code#11577",
        "Session limit reached ∙ resets 8pm",
        "2025-11-13 17:40", "America/Guayaquil", "2025-11-13 20:00",
    ),
    _wording(
        "anthropics/claude-code#11577 (as told)",
        "Session limit reached – resets in 2 hours",
        "2025-11-13 18:00", "UTC", seconds=7_200,
    ),
    _wording(
        "anthropics/claude-code#52575",
        "You've hit your limit · resets 4:50am (Europe/Rome)",
        "2026-04-23 23:55", "Europe/Rome", "2026-04-24 04:50",
    ),
    _wording(
        "openai/codex#21047",
        "You've hit your usage limit. Upgrade to Plus to continue using Codex (https://chatgpt.com/explore/plus), or try again at"
        " May 11th, 2026 1:36 PM.",
        "2026-05-04 14:00", "Europe/Madrid", "2026-05-11 13:36",
    ),
    _wording(
        "openai/codex#28391",
        "■ You've hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit "
        "https://chatgpt.com/codex/settings/usage to purchase more credits or try a\ngain at Jun 18th, 2026 8:41 AM.",
        "2026-06-15 12:00", "Europe/Paris", "2026-06-18 08:41",
    ),
    _wording(
        "openai/codex#3031",
        "🖐  You've hit your usage limit. Upgrade to Pro (https://openai.com/chatgpt/pricing) or try again in 3 hours 2 minutes.",
        "2025-09-01 12:00", "UTC", seconds=10_920,
    ),
    _wording(
        "openai/codex#2669",
        "🖐 You've hit your usage limit. Upgrade to Pro (https://openai.com/chatgpt/pricing), or wait for limits to reset (every "
        "5h and every week.).",
        "2025-08-25 09:00", "UTC",
    ),
    _wording(
        "decolua/9router#1308",
        '[ERROR] [429]: { "error": { "code": 429, "message": "Individual quota reached. Contact your administrator to enable '
        'overages. Resets in 160h20m10s.", "status": "RESOURCE_EXHAUSTED", "details": [ { "reason": "QUOTA_EXHAUSTED", "metadata":'
        ' { "quotaResetDelay": "160h20m10.725405548s", "quotaResetTimeStamp": "2026-05-27T09:30:27Z" } }, { "@type": '
        '"type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "577210.725405548s" } ] } }',
        "2026-05-20 17:10", "UTC", seconds=577_210.7,
    ),
    _wording(
        "google-antigravity/antigravity-cli#789",
        "⚠ Individual quota reached. Please upgrade your subscription to increase your limits.\nResets in 143h57m55s.",
        "2026-08-13 12:00", "UTC", seconds=518_275,
    ),
    _wording(
        "google-gemini/gemini-cli#22643",
        "Usage limit reached for gemini-3-flash-preview. Access resets at 10:57 PM GMT-3.",
        "2026-03-16 12:00", "America/Sao_Paulo", "2026-03-16 22:57",
    ),
    _wording(
        "google-gemini/gemini-cli#7709",
        "You've hit your daily limit of requests with Gemini 2.5 Pro. Switching to Gemini 2.5 Flash. [Learn more]"
        "(https://developers.google.com/gemini-code-assist/resources/quotas#quotas-for-agent-mode-gemini-cli)",
        "2025-09-04 12:00", "UTC",
    ),
    _wording(
        "microsoft/vscode-copilot-release#3901",
        "Sorry, your request was rate-limited. Please wait 578 hours 13 minutes before trying again.",
        "2025-01-09 12:00", "UTC", seconds=2_081_580,
    ),
)  # fmt: skip

# Collected after the readers were generalised, with other searches; labelled before they were run. At once, 60 of these 64
# were read right, and 34 of the 37 that name a reset: one wrong time, three not read.
FRESH: Final = (
    _wording(
        "dwgx/WindsurfAPI#11",
        "Permission denied: Reached message rate limit for this model. Please try again later. Resets in: 30m0s",
        "2026-04-21 12:00", "UTC", seconds=1_800,
    ),
    _wording(
        "dwgx/WindsurfAPI#189",
        "Stream error after retries: All accounts temporarily rate-limited on claude-opus-4-7-medium. Windsurf upstream is applying "
        "IP-level cooldown. Wait ~30s before retrying.",
        "2026-05-25 12:00", "UTC", seconds=30,
    ),
    _wording(
        "dwgx/WindsurfAPI#189 (log)",
        "[WARN] Cascade error step {errorText=Reached message rate limit for this model. Please try again later. Resets in: 29m50s "
        '(trace ID: 32cd9dae083482c8aa180ad76430cac5) trail=[{"type":14,"status":3,"textLen":0,"tools":""}]}',
        "2026-05-25 12:00", "UTC", seconds=1_790,
    ),
    _wording(
        "dwgx/WindsurfAPI#66",
        '{"error":{"message":"gpt-5.1 所有账号均已达速率限制，请 117 秒后重试 (request id: 20260426023250592780348268d9d6LGuoUiZd)",'
        '"type":"upstream_error","param":"","code":"upstream_error"}}',
        "2026-04-26 12:00", "Asia/Shanghai", seconds=117,
    ),
    _wording(
        "MiniMax-AI/MiniMax-M2.7#36",
        "HTTP 429: usage limit exceeded, 5-hour usage limit reached for Token Plan Starter (0/0 used), resets at 2026-05-15T15:00:00Z "
        "(2056)",
        "2026-05-15 11:30", "UTC", "2026-05-15 15:00",
    ),
    _wording(
        "continuedev/continue#10920",
        "429 Rate limit reached for model `llama-3.3-70b-versatile` in organization `org_01kjh7p9n8f1qs6nz2bz77vy6b` service tier "
        "`on_demand` on tokens per day (TPD): Limit 100000, Used 97050, Requested 3619. Please try again in 9m38.016s. Need more "
        "tokens%3F Upgrade to Dev Tier today at https://console.groq.com/settings/billing",
        "2026-02-28 12:00", "UTC", seconds=578.016,
    ),
    _wording(
        "continuedev/continue#11580",
        "Rate limit reached for model `llama-3.3-70b-versatile` in organization `org_01kkzx6nksef6bhcgew8gyrq9e` service tier "
        "`on_demand` on tokens per day (TPD): Limit 100000, Used 99926, Requested 1739. Please try again in 23m58.56s.",
        "2026-03-18 12:00", "UTC", seconds=1_438.56,
    ),
    _wording(
        "bklieger-groq/stockbot-on-groq#46",
        "Error: Failed after 2 attempts. Last error: Rate limit reached for model `llama3-70b-8192` in organization "
        "`org_01hqm053avffh8w60ayqm1kr4a` on : Limit 500000, Used 500370, Requested 252. Please try again in 1m47.5854s. Visit "
        "https://console.groq.com/docs/rate-limits for more information.",
        "2024-12-28 12:00", "UTC", seconds=107.5854,
    ),
    _wording(
        "ago19800/HomeMind#29",
        "14:25:54 ERROR    homemind.ai — AI: tutti i provider falliti. Ultimo:\nError code: 429 - {'error': {'message': 'Rate limit "
        "reached for model\n`llama-3.3-70b-versatile` in organization\n`org_01kes94v04f9ramd2n1vj4gjnc` service tier `on_demand` on "
        "tokens\nper minute (TPM): Limit 12000, Used 2542, Requested 9855. Please try\nagain in 1.984999999s. Need more tokens?",
        "2026-06-01 14:25", "Europe/Rome", seconds=1.985,
    ),
    _wording(
        "mindcraft-bots/mindcraft#188",
        'RateLimitError: 429 {"error":{"message":"Rate limit reached for model `llama3-70b-8192` in organization `[nah]` on tokens '
        'per minute (TPM): Limit 6000, Used 5914, Requested 1822. Please try again in 17.359s. Visit '
        'https://console.groq.com/docs/rate-limits for more information.","type":"tokens","code":"rate_limit_exceeded"}}',
        "2024-09-22 12:00", "UTC", seconds=17.359,
    ),
    _wording(
        "decolua/9router#1400",
        '[ERROR] [429]: { "error": { "code": 429, "message": "Individual quota reached. Contact your administrator to enable overages. '
        'Resets in 71h15m27s.", "status": "RESOURCE_EXHAUSTED", "details": [ { "reason": "QUOTA_EXHAUSTED", "metadata": { "model": '
        '"gpt-oss-120b-medium", "quotaResetDelay": "71h15m27.791609974s", "quotaResetTimeStamp": "2026-05-27T16:32:54Z" } }, '
        '{ "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "256527.791609974s" } ] } }',
        "2026-05-24 17:17", "UTC", seconds=256_527.8,
    ),
    _wording(
        "decolua/9router#789",
        '[13:45:58] [PENDING] END (ERROR) | provider=antigravity | model=claude-opus-4-6-thinking\n[ERROR] [429]: { "error": { "code": '
        '429, "message": "You have exhausted your capacity on this model. Your quota will reset after 25h20m26s.", "status": '
        '"RESOURCE_EXHAUSTED", "details": [ { "reason": "QUOTA_EXHAUSTED", "metadata": { "quotaResetDelay": "25h20m26.179915352s", '
        '"quotaResetTimeStamp": "2026-04-28T09:06:26Z" } } ] } }',
        "2026-04-27 13:46", "Asia/Dhaka", seconds=91_226.2,
    ),
    _wording(
        "liuw1535/antigravity2api-nodejs#44",
        'Error: API request failed (429): {\\n  \\"error\\": {\\n    \\"code\\": 429,\\n    \\"message\\": \\"You have exhausted your '
        'capacity on this model. Your quota will reset after 161h39m41s.\\",\\n    \\"status\\": \\"RESOURCE_EXHAUSTED\\"}}',
        "2025-12-12 12:00", "UTC", seconds=581_981,
    ),
    _wording(
        "gabrielkoerich/orch#2844",
        "Weekly/Monthly Limit Exhausted. Your limit will reset at 2026-04-23 18:33:48",  # z.ai: the time of Beijing
        "2026-04-19 20:00", "Asia/Shanghai", "2026-04-23 18:33:48",
    ),
    _wording(
        "openclaw/openclaw#142656",
        '{"error":{"message":"You\'ve reached your weekly (7-day) usage limit. Your quota will reset when the current 7-day window ends. '
        'To continue now, purchase extra usage or upgrade your plan: https://www.kimi.com/membership/subscription?tab=quota","type":'
        '"access_terminated_error"}}',
        "2026-09-01 12:00", "UTC",
    ),
    _wording(
        "MoonshotAI/kimi-cli#1599",
        "LLM provider error: Error code: 429 - {'error': {'message': 'Your account org-78cd08fac9804d20bac9a1f02fc1e6a5"
        "<ak-f94zcrj6ax1111aqsyq1> request reached organization max RPM: 20, please try a\ngain after 1 seconds', 'type': "
        "'rate_limit_reached_error'}}",
        "2026-03-27 12:00", "UTC", seconds=1,
    ),
    _wording(
        "MoonshotAI/kimi-cli#1599 (a day's tokens)",
        "LLM provider error: Error code: 429 - {'error': {'message': 'Your account org-78cd08fac9804d20bac9a1f02fc1e6a5 / "
        "proj-a418892b55d04bbb929766740804aa41 <ak-f94zcrj6ax1111aqsyq1> request reach\ned organization TPD rate limit, current: "
        "1526210, limit: 1500000', 'type': 'rate_limit_reached_error'}}",
        "2026-03-27 12:00", "UTC",
    ),
    _wording(
        "MoonshotAI/kimi-cli#901",
        "LLM provider error: Error code: 429 - {'error': {'message': \"We're receiving too many requests at the moment. Please wait \n"
        "a moment and try again.\", 'type': 'rate_limit_reached_error'}}",
        "2026-02-04 12:00", "UTC",
    ),
    _wording(
        "Gitlawb/openclaude#1542",
        '429 {"error":{"message":"Rate limit exceeded: free-models-per-day-high-balance. ","type":"rate_limit_error","code":"429"}}\n'
        "     Retrying in 26 seconds… (attempt 5/10)",
        "2026-06-05 12:00", "UTC",  # the client's own backoff
    ),
    _wording(
        "cline/cline#5301",
        "429 Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day",
        "2025-08-02 12:00", "UTC",
    ),
    _wording(
        "ogkalu2/comic-translate#403",
        'Exception: API request failed with status code 429: {\n  "error": {\n    "code": 429,\n    "message": "You exceeded your current '
        "quota, please check your plan and billing details. For more information on this error, head to: "
        "https://ai.google.dev/gemini-api/docs/rate-limits. \\n* Quota exceeded for metric: "
        "generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 20, model: gemini-2.5-flash\\nPlease retry in "
        '58.821668433s.",\n    "status": "RESOURCE_EXHAUSTED"}}',
        "2026-01-30 12:00", "UTC", seconds=58.82,
    ),
    _wording(
        "google-gemini/gemini-cli#22486",
        "│          '* Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 0, model: "
        "gemini-3.1-pro\\n' +    │\n│          'Please retry in 25.465784708s.',     │",
        "2026-03-15 12:00", "UTC", seconds=25.47,
    ),
    _wording(
        "microsoft/vscode-copilot-release#5795",
        "Sorry, you have been rate-limited. Please wait a moment before trying again. Learn More\n\nServer Error: Sorry, you have exceeded "
        "your Copilot token usage. Please review our Terms of Service. Error Code: rate_limited",
        "2025-12-01 12:00", "UTC",
    ),
    _wording(
        "microsoft/vscode-copilot-release#2147",
        "Sorry, your request was rate-limited. Please wait 45 minutes before trying again.",
        "2024-10-31 12:00", "UTC", seconds=2_700,
    ),
    _wording(
        "saaranshM/unsnooze#19",
        "Error: You've hit your usage limit\nGet Cursor Pro for more Agent usage, unlimited Tab, and more.\nfallbackModel:\n"
        "spendLimitHit: false\nchatMessage: *You've hit your free requests limit. … Your usage limits will\nreset when your monthly cycle "
        "ends on 10/2/2026.*\nspendLimits: [50,100,200]",
        "2026-09-02 12:00", "Asia/Kolkata", "2026-10-02 00:00",
    ),
    _wording(
        "NousResearch/hermes-agent#68832",
        "you (seppe) have reached your weekly usage limit, upgrade for higher limits: https://ollama.com/upgrade or add extra usage: "
        "https://ollama.com/settings (ref: ...)",
        "2026-08-08 12:00", "UTC",
    ),
    _wording(
        "continuedev/continue#11444",
        '"you (ae2055838) have reached your session usage limit, upgrade for higher limits: https://ollama.com/upgrade"',
        "2026-03-15 12:00", "UTC",
    ),
    _wording(
        "HomericIntelligence/Scylla#346",
        "◇  Rate limit exceeded: 429 Too Many Requests: you've reached your weekly usage limit, please wait or upgrade to continue\n│\n"
        "└  Failed to configure provider: init chat completion request with tool did not succeed.",
        "2026-02-05 12:00", "UTC",
    ),
    _wording(
        "continuedev/continue#9233",
        "\"you've reached your hourly usage limit, please wait or upgrade to continue\"",
        "2025-12-20 12:00", "UTC",
    ),
    _wording(
        "kirodotdev/Kiro#1844",
        "You've reached your daily usage limit. Please return tomorrow to continue building.",
        "2025-08-08 12:00", "UTC",
    ),
    _wording(
        "kirodotdev/Kiro#9134",
        "You've reached your monthly usage limit. Please return next month to continue building. (Request ID: "
        "d4c274b2-56d0-4296-8122-68ec40c51e39)",
        "2026-06-04 12:00", "UTC",
    ),
    _wording(
        "kirodotdev/Kiro#10553",
        "The monthly usage limit has been reached (request_id: 0e06d8cd-211d-4ef7-a3d5-b14bd01b70b1)",
        "2026-07-29 12:00", "UTC",
    ),
    _wording(
        "jwadow/kiro-gateway#62",
        "You have reached the limit. (reason: MONTHLY_REQUEST_COUNT)",
        "2026-02-01 12:00", "UTC",
    ),
    _wording(
        "kirodotdev/Kiro#9193",
        "Too many requests, please wait before trying again. (Request ID: 465d20e9-447b-4810-877e-f4b1d1e04b25)",
        "2026-06-05 12:00", "UTC",
    ),
    _wording(
        "anomalyco/opencode#7463",
        "Tokens per minute limit exceeded - too many tokens processed",
        "2026-01-09 12:00", "UTC",
    ),
    _wording(
        "meta-llama/llama-models#354",
        "API Error (Llama-3.3-8B-Instruct): Error code: 429 - {'title': 'Too Many Requests', 'detail': 'You have exceeded the maximum number "
        "of tokens allowed within a given time frame. Wait a bit and try again.', 'status': 429}",
        "2025-05-25 12:00", "UTC",
    ),
    _wording(
        "SakanaAI/AI-Scientist#115",
        "Error code: 429 - {'type': 'error', 'error': {'type': 'rate_limit_error', 'message': 'Number of request tokens has exceeded your "
        "daily rate limit (https://docs.anthropic.com/en/api/rate-limits); see the response headers for current usage. Please reduce the "
        "prompt length or the maximum tokens requested, or try again later.'}}",
        "2024-09-08 12:00", "UTC",
    ),
    _wording(
        "Alishahryar1/free-claude-code#334",
        "Provider rate limit reached. Please retry shortly. (request_id=req_bcae6c2091e1)",
        "2026-05-04 12:00", "UTC",
    ),
    _wording(
        "anthropics/claude-code#38802",
        "You've hit your limit · resets 11am (America/Chicago)",
        "2026-03-25 08:00", "America/Chicago", "2026-03-25 11:00",
    ),
    _wording(
        "anthropics/claude-code#55597",
        "You've hit your limit · resets 9:10pm (Europe/Kiev)",
        "2026-05-02 15:12", "UTC", "2026-05-02 18:10",
    ),
    _wording(
        "anthropics/claude-code#46156",
        "You've hit your limit · resets 4:30pm (Asia/Calcutta)",
        "2026-04-10 09:27", "UTC", "2026-04-10 11:00",
    ),
    _wording(
        "anthropics/claude-code#64462",
        "You've hit your limit · resets 6:30pm (Asia/Calcutta)",
        "2026-06-01 11:01", "UTC", "2026-06-01 13:00",
    ),
    _wording(
        "alphagov/release#124",
        "Github API rate limit exceeded. Rate limit will reset in 5 minutes.",
        "2017-03-20 12:00", "UTC", seconds=300,
    ),
    _wording(
        "anomalyco/opencode#42977",
        '429 FreeUsageLimitError: "Rate limit exceeded. Please try again later."',
        "2026-08-17 12:00", "UTC",
    ),
    _wording(
        "anthropics/claude-code#39937",
        "You're out of extra usage · resets 1pm (America/Los_Angeles)",
        "2026-03-27 10:31", "America/Los_Angeles", "2026-03-27 13:00",
    ),
    _wording(
        "anthropics/claude-code#55417",
        "You're out of extra usage · resets 7pm (Europe/Barcelona)",  # there is no such zone
        "2026-05-01 17:00", "Europe/Madrid",
    ),
    _wording(
        "anthropics/claude-code#42654",
        "You're out of extra usage · resets 9am (America/Cordoba)",
        "2026-04-02 13:11", "America/Argentina/Cordoba", "2026-04-03 09:00",
    ),
    _wording(
        "anthropics/claude-code#55114",
        "You're out of extra usage · resets May 2, 2pm (Asia/Jerusalem)",
        "2026-04-30 23:00", "Asia/Jerusalem", "2026-05-02 14:00",
    ),
    _wording(
        "KoushikNavuluri/Claude-API#72",
        "You are out of free messages until 3 PM",
        "2023-09-11 12:00", "Asia/Shanghai", "2023-09-11 15:00",
    ),
    _wording(
        "anthropics/claude-code#9236",
        "Claude usage limit reached. Your limit will reset \n     at 3pm (America/Santiago).",
        "2025-10-09 10:00", "America/Santiago", "2025-10-09 15:00",
    ),
    _wording(
        "ex-machina-co/opencode-anthropic-auth#50",
        "You're out of extra usage. Add more at claude.ai/settings/usage and keep going.",
        "2026-04-14 12:00", "UTC",
    ),
    _wording(
        "aws/amazon-q-developer-cli#2309",
        "Monthly request limit reached - The limits reset on 08/01",
        "2025-07-15 12:00", "America/New_York", "2025-08-01 00:00",  # January 8th is half a year away
    ),
    _wording(
        "aws/amazon-q-developer-cli#1226",
        'Amazon Q is having trouble responding right now: \n   0: unhandled error (ThrottlingException)\n   1: service error\n   2: '
        'unhandled error (ThrottlingException)\n   3: Error { code: "ThrottlingException", message: "Maximum '
        'com.amazon.aws.codewhisperer.streaming.GenerateAssistantResponse reached for this month.", aws_request_id: '
        '"bdcde5ff-60c6-4aef-9255-5c774bb827c4" }',
        "2025-04-14 12:00", "UTC",
    ),
    _wording(
        "aws/aws-toolkit-vscode#8508",
        "You have reached the limit.\nRequest ID: e8e915a7-8aed-46f1-aa11-d4f0e4817cd6.",
        "2026-01-19 12:00", "UTC",
    ),
    _wording(
        "QwenLM/qwen-code#1742",
        "Date/time: 2026-02-06T19:08:04.327Z\nExtension version: 5.4.1\nProvider: qwen-code\nModel: qwen3-coder-plus\n\n429 Free allocated "
        "quota exceeded.",
        "2026-02-06 19:08", "UTC",
    ),
    _wording(
        "link-assistant/hive-mind#1873",
        "You've hit your usage limit. … try again at Jun 11th, 2026 12:27 AM.",
        "2026-06-08 21:13", "UTC", "2026-06-11 00:27",
    ),
    _wording(
        "link-assistant/hive-mind#1615",
        "Usage limit reached. The limit will reset at: Apr 17, 4:00 AM",
        "2026-04-15 12:00", "UTC", "2026-04-17 04:00",
    ),
    _wording(
        "stablyai/orca#8132",
        "You've hit your session limit · resets 3:50pm (Europe/London)\n\nWhat do you want to do?\n❯ 1. Stop and wait for limit to reset\n"
        "  2. Ask your admin for more usage\n  Enter to confirm · Esc to cancel",
        "2026-07-10 12:00", "Europe/London", "2026-07-10 15:50",
    ),
    _wording(
        "WingedGuardian/GENesis-AGI#1294",
        "You've hit your session limit · resets 4:10am",
        "2026-08-05 01:00", "America/New_York", "2026-08-05 04:10",
    ),
    _wording(
        "microsoft/vscode#311788",
        "You've hit your global rate limit. Please upgrade your plan or wait 3 hours 43 minutes for your limit to reset. Learn More\n\nTry "
        "Again",
        "2026-04-21 12:00", "UTC", seconds=13_380,
    ),
    _wording(
        "microsoft/vscode#318025",
        "You've reached your weekly rate limit. Please switch to the Auto model to\ncontinue working or wait for your limit to reset on May "
        "25, 2026 at 5:30 AM.\nLearn More",
        "2026-05-22 12:00", "Asia/Kolkata", "2026-05-25 05:30",
    ),
    _wording(
        "microsoft/vscode#310828",
        "Sorry, you have been rate-limited. Please wait 2 minutes before trying again or consider switching to Auto.\nServer Error: Sorry, "
        "you've exceeded your weekly rate limit. Please review our Terms of Service.\nError Code: user_weekly_rate_limited",
        "2026-04-16 14:33", "UTC", seconds=120,
    ),
    _wording(
        "microsoft/vscode-copilot-release#13014",
        "You have exceeded your premium request allowance. We have automatically switched you to GPT-4.1 which is included with your plan. "
        "Enable additional paid premium requests to continue using premium models.",
        "2025-06-20 12:00", "UTC",
    ),
    _wording(
        "chenyme/grok2api#926",
        "Too many requests for team 00000000-0000-0000-0000-000000000016",
        "2026-08-14 12:00", "UTC",
    ),
)  # fmt: skip

# Collected after FRESH had been repaired, with yet other searches; labelled before they were run. At once, 38 of these 40
# were read right, and 19 of the 21 that name a reset: none wrong, two not read.
SECOND: Final = (
    _wording(
        "openai/codex#43892",
        "ERROR: You've hit your usage limit. ... try again at 7:58 PM.",
        "2026-09-08 15:00", "America/New_York", "2026-09-08 19:58",
    ),
    _wording(
        "Ivy-Interactive/Ivy-Tendril#1756",
        "API Error: Request rejected (429) - Too many tokens per day, please wait before trying again.",
        "2026-07-24 12:00", "UTC",
    ),
    _wording(
        "anthropics/claude-code#77",
        "> /init is analyzing your codebase…\n  ⎿  API Error (429 Too many tokens, please wait before trying again.) · Retrying in 2 seconds… "
        "(attempt 3/10)\n  ⎿  API Error (429 Too many tokens, please wait before trying again.) · Retrying in 4 seconds… (attempt 4/10)",
        "2025-02-25 12:00", "UTC",
    ),
    _wording(
        "hyunhwan-bcm/MARRVEL_MCP#225",
        "An error occurred (ThrottlingException) when calling the InvokeModel operation (reached max retries: 4): Too many tokens, please "
        "wait before trying again.",
        "2025-11-13 12:00", "UTC",
    ),
    _wording(
        "anthropics/claude-code#1440",
        'API Error (429 {"error":{"code":429,"message":"Quota exceeded for aiplatform.googleapis.com/'
        'online_prediction_input_tokens_per_minute_per_base_model with base model: anthropic-claude-opus-4. Please submit a quota increase '
        'request. https://cloud.google.com/vertex-ai/docs/generative-ai/quotas-genai.","status":"RESOURCE_EXHAUSTED"}}) · Retrying in 32 '
        "seconds… (attempt 7/10)",
        "2025-05-30 12:00", "UTC",
    ),
    _wording(
        "RooCodeInc/Roo-Code#5050",
        "Error: Request was throttled or rate limited. Please try:\n\nReducing the frequency of requests\nIf using a provisioned model, check "
        "its throughput settings\nContact AWS support to request a quota increase if needed\nmessage: Too many tokens, please wait before "
        'trying again.\nname: ThrottlingException\n$fault: client\n$metadata: {"httpStatusCode":429,"requestId":'
        '"158a2e26-c851-4440-9f98-e3065df1de46","attempts":3,"totalRetryDelay":274}',
        "2025-06-23 12:00", "UTC",
    ),
    _wording(
        "charmbracelet/crush#536",
        "Error 429, Message: You exceeded your current quota, please check your plan and billing details.\nFor more information on this error, "
        "head to: https://ai.google.dev/gemini-api/docs/rate-limits.\nNone\nStatus: RESOURCE_EXHAUSTED,\nDetails: "
        "[map[@type:type.googleapis.com/google.rpc.QuotaFailure violations:[map[quotaDimensions:map[location:global model:gemini-2.5-flash] "
        "quotaId:GenerateContentInputTokensPerModelPerMinute-FreeTier quotaValue:250000]]] map[@type:type.googleapis.com/google.rpc.RetryInfo "
        "retryDelay:12s]]",
        "2025-08-04 12:00", "UTC", seconds=12,
    ),
    _wording(
        "letterstory/lettertrace#34",
        '{"error":{"code":429,"status":"RESOURCE_EXHAUSTED",\n  "details":[{"@type":"…/google.rpc.RetryInfo","retryDelay":"38s"}]}}',
        "2026-07-28 12:00", "UTC", seconds=38,
    ),
    _wording(
        "alex-wolf-ps/dbchatprov2#2",
        "HTTP 429 (429) Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-05-01-preview have exceeded token "
        "rate limit of your current OpenAI S0 pricing tier. Please retry after 86400 seconds. Please go here:\n"
        "https://aka.ms/oai/quotaincrease\nif you would like to further increase the default rate limit.",
        "2024-07-16 12:00", "UTC", seconds=86_400,
    ),
    _wording(
        "microsoft/sample-app-aoai-chatGPT#406",
        "Requests to the Creates a completion for the chat message Operation under Azure OpenAI API version 2023-03-15-preview have exceeded "
        "token rate limit of your current OpenAI S0 pricing tier. Please retry after 9 seconds. Please go here: "
        "https://aka.ms/oai/quotaincrease if you would like to further increase the default rate limit.",
        "2023-11-21 12:00", "UTC", seconds=9,
    ),
    _wording(
        "dyad-sh/dyad#1849",
        'Sorry, there was an error from the AI: [Request ID: 01db24bf-29eb-437d-80fe-535d7beb3487] {"error":"429 litellm.RateLimitError: '
        "AzureException RateLimitError - Your requests to gpt-5.1 for gpt-5.1 in East US 2 have exceeded the token rate limit for your current "
        "AIServices S0 pricing tier. This request was for ChatCompletions_Create under Azure OpenAI API version 2025-03-01-preview. Please "
        "retry after 60 seconds. To increase your default rate limit, visit: https://aka.ms/oai/quotaincrease.. Received Model Group=gpt-5.1",
        "2025-11-23 12:00", "UTC", seconds=60,
    ),
    _wording(
        "jasonacox/TinyLLM#17",
        "INFO:server:ERROR: Error code: 429 - {'error': {'message': \"litellm.RateLimitError: AzureException RateLimitError - Error code: 429 - "
        "{'error': {'code': '429', 'message': 'Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2023-05-15 have "
        "exceeded token rate limit of your current AIServices S0 pricing tier. Please retry after 86400 seconds. Please contact Azure support "
        "service if you would like to further increase the default rate limit.'}}\\nReceived Model Group=azure-gpt-4o-mini\", 'type': "
        "'throttling_error', 'param': None, 'code': '429'}}",
        "2025-02-02 12:00", "UTC", seconds=86_400,
    ),
    _wording(
        "anthropics/claude-code#19472",
        "You've hit your limit · resets 11pm (America/Anchorage)",
        "2026-01-20 12:00", "America/Anchorage", "2026-01-20 23:00",
    ),
    _wording(
        "anthropics/claude-code#81975",
        "You've hit your session limit · resets 12:50pm (Europe/Paris)",
        "2026-07-28 09:30", "Europe/Paris", "2026-07-28 12:50",
    ),
    _wording(
        "minorun365/agent-book#29",
        "botocore.errorfactory.ThrottlingException: An error occurred (ThrottlingException) when calling the Converse operation (reached max "
        "retries: 4): Too many tokens per day, please wait before trying again.",
        "2026-01-08 12:00", "Asia/Tokyo",
    ),
    _wording(
        "CodebuffAI/freebuff#863",
        "Error\nOut of credits. Please add credits at https://www.codebuff.com/usage",
        "2026-07-11 12:00", "UTC",
    ),
    _wording(
        "CodebuffAI/freebuff#929",
        "Your current credits have been used up and we are unable to process further rquests. Please visit "
        "https://infron.ai/dashboard/credits",
        "2026-08-04 12:00", "UTC",
    ),
    _wording(
        "RooCodeInc/Roo-Code#196",
        '429 {"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization’s rate limit of 80,000 '
        "input tokens per minute. For details, refer to: https://docs.anthropic.com/en/api/rate-limits; see the response headers for current "
        'usage. Please reduce the prompt length or the maximum tokens requested, or try again later."}}',
        "2024-12-22 12:00", "UTC",
    ),
    _wording(
        "FoundationAgents/OpenManus#746",
        "OpenAI API error: Error code: 429 - {'error': {'code': 'rate_limit_error', 'message': 'This request would exceed the rate limit for "
        "your organization of 20,000 input tokens per minute. For details, refer to: https://docs.anthropic.com/en/api/rate-limits. You can see "
        "the response headers for current usage. Please reduce the prompt length or the maximum tokens requested, or try again later.', "
        "'type': 'invalid_request_error', 'param': None}}",
        "2025-03-16 12:00", "UTC",
    ),
    _wording(
        "anthropics/claude-code#35011",
        "API Error: Rate limit reached",
        "2026-03-16 12:00", "UTC",
    ),
    _wording(
        "vybestack/llxprt-code#1398",
        '✕ [API Error: 429 {"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your account\'s rate limit. '
        'Please try again later."},"request_id":"req_011CY6xKsGweWtbaspTSdMBd"} (Status: 429)]\nPossible quota limitations in place or slow '
        "response times detected. Switching to the gemini-2.5-flash model for the rest of this session.",
        "2026-02-13 12:00", "UTC",
    ),
    _wording(
        "openai/codex#26042",
        "exceeded retry limit, last status: 429 Too Many Requests",
        "2026-06-03 12:00", "UTC",
    ),
    _wording(
        "anthropics/claude-code#21111",
        "You've hit your limit · resets 2am (Europe/Berlin)",
        "2026-01-26 23:03", "UTC", "2026-01-27 01:00",
    ),
    _wording(
        "anthropics/claude-code#47917",
        "You've hit your limit · resets 7pm (Europe/Rome)",
        "2026-04-14 15:00", "Europe/Rome", "2026-04-14 19:00",
    ),
    _wording(
        "anthropics/claude-code#76151",
        "You've hit your session limit · resets 2:50am (Asia/Muscat)",
        "2026-07-09 23:30", "Asia/Muscat", "2026-07-10 02:50",
    ),
    _wording(
        "cheapestinference/claude-auto-retry#71",
        "You've hit your org's monthly spend limit · run /usage-credits to raise it, or visit claude.ai/admin-settings/usage\n  ⎿  You've hit "
        "your org's monthly spend limit · run /usage-credits to raise it, or visit claude.ai/admin-settings/usage\n     /usage-credits to finish "
        "what you’re working on.",
        "2026-08-13 12:00", "UTC",
    ),
    _wording(
        "0xGosu/herdr-auto-pilot#161",
        "■ You've hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit https://chatgpt.com/codex/settings/usage to "
        "purchase more credits or try again at Jul 23rd, 2026 4:19 AM.",
        "2026-07-18 12:00", "Asia/Ho_Chi_Minh", "2026-07-23 04:19",
    ),
    _wording(
        "blpsoares/agentistics#131",
        "  ⎿ \u00a0You've hit your session limit · resets 6:30pm (America/Sao_Paulo)\n     /upgrade to increase your usage limit.",
        "2026-08-14 15:00", "America/Sao_Paulo", "2026-08-14 18:30",
    ),
    _wording(
        "Alishahryar1/free-claude-code#525",
        "the rate limit for your plan has been exceeded; please try again in 5 hours.",
        "2026-07-03 12:00", "UTC", seconds=18_000,
    ),
    _wording(
        "Alishahryar1/free-claude-code#690",
        "● Upstream provider NIM returned HTTP 429.\n  Category: rate_limit_error\n  Mapped message: Provider rate limit reached. Please retry "
        'shortly.\n\n  Upstream error:\n  {"status":429,"title":"Too Many Requests"}\n\n  Request ID: req_d6eef9bc0009',
        "2026-06-03 12:00", "UTC",
    ),
    _wording(
        "langgenius/dify#29118",
        "Monthly API Rate Limit for the Sandbox Plan will reset on 2025-11-30.",
        "2025-11-20 12:00", "Asia/Shanghai", "2025-11-30 00:00",
    ),
    _wording(
        "Cars-10/get-shit-done-gemini#2",
        "gemini You have exhausted your capacity on this model. Your quota will reset after 0s",
        "2026-01-25 12:00", "UTC", seconds=0,
    ),
    _wording(
        "google-gemini/gemini-cli#16766",
        "✕ [API Error: You have exhausted your daily quota on this model.]\n\n│ Usage limit reached for gemini-2.5-flash-lite.  │\n│ /stats for "
        "usage details   │\n│ /model to switch models.   │\n│ /auth to switch to API key.   │",
        "2026-01-15 12:00", "UTC",
    ),
    _wording(
        "alphaXiv/feedback#261",
        "Usage limit has been exceeded. Come back later.",
        "2026-04-14 12:00", "UTC",
    ),
    _wording(
        "quangdang46/jcode#166",
        "usage_limit_reached: The usage limit has been reached",
        "2026-05-18 04:05", "UTC",
    ),
    _wording(
        "google-gemini/gemini-cli#4300",
        "You have reached your daily gemini-2.5-pro quota limit.",
        "2025-07-16 12:00", "UTC",
    ),
    _wording(
        "DmitryKatson/bc-code-interpreter#2",
        "Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-02-01 have exceeded token rate limit of your "
        "current OpenAI S0 pricing tier. Please retry after 60 seconds. Please go here: https://aka.ms/oai/quotaincrease if you would like to "
        "further increase the default rate limit. For Free Account customers, upgrade to Pay as you Go here: https://aka.ms/429TrialUpgrade.",
        "2025-06-04 12:00", "UTC", seconds=60,
    ),
    _wording(
        "anthropics/claude-code#73873",
        "[Bug] You've hit your session limit · resets 4:10pm (America/Sao_Paulo)",
        "2026-07-03 12:30", "America/Sao_Paulo", "2026-07-03 16:10",
    ),
    _wording(
        "anthropics/claude-code#77978",
        "cmd says `You've hit your session limit · resets 2:20pm (Pacific/Auckland)`.",
        "2026-07-16 10:30", "Pacific/Auckland", "2026-07-16 14:20",
    ),
    _wording(
        "riba2534/happyclaw#591",
        "> You've hit your **session** limit · resets 11:10pm (Asia/Singapore)",
        "2026-07-22 20:00", "Asia/Singapore", "2026-07-22 23:10",
    ),
)  # fmt: skip


# Known gaps.
NOT_READ: Final[frozenset[str]] = frozenset()
