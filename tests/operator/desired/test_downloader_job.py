"""The Job that fills a claim."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from octavo_operator.desired.downloader_job import downloader_job, downloader_name
from octavo_operator.weights import Weights

COMMIT = "0123456789abcdef0123456789abcdef01234567"
SPEC: dict[str, Any] = {"cache": {"mode": "SharedPVC", "sharedPVC": {"claimName": "models"}}}


@pytest.fixture
def job(render: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    def make(spec: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
        rendered = render(SPEC | (spec or {}), **options)
        return downloader_job(rendered.deployment, rendered.effective, rendered.weights, rendered.defaults)

    return make


def pod_of(manifest: dict[str, Any]) -> dict[str, Any]:
    pod: dict[str, Any] = manifest["spec"]["template"]["spec"]
    return pod


def test_one_job_per_claim_model_and_commit(deployment: Callable[..., Any], job: Callable[..., Any]) -> None:
    resource = deployment(**SPEC)
    other = msgspec.structs.replace(resource, namespace="elsewhere")
    assert downloader_name(resource, Weights(COMMIT)) == downloader_name(other, Weights(COMMIT, 5))
    assert downloader_name(resource, Weights(COMMIT)) != downloader_name(resource, Weights("f" * 40))
    assert job()["metadata"]["name"] == downloader_name(resource, Weights(COMMIT))


def test_it_runs_the_serving_image_on_the_claim_and_asks_for_no_gpu(job: Callable[..., Any]) -> None:
    pod = pod_of(job(gpus=8))
    (container,) = pod["containers"]
    assert container["image"] == "registry.example/octavo-runtime:1.0.0"
    assert container["args"][:2] == ["download", "acme/small-1b"]
    assert {"name": "weights", "persistentVolumeClaim": {"claimName": "models"}} in pod["volumes"]
    assert {"name": "weights", "mountPath": "/models"} in container["volumeMounts"]
    assert not [name for name in container["resources"]["requests"] if "gpu" in name]


def test_it_may_write_on_a_fresh_claim_and_is_as_restricted_as_a_server(job: Callable[..., Any]) -> None:
    pod = pod_of(job())
    assert pod["securityContext"]["fsGroup"] == 65532
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod["automountServiceAccountToken"] is False
    assert "fsGroup" not in pod_of(job(fs_group=None))["securityContext"]


def test_it_is_restarted_rather_than_given_up(job: Callable[..., Any]) -> None:
    made = job()["spec"]
    assert made["template"]["spec"]["restartPolicy"] == "OnFailure"
    assert made["backoffLimit"] >= 1000
    assert not {"activeDeadlineSeconds", "ttlSecondsAfterFinished"} & made.keys()


def test_its_pods_are_no_servers(job: Callable[..., Any]) -> None:
    labels = job()["spec"]["template"]["metadata"]["labels"]
    assert labels["octavo.dev/component"] == "downloader"
    assert "octavo.dev/routed" not in labels


def test_what_the_user_says_of_the_pod_holds_for_it_and_what_he_says_of_the_server_does_not(
    job: Callable[..., Any],
) -> None:
    patch = {
        "metadata": {"labels": {"cost": "low"}},
        "spec": {
            "securityContext": {"runAsUser": 1234},
            "dnsPolicy": "Default",
            "terminationGracePeriodSeconds": 900,
            "containers": [
                {"name": "octavo", "resources": {"limits": {"memory": "99Gi"}}},
                {"name": "side", "image": "side:1"},
            ],
            "volumes": [{"name": "extra", "emptyDir": {}}],
        },
    }
    own = {
        "env": [{"name": "HTTPS_PROXY", "value": "http://proxy.example"}],
        "labels": {"team": "a"},
        "nodeSelector": {"zone": "b"},
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "serviceAccountName": "mine",
    }
    made = job({"pod": own | {"patch": patch}})
    template, pod = made["spec"]["template"], pod_of(made)
    (container,) = pod["containers"]
    assert {"name": "HTTPS_PROXY", "value": "http://proxy.example"} in container["env"]
    assert template["metadata"]["labels"].items() >= {"team": "a", "cost": "low"}.items()
    assert (pod["nodeSelector"], pod["serviceAccountName"]) == ({"zone": "b"}, "mine")
    assert pod["tolerations"] == [{"key": "spot", "operator": "Exists"}]
    assert (pod["securityContext"]["runAsUser"], pod["dnsPolicy"]) == (1234, "Default")
    assert container["resources"]["limits"]["memory"] == "2Gi"
    assert [volume["name"] for volume in pod["volumes"]] == ["cache", "tmp", "weights"]
    assert "terminationGracePeriodSeconds" not in pod
