"""Translator of Gemini's generateContent, and the paths of its methods."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, unquote

from rung.wires.translation.conversation import Family
from rung.wires.translation.format import WireTranslator
from rung.wires.translation.gemini_answer import read_answer, write_answer
from rung.wires.translation.gemini_events import GeminiStreamReader, GeminiStreamWriter
from rung.wires.translation.gemini_request import read_request, write_request

WHOLE: Final = "generateContent"
STREAM: Final = "streamGenerateContent"
_PATH: Final = re.compile(
    r"/(?:v\d+(?:alpha|beta)?\d*)/"
    r"(?:projects/[^/]+/locations/[^/]+/)?"
    r"(?:publishers/[^/]+/)?"
    r"(?P<kind>models|tunedModels|endpoints)/(?P<model>[^/:?]+):(?P<method>\w+)(?:\?.*)?$"
)

GEMINI_TRANSLATOR: Final = WireTranslator(
    family=Family.GEMINI,
    read_request=read_request,
    write_request=write_request,
    read_answer=read_answer,
    write_answer=write_answer,
    stream_reader=GeminiStreamReader,
    stream_writer=GeminiStreamWriter,
)


def request_path(model: str, *, stream: bool) -> str:
    """Return the path and query of a request. A model with a kind, such as tunedModels/m, is used as it is."""
    name = quote(model if "/" in model else f"models/{model}")
    return f"/v1beta/{name}:{STREAM}?alt=sse" if stream else f"/v1beta/{name}:{WHOLE}"


def parse_path(path: str) -> tuple[str, str] | None:
    """Return the model and the method of a path of the Gemini API or of Vertex AI; None if it is no such path.

    A model that is not of the kind `models` has its kind before it: tunedModels/m.
    """
    found = _PATH.search(path)
    if found is None:
        return None
    model = unquote(found["model"])
    return model if found["kind"] == "models" else f"{found['kind']}/{model}", found["method"]
