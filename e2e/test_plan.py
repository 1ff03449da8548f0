"""What `kubectl octavo plan` refuses offline is what kubectl and a real API server refuse, and it takes what they take.

Nothing is created. Texts, not objects, are sent: much of what goes wrong is in how YAML is read.
"""

import json
from pathlib import Path

import pytest
from e2e.kubernetes import Answer, Kubectl
from e2e.test_validation import bad_specs, deployment, schema_of_spec

from octavo_operator.plugin.errors import PluginError
from octavo_operator.plugin.manifest import read_manifests
from octavo_operator.plugin.plan import DEFAULTS

HEAD = "apiVersion: octavo.dev/v1alpha1\nkind: LLMDeployment\n"
PLAIN = 'metadata: {name: a}\nspec:\n  model: {uri: "hf://org/model"}\n'
METADATA = "metadata: {name: a, %s}\nspec: {model: {uri: 'hf://org/model'}}\n"
MODEL = "metadata: {name: a}\nspec: {model: {uri: 'hf://org/model', %s}}\n"

TAKEN = [
    "replicas: 2.0",
    "replicas: 1e2",
    "replicas: 0o2",
    "replicas: 010",
    "replicas: 1_0",
    "replicas: null",
    "suspend: y",
    "suspend: Off",
    "suspend: ~",
    "engine:",
    "engine: {dtype: }",
    "engine: {maxModelLen: 4096.0}",
    "engine: {tensorParallelSize: 2.0}",
    "pod: {nodeSelector: {1: a}}",
    "pod: {nodeSelector: {on: a}}",
    "pod: {labels: {true: a}}",
    "pod: {labels: {t: 12:30, u: 2024-05-01}}",
    "pod: {labels: {a: null}, annotations: }",
    "pod: {annotations: {1.5: a}}",
    "pod: {patch: {metadata: {annotations: {day: 2024-05-01}}}}",
    "pod: {env: [{name: A, value: 'y'}]}",
    "resources: {memory: 64Gi, cpu: 4}",
    "resources: {memory: 1e12, cpu: 0.5e1}",
]
REFUSED = [
    "replicas: 2.5",
    "replicas: 1:30",
    "replicas: '2'",
    "replicas: 99999999999999999999",
    "suspend: 'yes'",
    "engine: []",
    "engine: {extraArgs: [null]}",
    "engine: {maxModelLen: 99999999999999999999}",
    "engine: {gpuMemoryUtilization: .inf}",
    "enigne: {}",
    "pod: {labels: {tier: y}}",
    "pod: {nodeSelector: {sha: 1e5}}",
    "pod: {env: [{name: A, value: y}]}",
    "pod: {tolerations: [{tolerationSeconds: 9223372036854775808}]}",
    "access: {networkPolicy: {allowFrom: [null]}}",
    "access: {networkPolicy: {allowFrom: [{podSelector: null}]}}",
    "resources: {memory: ' 16Gi'}",
    "resources: {cpu: 1k1}",
]
TEXTS_TAKEN = [
    *(f"{PLAIN}  {line}\n" for line in TAKEN),
    METADATA % "annotations: {reviewed: 2024-05-01}",
    METADATA % "labels: {app.kubernetes.io/name: a, x: }",
    METADATA % "creationTimestamp: null, namespace: ",
    METADATA % "labels: &x {a: b}, annotations: {<<: *x, c: d}",
    MODEL % "revision: 2024-01-01",
    MODEL % "revision: 7e12345",
]
TEXTS_REFUSED = [
    *(f"{PLAIN}  {line}\n" for line in REFUSED),
    METADATA % "label: {}",
    METADATA % "labels: {x: 5}",
    METADATA % "labels: [x]",
    METADATA % "labels: {'a b': c}",
    METADATA % "labels: {a: b c}",
    METADATA % "annotations: {a/b/c: d}",
    METADATA % "finalizers: x",
    MODEL % "revision: 1e5",
    MODEL % "servedNames: [3e2]",
    "metadata: {name: a}\nspec:\n",
    "metadata: {name: a}\nspec: {model: }\n",
    "metadata: {name: 5}\nspec: {model: {uri: 'hf://org/model'}}\n",
    "metadata: {name: Abc}\nspec: {model: {uri: 'hf://org/model'}}\n",
    "metadata: {}\nspec: {model: {uri: 'hf://org/model'}}\n",
]


def planned(text: str, tmp_path: Path) -> tuple[str, ...]:
    """What plan has against it."""
    path = tmp_path / "model.yaml"
    path.write_text(text)
    try:
        [found] = read_manifests(str(path), "default", DEFAULTS)
    except PluginError as error:
        return (str(error),)
    return found.refusals


def sent(text: str, kubectl: Kubectl) -> Answer:
    """Without leaving anything."""
    return kubectl("create", "--namespace=default", "--dry-run=server", "--validate=strict", "--filename=-", given=text)


@pytest.mark.parametrize("text", TEXTS_TAKEN)
def test_what_the_api_server_takes_is_planned(kubectl: Kubectl, tmp_path: Path, text: str) -> None:
    answer = sent(HEAD + text, kubectl)
    assert answer.returncode == 0, answer.stderr
    assert planned(HEAD + text, tmp_path) == ()


@pytest.mark.parametrize("text", TEXTS_REFUSED)
def test_what_the_api_server_refuses_is_refused(kubectl: Kubectl, tmp_path: Path, text: str) -> None:
    assert sent(HEAD + text, kubectl).returncode != 0
    assert planned(HEAD + text, tmp_path) != ()


def test_each_value_outside_its_bounds_is_told_by_the_name_of_its_field(tmp_path: Path) -> None:
    """test_validation.py sends the same specs to the API server."""
    silent = []
    for field, spec in bad_specs(schema_of_spec()):
        told = planned(json.dumps(deployment("bad", spec)), tmp_path)
        if not any(each.startswith(f"{field}: ") for each in told):
            silent.append((field, told))
    assert not silent
