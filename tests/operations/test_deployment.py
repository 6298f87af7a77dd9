"""What is under `deploy/`: valid by the schemas of those who read it, and in agreement with the server it starts."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from psycopg.conninfo import conninfo_to_dict

from cortex_py.core.config import Settings, load_settings, setting_names
from cortex_py.surfaces.cli import cli
from cortex_py.surfaces.http.access import OPEN_PATHS
from timing import MINUTE

import lock
from postgres_server import PostgresServer

DEPLOY = Path(__file__).parents[2] / "deploy"
KUBERNETES = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
NEWEST, OLDEST = "1.37", "1.33"
VARIABLES = {f"CORTEX_{name.upper()}" for name in (*setting_names(), "home")}
DOCKERFILE = (DEPLOY / "Dockerfile").read_text("utf-8")
WITH_REPLICA = "docker-compose.replica.yml"
# What the server takes after it has drained, at most: connections that stay open, and the store.
AFTERWARDS = 10


def _objects() -> list[dict[str, Any]]:
    return [one for path in KUBERNETES for one in yaml.safe_load_all(path.read_text("utf-8"))]


def _one(kind: str) -> dict[str, Any]:
    (found,) = [one for one in _objects() if one["kind"] == kind]
    return found


def _compose(name: str = "docker-compose.yml") -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((DEPLOY / name).read_text("utf-8"))
    return loaded


@pytest.mark.parametrize("version", [NEWEST, OLDEST])
def test_every_object_is_valid_kubernetes(version: str) -> None:
    found = _objects()
    assert {one["kind"] for one in found} == {
        "ConfigMap",
        "Deployment",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Secret",
        "Service",
    }
    for one in found:
        kubernetes_validate.validate(one, version, strict=True)


def test_the_schema_would_notice_a_fault() -> None:
    wrong = _one("Deployment")
    wrong["spec"]["template"]["spec"]["containers"][0]["readinessProbes"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, NEWEST, strict=True)


def test_the_composition_is_valid() -> None:
    schema = json.loads(files("check_jsonschema").joinpath("builtin_schemas/vendor/compose-spec.json").read_text())
    validator = jsonschema.validators.validator_for(schema)(schema)
    validator.validate(_compose())
    validator.validate(_compose(WITH_REPLICA))
    wrong = _compose()
    wrong["services"]["cortex"]["depend_on"] = {}
    assert not validator.is_valid(wrong)


def test_only_settings_that_exist_are_set() -> None:
    told = [*_one("ConfigMap")["data"], *_compose()["services"]["cortex"]["environment"]]
    told += _compose(WITH_REPLICA)["services"]["cortex"]["environment"]
    told += [name for one in _objects() if one["kind"] == "Secret" for name in one["stringData"] if name != "audit.key"]
    told += re.findall(r"\b(CORTEX_[A-Z_]+)=", DOCKERFILE)
    assert len(told) > 10
    assert set(told) <= VARIABLES
    # Also by their values.
    load_settings(environment=_one("ConfigMap")["data"])


def _seconds(settings: Settings, before: int = 0) -> int:
    return before + settings.drain_seconds + AFTERWARDS


def test_whoever_stops_the_server_waits_for_its_drain() -> None:
    pod = _one("Deployment")["spec"]["template"]["spec"]
    settings = load_settings(environment=_one("ConfigMap")["data"])
    pause = pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pod["terminationGracePeriodSeconds"] >= _seconds(settings, pause)
    grace = _compose()["services"]["cortex"]["stop_grace_period"]
    assert int(grace.removesuffix("s")) >= _seconds(load_settings(environment={}))


def test_probes_ask_pages_that_need_no_token_by_a_name_the_server_knows() -> None:
    (container,) = _one("Deployment")["spec"]["template"]["spec"]["containers"]
    probes = [container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")]
    assert [probe["path"] for probe in probes] == ["/health/live", "/health/live", "/health/ready"]
    assert {probe["path"] for probe in probes} <= OPEN_PATHS
    assert all(probe["httpHeaders"] == [{"name": "Host", "value": "localhost"}] for probe in probes)
    assert container["readinessProbe"]["timeoutSeconds"] > 2


def test_parts_find_each_other() -> None:
    deployment, pod = _one("Deployment"), _one("Deployment")["spec"]["template"]
    labels = pod["metadata"]["labels"]
    assert deployment["spec"]["replicas"] >= 2
    for selector in (
        deployment["spec"]["selector"]["matchLabels"],
        _one("Service")["spec"]["selector"],
        _one("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        _one("NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
    ):
        assert selector.items() <= labels.items()
    secrets = {one["metadata"]["name"] for one in _objects() if one["kind"] == "Secret"}
    assert {one["secret"]["secretName"] for one in pod["spec"]["volumes"] if "secret" in one} <= secrets
    (container,) = pod["spec"]["containers"]
    assert {one["secretRef"]["name"] for one in container["envFrom"] if "secretRef" in one} <= secrets
    volumes = {one["name"] for one in pod["spec"]["volumes"]}
    for one in (*pod["spec"]["initContainers"], container):
        assert {mount["name"] for mount in one["volumeMounts"]} <= volumes
        assert one["securityContext"]["readOnlyRootFilesystem"]
        assert one["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert not one["securityContext"]["allowPrivilegeEscalation"]
    assert pod["spec"]["securityContext"]["runAsNonRoot"]


def test_the_image_is_built_from_hashes_and_runs_without_rights() -> None:
    installs = [line for line in DOCKERFILE.splitlines() if "pip install" in line]
    assert len(installs) == 2
    assert all("--require-hashes" in line or "--no-deps" in line for line in installs)
    locked = lock.part(["server"])
    for package in ("psycopg-binary", "opentelemetry-sdk", "fastmcp-slim"):
        assert re.search(rf"^{package}==\S+ \\\n    --hash=sha256:", locked, re.MULTILINE), package
    assert "://" not in locked
    users = re.findall(r"^USER (\S+)", DOCKERFILE, re.MULTILINE)
    assert users == ["10001:10001"]
    (words,) = re.findall(r"^ENTRYPOINT (.*)$", DOCKERFILE, re.MULTILINE)
    program, command, *options = json.loads(words)
    assert (program, command) == ("cortex", "serve")
    known = {word for option in cli.get_command(None, command).params for word in option.opts}  # type: ignore[arg-type,union-attr]
    assert {word for word in options if word.startswith("--")} <= known
    for copied in re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.MULTILINE):
        assert all((DEPLOY.parent / name).exists() for name in copied.split())


def _servers(address: str) -> list[tuple[str, str]]:
    found = conninfo_to_dict(address)
    return list(zip(str(found["host"]).split(","), str(found["port"]).split(","), strict=True))


def test_addresses_name_every_server_of_the_database() -> None:
    services = _compose()["services"] | _compose(WITH_REPLICA)["services"]
    composed = _compose(WITH_REPLICA)["services"]["cortex"]["environment"]
    # Compose puts the password in.
    plain = {name: re.sub(r"\$\{[^}]*\}", "secret", value) for name, value in composed.items()}
    (secret,) = [one["stringData"] for one in _objects() if one["metadata"]["name"] == "cortex" and "stringData" in one]
    for addresses in (plain, secret):
        writing, reading = (_servers(addresses[f"CORTEX_DATABASE_{kind}URL"]) for kind in ("", "READ_"))
        assert len(writing) == 2
        assert writing == reading
    assert {host for host, _ in _servers(plain["CORTEX_DATABASE_URL"])} <= services.keys()
    ports = [rule["ports"] for rule in _one("NetworkPolicy")["spec"]["egress"]]
    assert {int(port) for _, port in _servers(secret["CORTEX_DATABASE_URL"])} <= {
        one["port"] for listed in ports for one in listed
    }


@pytest.mark.sqlite_only
def test_the_scripts_of_the_replica_copy_a_running_server(postgres_server: PostgresServer) -> None:
    folder = postgres_server.folder / "copied"
    # Beside the data: the user of the server cannot enter the folder of a test.
    programs = postgres_server.folder / "in place of"
    programs.mkdir()
    # What the image starts in the end.
    (programs / "postgres").write_text("#!/bin/sh\necho started in $PGDATA\n")
    (programs / "postgres").chmod(0o755)
    programs.chmod(0o755)
    database = {"POSTGRES_USER": "postgres", "POSTGRES_DB": "postgres", "POSTGRES_PASSWORD": "it's secret"}
    path = f"{programs}:{postgres_server.programs}:{os.environ['PATH']}"
    usual = {"PATH": path, "PGHOST": str(postgres_server.folder), **database}

    def run(script: str, **more: str) -> str:
        text = (DEPLOY / script).read_text("utf-8")
        done = subprocess.run(
            ["bash", "-s"],
            env=usual | more,
            check=False,
            timeout=MINUTE,
            **postgres_server.as_user | {"stdin": None, "input": text},  # type: ignore[call-overload]
        )
        assert done.returncode == 0, done.stderr
        return str(done.stdout)

    try:
        run("replication.sh", PGDATA=str(postgres_server.folder / "data"))
        reached = {"PGDATA": str(folder), "CORTEX_PRIMARY": str(postgres_server.folder), "PGPASSWORD": "it's secret"}
        assert run("replica.sh", **reached) == f"started in {folder}\n"
        assert (folder / "standby.signal").exists()
        assert "user=replicator" in (folder / "postgresql.auto.conf").read_text()
        # The second start copies nothing.
        assert run("replica.sh", **reached | {"CORTEX_PRIMARY": "nowhere"}) == f"started in {folder}\n"
    finally:
        postgres_server.run("DROP ROLE IF EXISTS replicator")
        for one in (folder, programs):
            shutil.rmtree(one, ignore_errors=True)
