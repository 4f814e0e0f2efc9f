"""The deployment files agree with each other and with the command line: every command, flag, variable, port and limit."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from functools import cache
from typing import Any

import jsonschema
import pytest
import yaml  # type: ignore[import-untyped]  # its types are one more package
from packaging.requirements import Requirement

import rung
from tests.deploy import manifests
from tests.deploy.manifests import COMPOSE, DEPLOY, KUBERNETES, KUSTOMIZATION, ROOT, Container

CONTAINERS = manifests.containers()
SETTINGS = tomllib.loads((DEPLOY / "rung.toml").read_text())
UID = 10001
WRITABLE = {"/var/lib/rung", "/tmp"}


@cache
def help_of(*words: str) -> str:
    """Return the help of a command, from the real program."""
    done = subprocess.run(
        [sys.executable, "-m", "rung", *words, "--help"], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, f"rung {' '.join(words)}: {done.stderr}"
    return done.stdout


def named(one: Container) -> str:
    return one.where.replace(" ", "-")


def test_compose_has_the_form_of_its_specification() -> None:
    """compose.yaml is valid by the JSON schema of the Compose specification."""
    schema = json.loads((ROOT / "tests/deploy/compose-spec.json").read_text())
    jsonschema.Draft7Validator(schema).validate(COMPOSE)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft7Validator(schema).validate({"services": {"a": {"image": 3}}})


def test_the_kustomization_lists_every_manifest() -> None:
    """Every manifest is applied, and the image has the version of this package."""
    files = {path.name for path in KUBERNETES.glob("*.yaml")} - {"kustomization.yaml"}
    assert set(KUSTOMIZATION["resources"]) == files
    assert KUSTOMIZATION["images"] == [{"name": "rung", "newName": "rung", "newTag": rung.__version__}]
    assert all("namespace" not in one["metadata"] for one in manifests.OBJECTS)


@pytest.mark.parametrize("one", CONTAINERS, ids=named)
def test_every_command_and_flag_exists(one: Container) -> None:
    """Each container's words are a command of `rung`, with options that its help lists."""
    first = next((n for n, word in enumerate(one.words) if word.startswith("-")), len(one.words))
    listed = help_of(*one.words[:first])
    for word in one.words[first:]:
        if word.startswith("--"):
            assert re.search(rf"^  {word}\b", listed, re.MULTILINE), f"{word} is no option of {one.words[:first]}"


@pytest.mark.parametrize("one", CONTAINERS, ids=named)
def test_every_variable_is_read(one: Container) -> None:
    """A variable of ours is read by the program, one of an upstream is named by the settings, and secrets have no value here."""
    keys = {upstream["key_env"] for upstream in SETTINGS["gateway"]["upstreams"].values()}
    source = "".join(path.read_text() for path in (ROOT / "src/rung").rglob("*.py"))
    for name, value in one.env.items():
        if name.startswith("RUNG_"):
            assert f'"{name}"' in source, f"nothing reads {name}"
        else:
            assert name in keys | {"PYTHONPATH"}, f"nothing reads {name}"
        if name != "PYTHONPATH":
            assert "$" in value, f"{name} has its value in the file"
    assert one.role != "gateway" or one.where == "Dockerfile" or keys <= one.env.keys()
    assert one.where == "Dockerfile" or one.env.keys() >= {"RUNG_JOURNAL", "RUNG_JOURNAL_KEY"}


def test_the_example_environment_names_every_secret_and_has_none() -> None:
    """example.env has exactly the variables that compose.yaml needs, all empty."""
    needed = set(re.findall(r"\$\{(\w+):\?", (DEPLOY / "compose.yaml").read_text()))
    lines = [line for line in (DEPLOY / "example.env").read_text().splitlines() if not line.startswith("#")]
    assert {line.rstrip("=") for line in lines} == needed
    assert all(line.endswith("=") for line in lines)


@pytest.mark.parametrize("one", CONTAINERS, ids=named)
def test_ports_agree(one: Container) -> None:
    """A container publishes the port that it is told to listen on, and the image exposes it."""
    if one.port is None:
        assert one.ports == ()
        return
    assert one.port in one.ports
    assert set(one.ports) <= set(manifests.exposed())


def test_every_service_leads_to_the_port_of_its_pods() -> None:
    """A Kubernetes Service selects pods that exist, and its port is theirs; so is that of every probe."""
    pods = {json.dumps(pod["spec"]["selector"]["matchLabels"]): pod for pod in manifests.of_kind("Deployment")}
    for service in manifests.of_kind("Service"):
        (container,) = pods[json.dumps(service["spec"]["selector"])]["spec"]["template"]["spec"]["containers"]
        (port,) = service["spec"]["ports"]
        assert {each["name"]: each["containerPort"] for each in container["ports"]}[port["targetPort"]] == port["port"]
        assert {container[f"{name}Probe"]["httpGet"]["port"] for name in ("startup", "readiness", "liveness")} == {port["targetPort"]}  # fmt: skip
    budgets = {json.dumps(one["spec"]["selector"]["matchLabels"]) for one in manifests.of_kind("PodDisruptionBudget")}
    assert budgets == pods.keys()


