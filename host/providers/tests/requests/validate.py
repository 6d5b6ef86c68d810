"""Checks captured requests against the types of the providers' official Python packages.

Reads lines of {"wire": "...", "body": {...}} on standard input and prints one line for each: `ok`, `skipped: ...` if the
package is not installed, or what does not fit. A field that the package does not know is a misfit too.
"""

import json
import sys
import typing

# The packages declare lists as iterables, which pydantic checks lazily, if ever.
typing.Iterable = typing.List


def typed(params, body):
    from pydantic import TypeAdapter

    known = TypeAdapter(params).validate_python(body)
    return unknown(body, known, "request")


def unknown(given, known, place):
    """The first field that the types do not know."""
    if isinstance(given, dict) and isinstance(known, dict):
        for key, value in given.items():
            if key not in known:
                return f"{place}.{key} is not a known field"
            problem = unknown(value, known[key], f"{place}.{key}")
            if problem:
                return problem
    if isinstance(given, list) and isinstance(known, list):
        for at, (one, other) in enumerate(zip(given, known)):
            problem = unknown(one, other, f"{place}[{at}]")
            if problem:
                return problem
    return None


def anthropic(body):
    from anthropic.types import message_create_params

    return typed(message_create_params.MessageCreateParamsStreaming, body)


def chat(body):
    from openai.types.chat import completion_create_params

    return typed(completion_create_params.CompletionCreateParamsStreaming, body)


def responses(body):
    from openai.types.responses import response_create_params

    return typed(response_create_params.ResponseCreateParamsStreaming, body)


def gemini(body):
    from google.genai import types

    # These types refuse unknown fields themselves.
    parts = {
        "contents": lambda value: [types.Content.model_validate(one) for one in value],
        "systemInstruction": types.Content.model_validate,
        "tools": lambda value: [types.Tool.model_validate(one) for one in value],
        "generationConfig": types.GenerationConfig.model_validate,
    }
    for key, value in body.items():
        if key not in parts:
            return f"request.{key} is not a known field"
        parts[key](value)
    return None


def main():
    wires = {"anthropic": anthropic, "chat": chat, "responses": responses, "gemini": gemini}
    for line in sys.stdin:
        case = json.loads(line)
        try:
            print(wires[case["wire"]](case["body"]) or "ok")
        except ImportError as problem:
            print(f"skipped: {problem}")
        except Exception as problem:  # noqa: BLE001 - whatever does not fit is told in the package's words
            print(" ".join(str(problem).split()))


main()
