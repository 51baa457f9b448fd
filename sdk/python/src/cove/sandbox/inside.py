"""Runs a command in a sandbox with this program's stdin, stdout and stderr: what the script of `write_cli_script` calls.

    python3 -m cove.sandbox.inside --sandbox ID -- claude --version

When this program ends, in whatever way, the command ends.
"""
from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Optional

from .._core.lines import parse_object
from .._sync.client import Cove
from .._sync.transport import WebSocket
from ..errors import ConnectionFailedError, CoveError, stream_error

PART = 64 * 1024
STREAMS = {1: 1, 2: 2}


def main(argv: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m cove.sandbox.inside", description="Runs a command in a sandbox, connected with this program.")
    parser.add_argument("--url", help="of the server; else COVE_URL")
    parser.add_argument("--sandbox", required=True, metavar="ID", help="id or name")
    parser.add_argument("--cwd", metavar="DIR", help="working directory inside")
    parser.add_argument("--env", action="append", default=[], metavar="NAME", help="a variable that is passed on, if it is set")
    parser.add_argument("command", nargs="+", help="and its arguments")
    args = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))  # the closed connection ends the command
    env = {name: os.environ[name] for name in args.env if name in os.environ}
    process = {"args": args.command, "stdin": True, **({"cwd": args.cwd} if args.cwd else {}), **({"env": env} if env else {})}
    try:
        with Cove(args.url) as client:
            socket = client.websocket("session", timeout=90)
            try:
                socket.send(json.dumps({"sandbox": args.sandbox, "process": process}))
                threading.Thread(target=_pass_stdin, args=(socket,), daemon=True).start()
                return _pass_output(socket)
            finally:
                socket.close()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 141
    except CoveError as error:
        print(f"cove: {error}", file=sys.stderr)
        return 70


def _pass_stdin(socket: WebSocket) -> None:
    try:
        while data := os.read(0, PART):
            socket.send(data)
        socket.send(json.dumps({"type": "stdin_end"}))
    except (CoveError, OSError):
        pass  # the command ended, or the connection did: the other thread says so


def _pass_output(socket: WebSocket) -> int:
    while (message := socket.receive()) is not None:
        if isinstance(message, bytes):
            _write(STREAMS.get(message[0], 2) if message else 2, message[1:])
            continue
        event = parse_object(message.encode("utf-8"))
        if event.get("type") == "error":
            raise stream_error(event.get("error"), None)
        if event.get("type") == "end":
            code = event.get("exit_code")
            return code if isinstance(code, int) else 70
    raise ConnectionFailedError("the connection ended before the command")


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data):]


if __name__ == "__main__":
    sys.exit(main())