def test_the_grace_periods_are_longer_than_a_shutdown() -> None:
    """SIGKILL does not come before a gateway has drained by its own settings, nor before the service's preStop ends."""
    limits = SETTINGS["gateway"]["limits"]
    assert limits["shutdown_delay"] > 0
    gateways = [one for one in CONTAINERS if one.role == "gateway" and one.where != "Dockerfile"]
    assert len(gateways) == 3
    for one in gateways:
        assert one.grace is not None
        assert one.grace > limits["shutdown_delay"] + limits["drain"]
    (service,) = [one for one in manifests.of_kind("Deployment") if one["metadata"]["name"] == "rung-service"]
    spec = service["spec"]["template"]["spec"]
    (wait,) = spec["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][1:]
    assert spec["terminationGracePeriodSeconds"] > float(wait) + 5  # uvicorn's own time in service/server.py


def test_a_balancer_notices_within_the_shutdown_delay() -> None:
    """The readiness probe of the gateway fails often enough before the gateway stops listening."""
    (gateway,) = [one for one in manifests.of_kind("Deployment") if one["metadata"]["name"] == "rung-gateway"]
    probe = gateway["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]
    noticed = probe["periodSeconds"] * probe["failureThreshold"] + probe["timeoutSeconds"]
    assert noticed < SETTINGS["gateway"]["limits"]["shutdown_delay"]


def test_the_configuration_of_both_is_the_same() -> None:
    """The ConfigMap holds deploy/rung.toml and deploy/tasks.py as they are."""
    (config,) = manifests.of_kind("ConfigMap")
    assert config["data"] == {name: (DEPLOY / name).read_text() for name in ("rung.toml", "tasks.py")}


def test_every_container_is_confined() -> None:
    """Containers run as the image's user, without privileges, with a file system that can be written in two places."""
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    assert f"\nUSER {UID}:{UID}\n" in dockerfile
    assert f"--uid {UID} --gid {UID} --home-dir /var/lib/rung" in dockerfile
    for one in manifests.of_kind(*manifests.PODS):
        _check_pod(one["spec"]["template"]["spec"])
    for one in COMPOSE["services"].values():
        if one["image"] == "rung":
            assert (one["read_only"], one["cap_drop"]) == (True, ["ALL"])
            assert {place.partition(":")[0] for place in one["tmpfs"]} == WRITABLE
            assert f"uid={UID},gid={UID}" in one["tmpfs"][1]


def _check_pod(spec: dict[str, Any]) -> None:
    (container,) = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert {spec["securityContext"][name] for name in ("runAsUser", "runAsGroup", "fsGroup")} == {UID}
    assert spec["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"].keys() == {"requests", "limits"}
    empty = {each["name"] for each in spec["volumes"] if "emptyDir" in each}
    assert {each["mountPath"] for each in container["volumeMounts"] if each["name"] in empty} == WRITABLE


def test_the_lock_has_what_the_image_runs() -> None:
    """Every package of the image's extras is locked with hashes, in a version that the project accepts."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    locked = dict(re.findall(r"^([a-z0-9-]+)==([^\s;]+)", (DEPLOY / "requirements.txt").read_text(), re.MULTILINE))
    for name in ("gateway", "service", "postgres", "dbos", "temporal", "otel"):
        for line in extras[name]:
            needed = Requirement(line)
            if needed.name != "rung":
                assert needed.specifier.contains(locked[needed.name]), f"{name}: {line}, locked {locked[needed.name]}"
    for lock in ("requirements.txt", "build-requirements.txt"):
        text = (DEPLOY / lock).read_text()
        packages = re.split(r"\n(?=[a-z0-9])", text)[1:]
        assert packages
        assert all("--hash=sha256:" in each for each in packages)
        assert f"--require-hashes -r deploy/{lock}" in (DEPLOY / "Dockerfile").read_text()


def test_the_image_is_built_from_files_that_exist() -> None:
    """Each COPY names a path of the repository that the ignore file lets in."""
    allowed = {
        line[1:] for line in (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines() if line.startswith("!")
    }
    for line in re.findall(r"^COPY (?!--from)(.*)$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE):
        for source in line.split()[:-1]:
            assert (ROOT / source).exists(), source
            assert source in allowed, source


def test_yaml_has_no_duplicate_keys() -> None:
    """No mapping of a deployment file has a key twice, which YAML parsers accept silently."""

    class Strict(yaml.SafeLoader):  # type: ignore[misc]  # untyped
        pass

    def build(loader: Any, node: Any, deep: bool = False) -> Any:
        names = [
            loader.construct_object(key, deep=True) for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"
        ]
        assert len(names) == len(set(names)), f"{node.start_mark}: {names}"
        loader.flatten_mapping(node)
        return {loader.construct_object(key, deep=True): loader.construct_object(each, deep=True) for key, each in node.value}  # fmt: skip

    Strict.add_constructor("tag:yaml.org,2002:map", build)
    for path in (DEPLOY / "compose.yaml", *KUBERNETES.glob("*.yaml")):
        assert list(yaml.load_all(path.read_text(), Strict))
