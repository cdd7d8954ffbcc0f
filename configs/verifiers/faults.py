#!/usr/bin/env python3
"""What EnvClient and wevalr say when the env-server dies, side by side.

    faults.py WEVALR [--wait 10]

The same server, 8 rollouts in flight, the same signal; then what each has to say, and after how long.
"""

import argparse
import asyncio
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from bench import end, serve, start_model, tasks, write_eval

INFLIGHT = 8


def workers(broker):
    pids = pathlib.Path(f"/proc/{broker}/task/{broker}/children").read_text().split()
    return [int(p) for p in pids if b"spawn_main" in pathlib.Path(f"/proc/{p}/cmdline").read_bytes()]


def strike(pid, sig, worker):
    os.kill(workers(pid)[0] if worker else pid, sig)


async def theirs(folder, base, sig, worker, wait):
    from verifiers.v1.configs.client import EvalClientConfig
    from verifiers.v1.serve import EnvClient

    address = f"ipc://{folder}/s"
    server = serve(address, "--workers", "2" if worker else "1")
    env = EnvClient(address)
    await env.wait_for_server_startup(timeout=300, interval=0.2)
    runs = [asyncio.create_task(env.run(EvalClientConfig(base_url=base), "stand-in", {}, d)) for d in tasks(INFLIGHT)]
    await asyncio.sleep(5)
    strike(server.pid, sig, worker)
    done, waiting = await asyncio.wait(runs, timeout=wait)
    health = await env.health()
    for r in waiting:
        r.cancel()
    await asyncio.gather(*runs, return_exceptions=True)
    await env.close()
    end(server)
    return f"after {wait} s: {len(waiting)} of {INFLIGHT} rollouts still wait, {len(done)} have ended; health says {health}"


def ours(binary, folder, base, sig, worker):
    argv = [sys.executable, str(pathlib.Path(__file__).with_name("serve.py")), "--address", "{address}", "--taskset", "words"]
    if worker:
        argv += ["--workers", "2"]
    write_eval(folder, base, f'command = {json.dumps(argv)}\nsuspect_after = "5s"\ndrain_limit = "1s"', INFLIGHT, INFLIGHT)
    run = subprocess.Popen([binary, "run", "eval.toml"], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    pid, said = 0, ""
    for line in run.stderr:
        if "ready: pid" in line:
            pid = int(line.split("pid ")[1].split(",")[0])
            break
        said += line
    if not pid:
        return said
    time.sleep(5)
    strike(pid, sig, worker)
    began = time.monotonic()
    said = run.stderr.read()
    code = run.wait()
    lines = [line for line in said.splitlines() if line.startswith("wevalr: ") or "go on with" in line]
    return f"after {time.monotonic() - began:.1f} s: exit code {code}\n" + "\n".join("    " + line for line in lines)


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("wevalr", help="the binary")
    flags.add_argument("--wait", type=float, default=10)
    a = flags.parse_args()
    model, base = start_model("--delay", "3600")
    try:
        for name, sig, worker in (
            ("SIGKILL", signal.SIGKILL, False),
            ("SIGTERM (verifiers exits with code 0)", signal.SIGTERM, False),
            ("SIGKILL of one worker of a pool", signal.SIGKILL, True),
        ):
            with tempfile.TemporaryDirectory(prefix="wevalr-faults-") as folder:
                folder = pathlib.Path(folder)
                print(f"{name}\n  EnvClient {asyncio.run(theirs(folder, base, sig, worker, a.wait))}", flush=True)
                print(f"  wevalr    {ours(os.path.abspath(a.wevalr), folder, base, sig, worker)}", flush=True)
    finally:
        model.kill()
        model.wait()


if __name__ == "__main__":
    main()
