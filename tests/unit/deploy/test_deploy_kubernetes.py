"""The Kubernetes files against the published schemas, and what they must not forget."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from collector.commands.demo import sidecar_config
from collector.config import Config
from collector.configfile import load

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "collector/deploy/kubernetes"
SCHEMAS = json.loads((ROOT / "tests/data/schemas/kubernetes.json").read_text(encoding="utf-8"))
FILES = sorted(FOLDER.glob("*.yaml"))


class _UniqueKeys(yaml.SafeLoader):
    """Refuses a key that occurs twice, where YAML's last one would win silently."""


def _mapping(loader: _UniqueKeys, node: yaml.MappingNode) -> dict[Any, Any]:
    keys = [loader.construct_object(key) for key, _ in node.value]
    assert len(keys) == len(set(keys)), f"{node.start_mark}: a key occurs twice"
    return dict(zip(keys, (loader.construct_object(value, deep=True) for _, value in node.value), strict=True))


_UniqueKeys.add_constructor("tag:yaml.org,2002:map", _mapping)


def documents(file: Path) -> list[dict[str, Any]]:
    # _UniqueKeys is a SafeLoader.
    return list(yaml.load_all(file.read_text(encoding="utf-8"), Loader=_UniqueKeys))


ALL = [(file.name, document) for file in FILES for document in documents(file)]
IDS = [f"{name}-{document['kind']}" for name, document in ALL]


def problems(document: dict[str, Any]) -> list[str]:
    kind = f"{document['apiVersion']}/{document['kind']}"
    schema = {"definitions": SCHEMAS["definitions"], **SCHEMAS["kinds"][kind]}
    validator = jsonschema.Draft202012Validator(schema)
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(document)]


def pods(kind: str = "Deployment") -> Iterator[tuple[str, dict[str, Any]]]:
    for name, document in ALL:
        if document["kind"] == kind:
            yield name, document["spec"]["template"]["spec"]


def containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return [*pod.get("initContainers", ()), *pod["containers"]]


@pytest.mark.parametrize(("_name", "document"), ALL, ids=IDS)
def test_follows_the_published_schema(_name: str, document: dict[str, Any]) -> None:
    assert problems(document) == []


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("Deployment", ("spec", "replicaz"), 1),
        ("Deployment", ("spec", "replicas"), "one"),
        ("ServiceMonitor", ("spec", "endpointz"), []),
        ("NetworkPolicy", ("spec", "ingress"), {}),
    ],
)
def test_the_schemas_would_see_a_mistake(kind: str, path: tuple[str, str], value: object) -> None:
    document = next(document for _, document in ALL if document["kind"] == kind)
    broken = {**document, path[0]: {**document[path[0]], path[1]: value}}
    assert problems(broken)


def test_what_is_promised_is_there() -> None:
    kinds = {document["kind"] for _, document in ALL}
    assert kinds >= {"Deployment", "Service", "ConfigMap", "Secret", "ServiceMonitor", "NetworkPolicy"}
    assert {file.stem for file in FILES} >= {"deployment", "sidecar", "collector", "collector-loadbalancing"}


def test_groundwatch_containers_are_confined_probed_and_sized() -> None:
    found = 0
    for file, pod in pods():
        for container in containers(pod):
            if container["name"] != "groundwatch":
                continue
            found += 1
            security = {**pod.get("securityContext", {}), **container["securityContext"]}
            assert security["runAsNonRoot"] is True, file
            assert security["runAsUser"] == 65532
            assert security["readOnlyRootFilesystem"] is True
            assert security["allowPrivilegeEscalation"] is False
            assert security["capabilities"] == {"drop": ["ALL"]}
            assert security["seccompProfile"] == {"type": "RuntimeDefault"}
            assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
            assert container["resources"]["requests"].keys() == {"cpu", "memory"}
            assert container["resources"]["limits"]["memory"]
            # Kubernetes would set GROUNDWATCH_PORT=tcp://... for a Service called groundwatch: a setting to us.
            assert pod["enableServiceLinks"] is False
            assert pod["terminationGracePeriodSeconds"] >= 60
            mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
            assert "/tmp" in mounts
    assert found == 2


