"""The inputs and outputs of a served model, as an OpenAPI 3.1 description."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlelike.storage.manifest import library_version


def describe_api(title: str, model: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description of the routes of a model; ``model`` is the answer of ``GET /model``.

    >>> feeds = [{"name": "x", "dtype": "float32", "shape": [-1, 2], "lod": 0}]
    >>> api = describe_api("line", {"feeds": feeds, "fetches": []})
    >>> request = api["paths"]["/predict"]["post"]["requestBody"]["content"]["application/json"]
    >>> request["example"]
    {'inputs': {'x': [[0, 0]]}}
    """
    feeds: Sequence[Mapping[str, Any]] = model["feeds"]
    inputs = {
        "type": "object",
        "properties": {one["name"]: _describe_input(one) for one in feeds},
        "required": [one["name"] for one in feeds],
        "additionalProperties": False,
    }
    output = {
        "type": "object",
        "properties": {
            "dtype": {"type": "string"},
            "shape": {"type": "array", "items": {"type": "integer"}},
            "values": {"type": "array", "description": 'nested lists; "nan", "inf", "-inf" as text'},
            "lengths": {"type": "array", "description": "of sequences, level by level"},
        },
    }
    answer = {
        "type": "object",
        "properties": {
            "outputs": {"type": "object", "properties": {one["name"]: output for one in model["fetches"]}},
            "seconds": {"type": "number"},
        },
    }
    wrong = {"type": "object", "properties": {"error": {"type": "string"}, "hint": {"type": "string"}}}
    body = {"type": "object", "properties": {"inputs": inputs}, "required": ["inputs"]}
    example = {"inputs": {one["name"]: _make_example(one) for one in feeds}}
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": library_version()},
        "security": [{"token": []}],
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "paths": {
            "/model": {"get": {"summary": "What the model feeds and fetches", "responses": _answer({})}},
            "/predict": {
                "post": {
                    "summary": "Run the model on inputs",
                    "requestBody": {
                        "required": True,
                        "content": {"application/json": {"schema": body, "example": example}},
                    },
                    "responses": {
                        **_answer(answer),
                        **{code: _say(text, wrong) for code, text in _REFUSALS.items()},
                    },
                }
            },
        },
    }


_REFUSALS = {
    "400": "the inputs are not those of the model",
    "401": "the token is missing or wrong",
    "413": "the body or an output is too large",
    "503": "another run is taking too long",
}


def _answer(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"200": _say("the answer", schema)}


def _say(text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": text, "content": {"application/json": {"schema": schema}}}


def _describe_input(feed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an input: nested arrays, or for sequences an object with their lengths."""
    schema: dict[str, Any] = {"type": "number" if feed["dtype"].startswith("float") else "integer"}
    for dim in reversed(feed["shape"]):
        size = {} if dim < 0 else {"minItems": dim, "maxItems": dim}
        schema = {"type": "array", "items": schema, **size}
    schema["description"] = f"{feed['dtype']} {feed['shape']}; -1 is any number"
    if not feed["lod"]:
        return schema
    lengths = {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}
    return {"type": "object", "properties": {"values": schema, "lengths": lengths}, "required": ["values"]}


def _make_example(feed: Mapping[str, Any]) -> object:
    value: Any = 0
    for dim in reversed(feed["shape"]):
        value = [value] * min(max(dim, 1), 32)
    return {"values": value, "lengths": [[1]] * feed["lod"]} if feed["lod"] else value
