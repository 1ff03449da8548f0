"""Kubernetes quantities (`500m`, `1Gi`, `1e3`) <-> whole numbers in one unit per resource.

`cpu` counts in millicores, everything else in bytes or pieces; a part of one counts as one, as the scheduler has it.
Also what a pod asks for together, by the scheduler's own formula.
"""

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

Amounts = dict[str, int]  # resource -> amount in its unit

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

_FORM = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([KMGTPE]i|[numkMGTPE])|[eE]([+-]?\d{1,2}))?")
_BINARY = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50, "Ei": 1 << 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_MOST = 2**63 - 1  # what Kubernetes can hold; more counts as this
_CPU = frozenset({"cpu", "requests.cpu", "limits.cpu"})


class QuantityError(ValueError):
    """Not a quantity; the message quotes it and shows right ones."""


def parse_quantity(resource: str, value: int | float | str) -> int:
    """The amount in the unit of `resource`, rounded up. `resource` may be a quota's key (`requests.cpu`)."""
    text, is_cpu = str(value).strip(), resource in _CPU
    amount = _amount(text, is_cpu)
    if amount is None:
        example = "4 or 500m" if is_cpu else "16Gi or 500Mi"
        raise QuantityError(f"{text[:60]!r} is not a quantity; write one such as {example}.")
    return amount


def parse_resources(resources: Mapping[str, Any] | None) -> Amounts:
    """A map of quantities, such as a node's allocatable or a quota's hard limits."""
    return {name: parse_quantity(name, value) for name, value in (resources or {}).items()}


def format_quantity(resource: str, amount: int) -> str:
    """The form in which the API server gives the amount back: nothing seems changed when the two are compared."""
    if resource in _CPU:
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    for suffix, factor in reversed(_BINARY.items()):
        if amount and amount % factor == 0:
            return f"{amount // factor}{suffix}"
    return str(amount)


def format_bytes(num_bytes: int) -> str:
    """For people: `3.4 GiB`."""
    amount = float(num_bytes)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if abs(amount) < 1024:
            return f"{num_bytes} bytes" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def round_up(amount: int, step: int) -> int:
    """The least multiple of `step` that is not below `amount`."""
    return -(-amount // step) * step


def sum_requests(pod_spec: Mapping[str, Any]) -> Amounts:
    """What a pod occupies on its node, and one of `pods`.

    Init containers run one after the other beside the sidecars (init containers that restart) started before them, so
    the largest such moment counts, or all containers with all sidecars, whichever is more; overhead comes on top.
    """
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in pod_spec.get("initContainers") or ():
        own = _container_requests(container)
        if container.get("restartPolicy") == "Always":
            sidecars = _plus(sidecars, own)
            peak = _largest(peak, sidecars)
        else:
            peak = _largest(peak, _plus(sidecars, own))
    total = sidecars
    for container in pod_spec.get("containers") or ():
        total = _plus(total, _container_requests(container))
    total = _largest(total, peak)
    total |= _container_requests(pod_spec)  # spec.resources of a whole pod stands for its containers' sum
    total = _plus(total, parse_resources(pod_spec.get("overhead")))
    return {name: amount for name, amount in total.items() if amount} | {"pods": 1}


def sum_limits(pod_spec: Mapping[str, Any]) -> Amounts:
    """What a quota of `limits.*` counts of a pod. A resource that no container limits is left out."""
    total: Amounts = {}
    for container in pod_spec.get("containers") or ():
        total = _plus(total, parse_resources((container.get("resources") or {}).get("limits")))
    return {name: amount for name, amount in total.items() if amount} | {"pods": 1}


@lru_cache(maxsize=1024)  # every pass over every resource reads the same few again
def _amount(text: str, is_cpu: bool) -> int | None:
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    number, suffix, exponent = found.groups()
    amount = Fraction(number) * _factor(suffix, exponent)
    scaled = amount * 1000 if is_cpu else amount
    return max(-_MOST, min(_MOST, -(-scaled.numerator // scaled.denominator)))


def _factor(suffix: str | None, exponent: str | None) -> Fraction:
    if suffix in _BINARY:
        return Fraction(_BINARY[suffix])
    if suffix:
        return Fraction(10) ** _DECIMAL[suffix]
    return Fraction(10) ** int(exponent or 0)


def _container_requests(container: Mapping[str, Any]) -> Amounts:
    """A limit without a request is a request, as the API server makes it."""
    resources = container.get("resources") or {}
    return parse_resources(resources.get("limits")) | parse_resources(resources.get("requests"))


def _plus(left: Amounts, right: Amounts) -> Amounts:
    return {name: left.get(name, 0) + right.get(name, 0) for name in _names(left, right)}


def _largest(left: Amounts, right: Amounts) -> Amounts:
    return {name: max(left.get(name, 0), right.get(name, 0)) for name in _names(left, right)}


def _names(left: Amounts, right: Amounts) -> Iterable[str]:
    return left | right
