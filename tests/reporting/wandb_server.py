"""A stand-in for the wandb server on this machine: takes what the client sends, answers just enough, keeps it all.

It can show that a command sends what it should and copes with the answers, not what wandb.ai makes of it.
"""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "a" * 40
USER: dict[str, Any] = {
    "id": "1",
    "name": "me",
    "username": "me",
    "entity": "me",
    "email": "",
    "admin": False,
    "flags": "{}",
}
USER |= {"deletedAt": None, "teams": {"edges": []}, "apiKeys": {"edges": []}}


class Received:
    """What was sent: GraphQL mutations by name, and the rows of each run's history."""

    def __init__(self) -> None:
        self.mutations: list[tuple[str, dict[str, Any]]] = []
        self.history: list[dict[str, Any]] = []
        self.uploads: list[str] = []

    def of(self, mutation: str) -> list[dict[str, Any]]:
        """The variables of each call of one mutation."""
        return [variables for name, variables in self.mutations if name == mutation]


@contextmanager
def wandb_server() -> Iterator[tuple[str, Received]]:
    """A running server: its address and what it receives."""
    received = Received()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            reply: dict[str, Any] = {}
            if self.path == "/graphql":
                asked = json.loads(body)
                reply = {"data": _data(asked["query"], asked.get("variables") or {}, received, address)}
            elif self.path.endswith("/file_stream"):
                lines = json.loads(body).get("files", {}).get("wandb-history.jsonl", {}).get("content", [])
                received.history += [json.loads(line) for line in lines]
            elif self.path.startswith("/upload/"):
                received.uploads.append(self.path.removeprefix("/upload/"))
            sent = json.dumps(reply).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        do_GET = do_POST = do_PUT = answer

    server = _Server(("127.0.0.1", 0), Handler)
    address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield address, received
    finally:
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that hangs up, as wandb's does at its end."""


def _data(query: str, variables: dict[str, Any], received: Received, address: str) -> dict[str, Any]:
    for name in ("upsertBucket", "upsertView", "createArtifact", "createRunFiles"):
        if f"{name}(" in query:
            received.mutations.append((name, variables))
            return {name: _MUTATIONS[name](variables, address)}
    project = {"internalId": "UHJvamVjdDox", "id": "1", "name": "softcontam", "entityName": "me", "isBenchmark": False}
    project |= {"createdAt": "2026-01-01T00:00:00", "user": USER, "artifact": None}
    return {
        "viewer": USER,
        "serverInfo": {"features": [], "cliVersionInfo": {"max_cli_version": "99"}},
        "project": project,
        "models": {
            "edges": [{"node": project, "cursor": ""}],
            "pageInfo": {"endCursor": None, "hasNextPage": False},
        },
    }


def _run(variables: dict[str, Any], address: str) -> dict[str, Any]:
    project = {"id": "1", "name": variables["project"], "entity": {"id": "1", "name": "me"}}
    bucket = {"id": "UnVuOjE=", "name": variables["name"], "displayName": variables["displayName"], "project": project}
    return {"bucket": {**bucket, "config": variables["config"], "historyLineCount": 0}, "inserted": True}


def _view(variables: dict[str, Any], address: str) -> dict[str, Any]:
    made = {"id": "Vmlldzox", "description": "", "createdAt": "2026-01-01T00:00:00", "updatedAt": "2026-01-01T00:00:00"}
    kept = {key: variables[key] for key in ("name", "displayName", "spec")}
    project = {"id": "1", "name": variables["projectName"], "entityName": "me"}
    return {"view": {**made, **kept, "project": project}, "inserted": True}


def _artifact(variables: dict[str, Any], address: str) -> dict[str, Any]:
    return {"artifact": {"id": "1", "state": "COMMITTED", "artifactSequence": {"latestArtifact": {"id": "1"}}}}


def _files(variables: dict[str, Any], address: str) -> dict[str, Any]:
    files = [{"name": name, "uploadUrl": f"{address}/upload/{name}"} for name in variables["files"]]
    return {"runID": "1", "uploadHeaders": [], "files": files}


_MUTATIONS = {"upsertBucket": _run, "upsertView": _view, "createArtifact": _artifact, "createRunFiles": _files}
