#!/usr/bin/env python3
"""What EnvClient and wevalr say when the env-server, or a worker of its pool, dies: side by side.

    faults.py WEVALR [--wait 10] [--inflight 1 64] [--only TEXT]

The same server, the same rollouts in flight, each in a call of the model; then the same end. Prints a row of a
table for each: what each client has to say, and how long after the end. drain_limit is wevalr's default,
suspect_after 5 s.
"""

import argparse
import asyncio
import json
import os
import pathlib
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from datetime import datetime

import model
from bench import end, serve, tasks, write_eval

HERE = pathlib.Path(__file__).resolve().parent
os.environ["PYTHONPATH"] = str(HERE / "testdata")  # the faulty taskset: its process ends as the model says
FAULTY = ("--taskset", "faulty")
PATIENCE = 300


class Gate(model.Server):
    """A model that holds all calls until told what to say; "" is the answer."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Held)
        self.says, self.calls = queue.Queue(), threading.Semaphore(0)
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.base = f"http://127.0.0.1:{self.server_address[1]}/v1"

    def holds(self, n):
        for _ in range(n):
            if not self.calls.acquire(timeout=PATIENCE):
                sys.exit("the model is not called")

    def say(self, text, n=1):
        for _ in range(n):
            self.says.put(text)

    def handle_error(self, *args):
        """Callers die here on purpose."""

    def close(self):
        self.say("", 200)
        self.shutdown()
        self.server_close()


class Held(model.Handler):
    def answer(self, messages, tools):
        self.server.calls.release()
        said = self.server.says.get()
        return {"role": "assistant", "content": said} if said else super().answer(messages, tools)


def workers(broker):
    pids = pathlib.Path(f"/proc/{broker}/task/{broker}/children").read_text().split()
    return sorted(int(p) for p in pids if b"spawn_main" in pathlib.Path(f"/proc/{p}/cmdline").read_bytes())


def zombie(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z")


def strike(how, pid, gate, worker):
    """Does it, and gives when it was done. A living worker then gets its answers: what still waits is the dead one's."""
    pids = workers(pid) if worker else [pid]
    if isinstance(how, signal.Signals):
        os.kill(pids[0], how)
    else:
        gate.say(how)
    if worker:
        while not any(zombie(p) for p in pids):
            time.sleep(0.01)
    began = time.time()
    if worker:
        gate.say("", 200)
    return began


async def theirs(how, worker, inflight, wait, folder, gate):
    from verifiers.v1.configs.client import EvalClientConfig
    from verifiers.v1.serve import EnvClient

    address = f"ipc://{folder}/s"
    server = serve(address, "--workers", "2" if worker else "1", *FAULTY)
    env = EnvClient(address)
    await env.wait_for_server_startup(timeout=PATIENCE, interval=0.2)
    config = EvalClientConfig(base_url=gate.base)
    runs = [asyncio.create_task(env.run(config, "stand-in", {}, d)) for d in tasks(inflight)]
    await asyncio.to_thread(gate.holds, inflight)
    await asyncio.to_thread(strike, how, server.pid, gate, worker)
    done, waiting = await asyncio.wait(runs, timeout=wait)
    said = f"{len(waiting)} of {inflight} wait after {wait:.0f} s"
    if how == signal.SIGSTOP:
        os.kill(server.pid, signal.SIGCONT)
        gate.say("", inflight)
        await asyncio.wait(runs, timeout=PATIENCE)
        said += f"; then {sum(r.done() and r.result().ok for r in runs)} complete"
    else:
        said += f"; health: {await env.health()}"
    for r in runs:
        r.cancel()
    await asyncio.gather(*runs, return_exceptions=True)
    await env.close()
    end(server)
    return said


def ours(binary, how, worker, inflight, wait, folder, gate):
    argv = [sys.executable, str(HERE / "serve.py"), "--address", "{address}", "--workers", "2" if worker else "1", *FAULTY]
    write_eval(folder, gate.base, f'command = {json.dumps(argv)}\nenv = ["PYTHONPATH"]\nsuspect_after = "5s"', inflight, inflight)
    run = subprocess.Popen([binary, "run", "eval.toml"], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    pid = next((int(line.split("pid ")[1].split(",")[0]) for line in run.stderr if "ready: pid" in line), None)
    if not pid:
        return "the server was not ready"
    gate.holds(inflight)
    began = strike(how, pid, gate, worker)
    if how == signal.SIGSTOP:
        time.sleep(wait)
        said = f"{'waits' if run.poll() is None else 'ended'} after {wait:.0f} s; then "
        os.kill(pid, signal.SIGCONT)
        gate.say("", inflight)
        run.stderr.read()
        return said + f"exit code {run.wait()}"
    text = run.stderr.read()
    (journal,) = folder.glob("runs/bench/*/journal.jsonl")
    failed = [r for r in map(json.loads, journal.open()) if r["t"] == "finish" and r["outcome"] == "error"]
    took = max(datetime.fromisoformat(r["end"]).timestamp() for r in failed) - began if failed else 0.0
    why = next((line for line in text.splitlines() if line.startswith("wevalr: ")), "").removeprefix("wevalr: ").split("; log:")[0]
    why = re.sub(r"^env-server \(generation 1, pid \d+\):? ", "", why)
    return f"{len(failed)} errors after {took:.1f} s, exit code {run.wait()}: {why}"


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("wevalr", help="the binary")
    flags.add_argument("--wait", type=float, default=10)
    flags.add_argument("--inflight", type=int, nargs="+", default=[1, 64])
    flags.add_argument("--only", default="", metavar="TEXT", help="the rows that have it in their name")
    a = flags.parse_args()
    print("| what happens | in flight | EnvClient | wevalr |\n|---|---|---|---|")
    for name, how, worker in (
        ("the server exits with 0", "!exit 0", False),
        ("the server exits with 23", "!exit 23", False),
        ("SIGKILL", signal.SIGKILL, False),
        ("SIGTERM", signal.SIGTERM, False),
        ("SIGSTOP, then SIGCONT", signal.SIGSTOP, False),
        ("a worker exits with 23", "!exit 23", True),
        ("SIGKILL of a worker", signal.SIGKILL, True),
        ("SIGTERM of a worker", signal.SIGTERM, True),
    ):
        for inflight in a.inflight if a.only in name else ():
            said = []
            for client in ("EnvClient", "wevalr"):
                gate = Gate()
                with tempfile.TemporaryDirectory(prefix="wevalr-faults-") as folder:
                    args = how, worker, inflight, a.wait, pathlib.Path(folder), gate
                    said.append(asyncio.run(theirs(*args)) if client == "EnvClient" else ours(os.path.abspath(a.wevalr), *args))
                gate.close()
            print(f"| {name} | {inflight} | {said[0]} | {said[1]} |", flush=True)


if __name__ == "__main__":
    main()
