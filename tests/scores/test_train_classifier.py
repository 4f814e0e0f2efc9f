"""The training of the classifier's second opinion: the same data give the same bytes, and left-out sources are measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from rung.core.classify.learned import judge, parse_weights
from rung.core.domain.failures import Kind

ROOT = Path(__file__).parents[2]
TEXTS = {
    "network": "the peer vanished while the bytes of reply {n} were on their way",
    "not_found": "nobody has ever seen the artefact {n} in this cupboard of ours",
    "ok": "the parcel {n} was handed over to the neighbour this morning",
}


def train(folder: Path, out: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Train on made-up errors, each with a source of its own."""
    rows = [
        {
            "id": f"{label}-{n}",
            "source": f"owner/{label}-{n}#1",
            "form": "exception",
            "label": label,
            "retryable": False,
        }
        | {"body": text.format(n=n), "also": []}
        for label, text in TEXTS.items()
        for n in range(6)
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = [sys.executable, str(ROOT / "scripts/train_classifier.py"), str(folder / "rows.jsonl")]
    return subprocess.run(
        [*command, "--out", str(folder / out), *options],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def test_the_same_data_give_the_same_bytes(tmp_path: Path) -> None:
    """Two trainings agree to the byte, and the model knows what it was told."""
    train(tmp_path, "one")
    told = train(tmp_path, "two", "--leave-out").stdout
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    weights = parse_weights((tmp_path / "one").read_bytes())
    found = judge(weights, TEXTS["not_found"].format(n=9).split(), 0.3)
    assert found is not None
    assert found.kind is Kind.NOT_FOUND
    assert judge(weights, TEXTS["ok"].format(n=9).split(), 0.0) is None
    assert "exception" in told
    assert "18 examples" in told
