"""Walks a server with the official Python client and prints what it saw as one JSON object.

    python client.py stdio COMMAND ARGUMENT...
    python client.py http URL PID
"""

import json
import os
import signal
import sys

import anyio
from mcp import Client, MCPError, StdioServerParameters


def seen(result):
    """What matters of a result."""
    facts = (result.meta or {}).get("cofferdam/call", {})
    return {
        "text": result.content[0].text if result.content else "",
        "is_error": bool(result.is_error),
        "ended_by": facts.get("ended_by"),
        "fuel": (facts.get("receipt") or {}).get("fuel", 0),
    }


async def cancelled(client):
    """Cancels a call once it has reported something."""
    with anyio.CancelScope() as scope:

        async def stop(progress, total, message):
            scope.cancel()

        await client.call_tool("calm_patient", {}, progress_callback=stop)
    return scope.cancelled_caught


async def list_changed(client, told, pid):
    """Has the server read its file anew, and waits until it says so."""
    try:
        async with client.listen(tools_list_changed=True) as changes:
            os.kill(pid, signal.SIGHUP)
            async for _ in changes:
                return True
    except Exception as problem:
        if type(problem).__name__ != "ListenNotSupportedError":
            raise
    os.kill(pid, signal.SIGHUP)
    await told.wait()
    return True


async def walk(server, pid, mode):
    told = anyio.Event()

    async def message(message):
        if "tools/list_changed" in str(message) or "ToolListChanged" in type(message).__name__:
            told.set()

    async with Client(server, mode=mode, message_handler=message) as client:
        saw = {"protocol": client.protocol_version, "server": client.server_info.name}
        saw["tools"] = sorted(tool.name for tool in (await client.list_tools()).tools)
        reports = []

        async def report(progress, total, message):
            reports.append([progress, message])

        for step, tool, arguments in [
            ("sum", "calc", {"expressions": ["1/3 + 1/6"]}),
            ("trap", "crash", {"message": "on purpose"}),
            ("timeout", "spin", {}),
            ("blocked", "write_file", {"path": "/workspace/secret.txt", "content": "x"}),
            ("asked", "grep", {"path": "/workspace", "pattern": "x"}),
            ("invalid", "nap", {"ms": "soon"}),
            ("progress", "calm_chatter", {"lines": 20}),
        ]:
            result = await client.call_tool(tool, arguments, progress_callback=report)
            saw[step] = seen(result)
        saw["reports"] = reports
        try:
            await client.call_tool("missing", {})
        except MCPError as problem:
            saw["missing"] = str(problem)
        saw["cancelled"] = await cancelled(client)
        saw["after"] = seen(await client.call_tool("calc", {"expressions": ["6 * 7"]}))
        if pid:
            saw["changed"] = await list_changed(client, told, pid)
        return saw


def main():
    kind, rest = sys.argv[1], sys.argv[2:]
    mode = os.environ.get("MCP_MODE", "auto")
    pid = None
    if kind == "http":
        server, pid = rest[0], int(rest[1])
    else:
        server = StdioServerParameters(command=rest[0], args=rest[1:], env=dict(os.environ))
    saw = anyio.run(walk, server, pid, mode)
    print(json.dumps(saw))


main()
