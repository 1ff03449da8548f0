"""The chart gives the operator exactly the rights that it uses, settings that it knows, and pods that `restricted` admits."""

import json
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from octavo_operator.handlers import VALIDATE
from octavo_operator.kinds import KINDS
from octavo_operator.names import APP_NAME, OPERATOR_APP
from octavo_operator.settings import PREFIX, OperatorSettings

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "octavo"
CRD = ROOT / "crds" / "llmdeployments.yaml"
CERTIFICATE = ('webhook={"enabled": true, "certificate": {"secretName": "octavo-cert", "caBundle": "Q0E="}}',)

Manifest = dict[str, Any]
Render = Callable[..., list[Manifest]]
Right = tuple[str, str, str]  # group, resource, verb


def of_kind(objects: list[Manifest], kind: str) -> list[Manifest]:
    return [each for each in objects if each["kind"] == kind]


def only(objects: list[Manifest], kind: str) -> Manifest:
    (found,) = of_kind(objects, kind)
    return found


def rights(roles: list[Manifest]) -> set[Right]:
    return {
        (group, resource, verb)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def used() -> set[Right]:
    """What the operator's own table of kinds says that it does."""
    main = {(kind.group, kind.plural, verb) for kind in KINDS.values() for verb in kind.verbs}
    below = {(kind.group, f"{kind.plural}/{part}", "patch") for kind in KINDS.values() for part in kind.subresources}
    return main | below


def test_the_kind_in_the_chart_is_that_of_the_project() -> None:
    assert (CHART / "files" / "llmdeployments.yaml").read_bytes() == CRD.read_bytes(), "run `make chart`"


def test_versions_of_chart_and_distribution_are_the_same() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert (chart["version"], chart["appVersion"]) == (version, version)


def test_values_are_described_by_the_schema_one_to_one() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert set(schema["properties"]) - {"global"} == set(values)


def test_rights_are_exactly_those_that_the_code_uses(render: Render) -> None:
    objects = render()
    granted = rights([*of_kind(objects, "ClusterRole"), *of_kind(objects, "Role")])
    assert granted == used()


def test_no_right_is_a_wildcard_and_nothing_of_rbac_may_be_touched(render: Render) -> None:
    for group, resource, verb in rights(of_kind(render(), "ClusterRole")):
        assert "*" not in {group, resource, verb}
        assert group != "rbac.authorization.k8s.io"
        assert resource not in {"pods/exec", "serviceaccounts/token"}


def test_secrets_are_never_deleted_or_replaced(render: Render) -> None:
    objects = render()
    granted = rights([*of_kind(objects, "ClusterRole"), *of_kind(objects, "Role")])
    verbs = {verb for group, resource, verb in granted if (group, resource) == ("", "secrets")}
    assert verbs == {"get", "list", "watch", "create", "patch"}


def test_with_watched_namespaces_only_facts_of_the_cluster_are_read_beyond_them(render: Render) -> None:
    objects = render('watchNamespaces=["team-a", "team-b"]')
    assert {resource for _, resource, _ in rights([only(objects, "ClusterRole")])} == {"nodes", "storageclasses"}
    assert {verb for _, _, verb in rights([only(objects, "ClusterRole")])} == {"list", "watch"}
    roles = {role["metadata"]["namespace"]: role for role in of_kind(objects, "Role")}
    assert set(roles) == {"team-a", "team-b", "octavo-system"}
    assert rights(of_kind(objects, "Role")) | rights([only(objects, "ClusterRole")]) == used()
    bindings = {(each["metadata"]["namespace"], each["roleRef"]["name"]) for each in of_kind(objects, "RoleBinding")}
    assert bindings == {(namespace, role["metadata"]["name"]) for namespace, role in roles.items()}


def test_rights_are_bound_to_the_account_of_the_pods(render: Render) -> None:
    objects = render('serviceAccount={"name": "someone"}')
    account = only(objects, "ServiceAccount")["metadata"]["name"]
    pod = only(objects, "Deployment")["spec"]["template"]["spec"]
    bindings = [*of_kind(objects, "RoleBinding"), *of_kind(objects, "ClusterRoleBinding")]
    assert account == pod["serviceAccountName"] == "someone"
    assert {(each["name"], each["namespace"]) for binding in bindings for each in binding["subjects"]} == {
        ("someone", "octavo-system")
    }


@pytest.mark.parametrize("settings", [(), CERTIFICATE])
def test_every_variable_is_a_setting_and_every_value_can_be_read(
    render: Render, monkeypatch: pytest.MonkeyPatch, settings: tuple[str, ...]
) -> None:
    objects = render('watchNamespaces=["a", "b"]', 'runtime={"imagePullSecrets": ["pull"], "fsGroup": null}', *settings)
    (container,) = only(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    given = {each["name"]: each["value"] for each in container["env"] if each["name"].startswith(PREFIX)}
    unknown = {name for name in given if name.removeprefix(PREFIX).lower() not in OperatorSettings.model_fields}
    assert not unknown
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    read = OperatorSettings()
    assert (read.namespaces, read.image_pull_secrets, read.fs_group) == (("a", "b"), ("pull",), None)
    assert read.lease_name == only(objects, "Lease")["metadata"]["name"]
    assert read.admin_secret_name == only(objects, "Secret")["metadata"]["name"]
    assert read.webhook == bool(settings)


def test_lease_and_secret_may_be_filled_in_by_name_alone(render: Render) -> None:
    objects = render()
    named = {
        (resource, name)
        for role in of_kind(objects, "Role")
        for rule in role["rules"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", ())
    }
    assert named == {
        ("leases", only(objects, "Lease")["metadata"]["name"]),
        ("secrets", only(objects, "Secret")["metadata"]["name"]),
    }
    assert "spec" not in only(objects, "Lease")
    assert "data" not in only(objects, "Secret")


def test_pods_keep_to_the_restricted_standard_with_any_user(render: Render) -> None:
    pod = only(render(*CERTIFICATE), "Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {next(iter(set(volume) - {"name"})) for volume in pod["volumes"]} <= {"emptyDir", "secret"}


def test_models_let_the_operators_pods_in_by_their_label(render: Render) -> None:
    template = only(render(), "Deployment")["spec"]["template"]
    assert template["metadata"]["labels"][APP_NAME] == OPERATOR_APP


def test_two_replicas_stand_for_election_and_one_may_be_disrupted(render: Render) -> None:
    objects = render()
    assert only(objects, "Deployment")["spec"]["replicas"] == 2
    assert only(objects, "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
    assert not of_kind(render("replicas=1"), "PodDisruptionBudget")


def test_two_replicas_without_election_are_refused(render: Render) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        render("leaderElection=false")
    assert "leaderElection: false is for one replica only" in refused.value.stderr


def test_a_misspelt_value_is_refused(render: Render) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        render('runtime={"gpuResouce": "nvidia.com/gpu"}')
    assert "gpuResouce" in refused.value.stderr


def test_the_kind_stays_when_the_chart_goes_unless_told_otherwise(render: Render) -> None:
    kept, gone = only(render(), "CustomResourceDefinition"), only(render("crds.keep=false"), "CustomResourceDefinition")
    assert kept["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert gone == yaml.safe_load(CRD.read_text())
    assert kept["spec"] == gone["spec"]
    assert not of_kind(render("crds.install=false"), "CustomResourceDefinition")


def test_optional_objects_are_made_when_asked_for(render: Render) -> None:
    asked = ("metrics.serviceMonitor.enabled=true", "networkPolicy.enabled=true")
    kinds = {each["kind"] for each in render()}
    more = {each["kind"] for each in render(*asked)}
    assert more - kinds == {"ServiceMonitor", "NetworkPolicy"}


def test_a_webhook_never_stands_in_the_way(render: Render) -> None:
    objects = render(*CERTIFICATE)
    (webhook,) = only(objects, "ValidatingWebhookConfiguration")["webhooks"]
    assert (webhook["failurePolicy"], webhook["sideEffects"]) == ("Ignore", "None")
    assert webhook["clientConfig"]["caBundle"] == "Q0E="
    assert webhook["clientConfig"]["service"]["path"] == f"/{VALIDATE}"
    ports = only(objects, "Service")["spec"]["ports"]
    assert webhook["clientConfig"]["service"]["port"] in [port["port"] for port in ports]


def test_a_webhook_without_a_certificate_is_refused(render: Render) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        render("webhook.enabled=true")
    assert "set webhook.certificate.certManager.enabled, or secretName and caBundle" in refused.value.stderr


def test_cert_manager_issues_the_certificate_that_pods_mount(render: Render) -> None:
    objects = render('webhook={"enabled": true, "certificate": {"certManager": {"enabled": true}}}')
    certificate = only(objects, "Certificate")
    volumes = only(objects, "Deployment")["spec"]["template"]["spec"]["volumes"]
    assert certificate["spec"]["secretName"] in [volume.get("secret", {}).get("secretName") for volume in volumes]
    assert certificate["spec"]["issuerRef"]["name"] == only(objects, "Issuer")["metadata"]["name"]
    annotations = only(objects, "ValidatingWebhookConfiguration")["metadata"]["annotations"]
    assert annotations["cert-manager.io/inject-ca-from"] == f"octavo-system/{certificate['metadata']['name']}"
