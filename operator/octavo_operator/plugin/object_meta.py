"""`OBJECT_META`: the JSON Schema of an object's metadata as a person may write it.

A CRD leaves it to the API server (https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/);
this is what that server refuses. Fields that it sets itself are only named.
"""

from typing import Any

_NAME = {"type": "string"}  # the CRD's own rules judge it
_PREFIX = r"(?:(?=.{1,253}/)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*/)?"
_WORD = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_KEY = {
    "type": "string",
    "pattern": rf"\A{_PREFIX}{_WORD}\Z",
    "description": "keys of at most 63 letters, digits, '-', '_' and '.', with or without a domain and '/' before them",
}
_LABEL = {
    "type": "string",
    "pattern": rf"\A(?:{_WORD})?\Z",
    "description": "at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit",
}
_NAMESPACE = {
    "type": "string",
    "pattern": r"\A[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\Z",
    "description": "the name of a namespace: at most 63 lower-case letters, digits and '-'",
}

OBJECT_META: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "name": _NAME,
        "generateName": _NAME,
        "namespace": _NAMESPACE,
        "labels": {"type": "object", "propertyNames": _KEY, "additionalProperties": _LABEL},
        "annotations": {"type": "object", "propertyNames": _KEY, "additionalProperties": {"type": "string"}},
        "finalizers": {"type": "array", "items": {"type": "string"}},
        "ownerReferences": {"type": "array"},
        "managedFields": {"type": "array"},
        "creationTimestamp": {},
        "deletionGracePeriodSeconds": {},
        "deletionTimestamp": {},
        "generation": {},
        "resourceVersion": {},
        "selfLink": {},
        "uid": {},
    },
}
