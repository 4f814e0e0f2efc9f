"""Start coverage in a process that imports Rung. Python reads this at its start where `measured_processes` asks for it.

Half of the processes that tests start are scripted agents. They never import Rung, and coverage takes 0.08 s to start.
"""

import os
import sys


class CoverageAtImport:
    """Finder of modules that finds none: it starts coverage before the first module of Rung is loaded."""

    @classmethod
    def find_spec(cls, name: str, *_: object) -> None:
        """Start coverage if this is Rung."""
        if name == "rung":
            sys.meta_path.remove(cls)
            import coverage

            os.environ["COVERAGE_PROCESS_START"] = os.environ["COVERAGE_AT_IMPORT"]
            coverage.process_startup()
            del os.environ["COVERAGE_PROCESS_START"]  # not for the processes that this one starts


if "COVERAGE_AT_IMPORT" in os.environ:
    sys.meta_path.insert(0, CoverageAtImport)
