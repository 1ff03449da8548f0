"""POST /tokenize and /detokenize: text or messages -> token ids, and back."""

import msgspec
from aiohttp import web

from octavo_runtime.errors import InvalidRequestError
from octavo_runtime.server.body import read_body
from octavo_runtime.server.params import refuse_unavailable
from octavo_runtime.server.prompts import check_token_ids
from octavo_runtime.server.reply import json_response
from octavo_runtime.server.schema import DetokenizeBody, TokenizeBody
from octavo_runtime.server.service import SERVICE

_decode_tokenize = msgspec.json.Decoder(TokenizeBody).decode
_decode_detokenize = msgspec.json.Decoder(DetokenizeBody).decode


async def tokenize(request: web.Request) -> web.Response:
    """`{count, max_model_len, tokens, token_strs}`."""
    service = request.app[SERVICE]
    limits = service.admission.limits()
    body = await read_body(request, _decode_tokenize)
    service.check_model(body.model)
    refuse_unavailable(body)
    if (body.prompt is None) == (body.messages is None):
        raise InvalidRequestError("Send either prompt or messages.", "prompt")
    if body.prompt is not None:
        ids = await service.encoder.encode(body.prompt, body.add_special_tokens is not False, None)
    else:
        ids = (await service.encoder.chat_prompt(body, limits)).token_ids
    strings = None
    if body.return_token_strs:
        name = service.text.tokenizer.token_string
        strings = await service.encoder.run(len(ids), lambda: [name(token_id) for token_id in ids])
    return json_response(
        {"count": len(ids), "max_model_len": limits.max_model_len, "tokens": ids, "token_strs": strings}
    )


async def detokenize(request: web.Request) -> web.Response:
    """`{prompt}`."""
    service = request.app[SERVICE]
    limits = service.admission.limits()
    body = await read_body(request, _decode_detokenize)
    service.check_model(body.model)
    check_token_ids(body.tokens, limits.vocab_size, "tokens")
    tokenizer = service.text.tokenizer
    text = await service.encoder.run(len(body.tokens), lambda: tokenizer.decode(body.tokens, skip_special_tokens=False))
    return json_response({"prompt": text})
