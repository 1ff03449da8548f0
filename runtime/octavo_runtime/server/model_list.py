"""GET /v1/models and /v1/models/{id}: what is served, under every name it has."""

from typing import Any

from aiohttp import web

from octavo_runtime.server.reply import json_response
from octavo_runtime.server.service import SERVICE, Service


async def list_models(request: web.Request) -> web.Response:
    """`{object: "list", data: [...]}`."""
    service = request.app[SERVICE]
    cards = [_card(service, name) for name in service.config.served_model_names]
    return json_response({"object": "list", "data": cards})


async def show_model(request: web.Request) -> web.Response:
    """One card, or 404."""
    service = request.app[SERVICE]
    name = request.match_info["id"]
    service.check_model(name)
    return json_response(_card(service, name))


def _card(service: Service, name: str) -> dict[str, Any]:
    return {
        "id": name,
        "object": "model",
        "created": service.started,
        "owned_by": "octavo",
        "root": service.root,
        "parent": None,
        "max_model_len": service.admission.limits().max_model_len,
        "permission": [_PERMISSION | {"id": f"modelperm-{name}", "created": service.started}],
    }


_PERMISSION = {
    "id": "",
    "object": "model_permission",
    "created": 0,
    "allow_create_engine": False,
    "allow_sampling": True,
    "allow_logprobs": True,
    "allow_search_indices": False,
    "allow_view": True,
    "allow_fine_tuning": False,
    "organization": "*",
    "group": None,
    "is_blocking": False,
}
