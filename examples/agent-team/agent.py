"""One agent of the example agent-team, in Python: standard library only, MCP over HTTP.

A request of MCP stands alone, so there is no session: the name in the URL says who calls.
"""

import json
import os
import sys
import time
import urllib.request

server, name, shared, worktree = sys.argv[1:5]
URL = f"{server}/mcp?agent={name}&repository=shop"
VERSION = "2026-07-28"
TASKS = [f"task/{number}" for number in range(1, 10)]


def call(tool, **arguments):
    """Calls a tool and returns its structured answer."""
    envelope = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientInfo": {"name": name, "version": "1.0.0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments, "_meta": envelope},
    }
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": VERSION,
        "mcp-method": "tools/call",
        "mcp-name": tool,
    }
    token = os.environ.get("LEASEHOLD_ACCESS_TOKEN")
    if token:
        headers["authorization"] = f"Bearer {token}"
    request = urllib.request.Request(URL, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        result = json.load(response)["result"]
    if result.get("isError"):
        raise RuntimeError(result["content"][0]["text"])
    return result["structuredContent"]


def held(answer):
    """Waits in the queue for as long as it takes."""
    while answer["state"] == "waiting":
        answer = call("wait", hold=answer["hold"], wait=50)
    return answer


def files_of(task):
    number = int(task.removeprefix("task/"))
    return [f"src/{number}.txt"] + (["src/shared.txt"] if number % 3 == 0 else [])


def edit(file, text):
    """Edits a file, and reports if another living agent edits it at the same time."""
    marker = os.path.join(shared, file.replace("/", "-"))
    try:
        with open(marker, encoding="utf-8") as found:
            os.kill(int(found.read()), 0)
        print(f"VIOLATION {file}", flush=True)
    except (FileNotFoundError, ProcessLookupError, ValueError):
        pass
    with open(marker, "w", encoding="utf-8") as mine:
        mine.write(str(os.getpid()))
    with open(os.path.join(worktree, file), "a", encoding="utf-8") as opened:
        opened.write(text + "\n")
    os.remove(marker)
    with open(os.path.join(shared, "edits.log"), "a", encoding="utf-8") as log:
        log.write(f"{name} {file}\n")


while True:
    claimed = call("claim_next", keys=TASKS, purpose="working on it, in Python")
    if claimed["state"] != "held":
        if claimed["next"].startswith("All tasks are done"):
            break
        time.sleep(0.1)
        continue
    task = claimed["for"][0]
    files = held(call("acquire", paths=files_of(task), purpose=f"{task} of the plan"))
    for file in files_of(task):
        edit(file, f"{task} by {name}")
    with open(os.path.join(shared, "done.log"), "a", encoding="utf-8") as log:
        log.write(task + "\n")
    call("release", hold=claimed["hold"], done=True, result={"by": name})
    call("release", hold=files["hold"])

call("release", all=True)
