"""Lab: a local Anthropic and OpenAI provider with fault injection by script, or at random with a seed."""

from rung.testing.provider.answers import words
from rung.testing.provider.faults import FAULTS, Fault
from rung.testing.provider.parsed_request import LabWire
from rung.testing.provider.request_log import RequestRecord
from rung.testing.provider.server import Lab

lab = Lab
"""`with rung.testing.lab(script=…) as lab: lab.url`."""

__all__ = ["FAULTS", "Fault", "Lab", "LabWire", "RequestRecord", "lab", "words"]
