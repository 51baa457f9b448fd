"""A scripted stand-in for the model's API on loopback: what Claude Code asks of a model, answered from a script.

  model.py SCRIPT LOG

SCRIPT is a JSON list: the model's turns. A turn is {"tool": NAME, "input": {…}} or {"text": …}. Which turn comes next is counted by
the assistant's messages in the request. LOG gets one JSON line for each request: what the tools answered. Prints its port."""
import http.server
import json
import sys

SCRIPT, LOG = json.load(open(sys.argv[1])), open(sys.argv[2], "a", buffering=1)


def results(messages):
    """The tool results of a conversation."""
    return [block for m in messages if isinstance(m.get("content"), list) for block in m["content"] if block.get("type") == "tool_result"]


class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_HEAD

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.path.startswith("/v1/messages") or "count_tokens" in self.path:
            return self.do_HEAD()
        turn = sum(m["role"] == "assistant" for m in body["messages"])
        say = SCRIPT[turn] if body.get("tools") and turn < len(SCRIPT) else {"text": "done"}
        LOG.write(json.dumps({"tools": [t["name"] for t in body.get("tools", [])], "results": results(body["messages"])}) + "\n")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        self.stream(turn, say)

    def stream(self, turn, say):
        tool = "tool" in say
        block = {"type": "tool_use", "id": "toolu_%d" % turn, "name": say.get("tool"), "input": {}} if tool else {"type": "text", "text": ""}
        delta = ({"type": "input_json_delta", "partial_json": json.dumps(say["input"])} if tool else
                 {"type": "text_delta", "text": say["text"]})
        self.event("message_start", message={"id": "msg_%d" % turn, "type": "message", "role": "assistant", "model": "m", "content": [],
                                             "stop_reason": None, "usage": {"input_tokens": 1, "output_tokens": 1}})
        self.event("content_block_start", index=0, content_block=block)
        self.event("content_block_delta", index=0, delta=delta)
        self.event("content_block_stop", index=0)
        self.event("message_delta", delta={"stop_reason": "tool_use" if tool else "end_turn", "stop_sequence": None},
                   usage={"output_tokens": 1})
        self.event("message_stop")

    def event(self, name, **fields):
        self.wfile.write(("event: %s\ndata: %s\n\n" % (name, json.dumps({"type": name, **fields}))).encode())


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
print(server.server_port, flush=True)
server.serve_forever()
