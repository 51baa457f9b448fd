"""A stand-in for the model's API: answers by a script, and writes down what it was sent. python3 model.py PORT SCRIPT LOG; standard library only."""
import http.server
import json
import sys

port, script, log = int(sys.argv[1]), json.load(open(sys.argv[2])), sys.argv[3]


def events(number, step):
    block, delta = ({"type": "tool_use", "id": "toolu_%d" % number, "name": step["tool"], "input": {}},
                    {"type": "input_json_delta", "partial_json": json.dumps(step["input"])}) if "tool" in step else \
        ({"type": "text", "text": ""}, {"type": "text_delta", "text": step["text"]})
    message = {"id": "msg_%d" % number, "type": "message", "role": "assistant", "model": "script", "content": [], "stop_reason": None,
               "usage": {"input_tokens": 1, "output_tokens": 1}}
    yield "message_start", {"message": message}
    yield "content_block_start", {"index": 0, "content_block": block}
    yield "content_block_delta", {"index": 0, "delta": delta}
    yield "content_block_stop", {"index": 0}
    yield "message_delta", {"delta": {"stop_reason": "tool_use" if "tool" in step else "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 1}}
    yield "message_stop", {}


class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *about):
        pass

    def reply(self, status, body=b"", kind="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_HEAD(self):
        self.reply(404)

    do_GET = do_HEAD

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not self.path.startswith("/v1/messages?") and self.path != "/v1/messages":
            return self.reply(404)
        asked = json.loads(body)
        with open(log, "a") as file:
            file.write(json.dumps(asked) + "\n")
        number = sum(message["role"] == "assistant" for message in asked["messages"])
        step = script[number] if number < len(script) else {"text": "the end"}
        out = "".join("event: %s\ndata: %s\n\n" % (name, json.dumps({"type": name, **data})) for name, data in events(number, step))
        self.reply(200, out.encode(), "text/event-stream")


server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Model)
print(server.server_address[1], flush=True)
server.serve_forever()
