#!/usr/bin/env python3
"""A stand-in model for the words environment: an OpenAI-compatible endpoint without a model, for one machine.

    model.py --port 8000 [--delay SECONDS]

It says the word that it is asked for, and calls the tool where it is offered one.
"""

import argparse
import http.server
import json
import re
import time


def reply(messages, tools):
    said = {m["role"]: m.get("content") or "" for m in messages}
    first = next(m["content"] for m in messages if m["role"] == "user")
    if "tool" in said:
        return {"role": "assistant", "content": said["tool"]}
    if tools:
        name = re.search(r"under (\w+)", first)[1]
        call = {"name": tools[0]["function"]["name"], "arguments": json.dumps({"name": name})}
        return {"role": "assistant", "content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": call}]}
    return {"role": "assistant", "content": re.search(r"word (\w+)", first)[1]}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    delay = 0.0

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(self.delay)
        message = self.answer(body["messages"], body.get("tools"))
        finish = "tool_calls" if message.get("tool_calls") else "stop"
        out = json.dumps({
            "id": "stand-in", "object": "chat.completion", "created": int(time.time()), "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
        }).encode()
        try:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(out)))
            self.end_headers()
            self.wfile.write(out)
        except ConnectionError:
            pass

    def answer(self, messages, tools):
        return reply(messages, tools)

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True


if __name__ == "__main__":
    flags = argparse.ArgumentParser()
    flags.add_argument("--port", type=int, default=8000)
    flags.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
    a = flags.parse_args()
    Handler.delay = a.delay
    server = Server(("127.0.0.1", a.port), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}/v1", flush=True)
    server.serve_forever()