def test_the_deployment_is_ready_by_readyz_and_a_sidecar_never_takes_its_application_out() -> None:
    by_file = dict(pods())
    (main,) = by_file["deployment.yaml"]["containers"]
    assert main["readinessProbe"]["httpGet"]["path"] == "/readyz"
    (sidecar,) = by_file["sidecar.yaml"]["initContainers"]
    assert sidecar["restartPolicy"] == "Always"
    assert "readinessProbe" not in sidecar


def test_volumes_ports_and_selectors_fit_together() -> None:
    labels = {}
    ports: dict[str, set[Any]] = {}
    for _, document in ALL:
        if document["kind"] != "Deployment":
            continue
        template = document["spec"]["template"]
        name = template["metadata"]["labels"]["app.kubernetes.io/name"]
        assert document["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
        labels[name] = template["metadata"]["labels"]
        volumes = {volume["name"] for volume in template["spec"]["volumes"]}
        for container in containers(template["spec"]):
            assert {mount["name"] for mount in container.get("volumeMounts", ())} <= volumes
            known = {port["name"] for port in container.get("ports", ())}
            ports.setdefault(name, set()).update(known)
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                if probe in container:
                    assert container[probe]["httpGet"]["port"] in known
    for _, document in ALL:
        if document["kind"] == "Service":
            name = document["spec"]["selector"]["app.kubernetes.io/name"]
            assert {port["targetPort"] for port in document["spec"]["ports"]} <= ports[name]


def test_the_servicemonitor_selects_exactly_one_service_and_its_port() -> None:
    (monitor,) = (d for _, d in ALL if d["kind"] == "ServiceMonitor")
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    (service,) = (d for _, d in ALL if d["kind"] == "Service" and wanted <= d["metadata"]["labels"].items())
    assert monitor["spec"]["endpoints"][0]["port"] in {port["name"] for port in service["spec"]["ports"]}


def test_secrets_hold_placeholders_and_are_the_ones_mounted() -> None:
    (secret,) = (d for _, d in ALL if d["kind"] == "Secret")
    assert set(secret["stringData"].values()) == {"replace-me"}
    pod = dict(pods())["deployment.yaml"]
    mounted = [v["secret"]["secretName"] for v in pod["volumes"] if "secret" in v]
    assert mounted == [secret["metadata"]["name"]]


def collector_configs() -> list[Any]:
    return [
        pytest.param(yaml.safe_load(document["data"]["config.yaml"]), id=name)
        for name, document in ALL
        if document["kind"] == "ConfigMap" and "config.yaml" in document["data"]
    ]


@pytest.mark.parametrize("config", collector_configs())
def test_collector_pipelines_use_what_is_defined_and_all_of_it(config: dict[str, Any]) -> None:
    pipelines = config["service"]["pipelines"]
    for part in ("receivers", "processors", "exporters"):
        used = {name for pipeline in pipelines.values() for name in pipeline[part]}
        assert used == config[part].keys()
    assert set(config["service"]["extensions"]) == config["extensions"].keys()
    for name, pipeline in pipelines.items():
        assert pipeline["processors"][0] == "memory_limiter"
        if name.endswith("/groundwatch"):
            assert not {"tail_sampling", "probabilistic_sampler"} & set(pipeline["processors"])
            assert pipeline["processors"][-1] == "batch"
    assert {"traces/groundwatch", "logs/groundwatch"} <= pipelines.keys()


def test_the_collectors_addresses_are_those_of_the_services() -> None:
    plain, balanced = (parameter.values[0] for parameter in reversed(collector_configs()))
    services = {
        f"{d['metadata']['name']}.{d['metadata']['namespace']}.svc.cluster.local": d["spec"]
        for _, d in ALL
        if d["kind"] == "Service"
    }
    host, port = plain["exporters"]["otlp/groundwatch"]["endpoint"].split(":")
    assert int(port) in {p["port"] for p in services[host]["ports"]}
    resolver = balanced["exporters"]["loadbalancing"]["resolver"]["dns"]
    # Only a headless Service gives the addresses of the replicas.
    assert services[resolver["hostname"]]["clusterIP"] == "None"
    assert balanced["exporters"]["loadbalancing"]["routing_key"] == "traceID"


def groundwatch_configs() -> list[Any]:
    (mapped,) = (d["data"] for _, d in ALL if d["kind"] == "ConfigMap" and "groundwatch.yaml" in d["data"])
    compose = (ROOT / "collector/deploy/compose/groundwatch.yaml").read_text(encoding="utf-8")
    return [
        pytest.param(yaml.safe_load(mapped["groundwatch.yaml"]), id="kubernetes"),
        pytest.param(yaml.safe_load(compose), id="compose"),
        pytest.param(sidecar_config(http=4318, grpc=4317), id="demo"),
    ]


@pytest.mark.parametrize("config", groundwatch_configs())
def test_our_own_configurations_are_valid(config: dict[str, dict[str, Any]]) -> None:
    read = Config.model_validate({"bind": "0.0.0.0", **config})
    assert read.receivers.http.host == read.receivers.grpc.host == "0.0.0.0"
    with pytest.raises(ValueError, match="no_such_setting"):
        Config.model_validate({**config, "no_such_setting": 1})


def test_the_pod_waits_longer_than_the_drain_and_its_state_can_be_written() -> None:
    (text,) = (d["data"]["groundwatch.yaml"] for _, d in ALL if "groundwatch.yaml" in d.get("data", {}))
    process = Config.model_validate(yaml.safe_load(text)).process
    pod = dict(pods())["deployment.yaml"]
    assert pod["terminationGracePeriodSeconds"] > process.grace_seconds
    (main,) = pod["containers"]
    (state,) = (m["name"] for m in main["volumeMounts"] if m["mountPath"] == str(process.state_dir))
    assert next(v for v in pod["volumes"] if v["name"] == state)["emptyDir"]


_UNITS = {"Mi": 2**20, "Gi": 2**30}
_PROCESS_BYTES = 200 * 2**20  # resident, with the screening worker, as README.md has it


def _bytes(quantity: str) -> int:
    return int(quantity[:-2]) * _UNITS[quantity[-2:]]


def test_the_state_directory_holds_what_the_configuration_lets_grow_there() -> None:
    """The kubelet evicts a pod whose emptyDir is over its limit, and everything in it is gone."""
    (text,) = (d["data"]["groundwatch.yaml"] for _, d in ALL if "groundwatch.yaml" in d.get("data", {}))
    config = Config.model_validate(yaml.safe_load(text))
    (state,) = (v for v in dict(pods())["deployment.yaml"]["volumes"] if v["name"] == "state")
    grows = config.review.max_bytes + 50 * config.books.max_keys
    if config.process.durability == "spool":
        grows += config.spool.max_bytes
    assert _bytes(state["emptyDir"]["sizeLimit"]) >= 1.25 * grows


def test_the_memory_limit_exceeds_what_open_traces_and_requests_may_take() -> None:
    (text,) = (d["data"]["groundwatch.yaml"] for _, d in ALL if "groundwatch.yaml" in d.get("data", {}))
    for file, pod in pods():
        for container in containers(pod):
            if container["name"] != "groundwatch":
                continue
            settings = {
                one["name"]: one["value"] for one in container["env"] if one["name"] != "GROUNDWATCH_CONFIG"
            }
            config = load(Config, None, settings)
            if file == "deployment.yaml":
                config = Config.model_validate(yaml.safe_load(text))
            may = config.assembly.max_bytes + config.receivers.http.max_body_bytes_in_progress + _PROCESS_BYTES
            assert _bytes(container["resources"]["limits"]["memory"]) >= may, file


def test_a_bound_page_has_a_token_whose_secret_is_mounted() -> None:
    pod = dict(pods())["deployment.yaml"]
    (secret,) = (d for _, d in ALL if d["kind"] == "Secret")
    (mapped,) = (d["data"] for _, d in ALL if d["kind"] == "ConfigMap" and "groundwatch.yaml" in d["data"])
    token_file = Path(yaml.safe_load(mapped["groundwatch.yaml"])["web"]["token_file"])
    assert token_file.name in secret["stringData"]
    (main,) = pod["containers"]
    assert str(token_file.parent) in {mount["mountPath"] for mount in main["volumeMounts"]}
