#!/usr/bin/env bash
# grpcio 1.85.3: a server that was given a port and never started keeps that port until the process ends,
# after stop() and after its last reference is gone. A program that is interrupted between the two, or whose
# second add_insecure_port fails, cannot bind the port again. Starting and stopping the server gives it back.
# Seen: grpcio 1.85.3, Linux: bound after stop(): False, after del: False; after start() and stop(): True.
set -euo pipefail
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q grpcio==1.85.3
"$folder/venv/bin/python" - <<'PY'
import gc, socket
from concurrent.futures import ThreadPoolExecutor
import grpc


def can_bind(port):
    with socket.socket() as one:
        try:
            one.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


found = {}
server = grpc.server(ThreadPoolExecutor(1))
port = server.add_insecure_port("127.0.0.1:0")
server.stop(1).wait()
found["after stop()"] = can_bind(port)
del server
gc.collect()
found["after del"] = can_bind(port)
server = grpc.server(ThreadPoolExecutor(1))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
server.stop(1).wait()
found["after start() and stop()"] = can_bind(port)
print("the port can be bound:", found)
assert list(found.values()) == [False, False, True], "the behaviour changed"
PY
