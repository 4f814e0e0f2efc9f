"""The deployment files as values: the containers that they start, with words, variables, ports and probes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import yaml  # type: ignore[import-untyped]  # its types are one more package

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
KUSTOMIZATION: dict[str, Any] = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())
OBJECTS: list[dict[str, Any]] = [
    one
    for path in sorted(KUBERNETES.glob("*.yaml"))
    if path.name != "kustomization.yaml"
    for one in yaml.safe_load_all(path.read_text())
]
PODS = ("Deployment", "Job")


class Container(NamedTuple):
    """A container of ours: what it runs, and what the file promises about it."""

    where: str
    role: str
    words: tuple[str, ...]
    env: dict[str, str]  # a value, or "$NAME" where a secret has it
    probes: tuple[str, ...] = ()  # paths
    ports: tuple[int, ...] = ()
    grace: float | None = None  # seconds between SIGTERM and SIGKILL

    @property
    def port(self) -> int | None:
        """Return the port that it is told to listen on."""
        return int(self.words[self.words.index("--port") + 1]) if "--port" in self.words else None


def of_kind(*kinds: str) -> list[dict[str, Any]]:
    """Return the Kubernetes objects of these kinds."""
    return [one for one in OBJECTS if one["kind"] in kinds]


def containers() -> list[Container]:
    """Return every container of the image, of all files."""
    dockerfile = Container("Dockerfile", "gateway", tuple(instruction("CMD")), {}, ports=exposed())
    composed = [_composed(name, one) for name, one in COMPOSE["services"].items() if one["image"] == "rung"]
    return [dockerfile, *composed, *(_of_pod(one) for one in of_kind(*PODS))]


def instruction(name: str) -> list[str]:
    """Return the words of an instruction in JSON form, such as CMD."""
    found = re.findall(rf"^{name} (\[.*\])$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    return list(json.loads(found[-1]))


def exposed() -> tuple[int, ...]:
    """Return the ports that the image exposes."""
    found = re.search(r"^EXPOSE (.*)$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    assert found is not None
    return tuple(map(int, found[1].split()))


def health_checks() -> dict[str, list[str]]:
    """Return the commands of the health checks, by file and role."""
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", "")
    found = re.search(r"^HEALTHCHECK .*CMD (\[.*\])$", text, re.MULTILINE)
    assert found is not None
    composed = {
        name: one["healthcheck"]["test"][1:]
        for name, one in COMPOSE["services"].items()
        if one["image"] == "rung" and "test" in one["healthcheck"]
    }
    return {"Dockerfile": list(json.loads(found[1])), **composed}


def _composed(name: str, one: dict[str, Any]) -> Container:
    env = {key: re.sub(r"\$\{(\w+):\?[^}]*\}", r"$\1", value) for key, value in one["environment"].items()}
    ports = tuple(int(each.rpartition(":")[2]) for each in one.get("ports", ()))
    grace = one.get("stop_grace_period")
    return Container(
        f"compose.yaml {name}",
        one["command"][0],
        tuple(one["command"]),
        env,
        _checked_path(one),
        ports,
        _seconds(grace),
    )


def _checked_path(one: dict[str, Any]) -> tuple[str, ...]:
    found = re.findall(r"http://127\.0\.0\.1:\d+(/\w+)", " ".join(one["healthcheck"].get("test", ())))
    return tuple(found)


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    return float(text[:-1]) * {"s": 1, "m": 60}[text[-1]]


def _of_pod(one: dict[str, Any]) -> Container:
    spec = one["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    env = {each["name"]: each.get("value", f"${each['name']}") for each in container.get("env", ())}
    probes = tuple(container[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "readiness", "liveness") if f"{name}Probe" in container)  # fmt: skip
    ports = tuple(each["containerPort"] for each in container.get("ports", ()))
    words = tuple(container["args"])
    return Container(
        f"kubernetes {one['metadata']['name']}", words[0], words, env, probes, ports, spec.get("terminationGracePeriodSeconds")
    )  # fmt: skip
