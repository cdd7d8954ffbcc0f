#!/usr/bin/env python3
"""wevalr and verifiers' EnvClient as clients of the same verifiers env-server, one after the other.

    bench.py WEVALR [--rollouts 400] [--inflight 32] [--workers 1]

Prints one JSON object a client and then the ratios. Rates and latencies are of the rollouts alone. CPU and
RSS are of the client's process: wevalr's whole life, with its start, the scoring in the sandbox and every
episode synced to the disk; EnvClient's calls alone, which keep nothing.
"""

import argparse
import asyncio
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from datetime import datetime

HERE = pathlib.Path(__file__).resolve().parent
EVAL = """version = 1
name = "bench"
[tasks]
plugin = "jsonl"
[[score]]
plugin = "exact-match"
[model]
name = "stand-in"
client = {{ base_url = "{base}" }}
[server]
{server}
[run]
max_concurrent = {inflight}
[[plugin]]
name = "jsonl"
source = "{plugins}/jsonl"
grant = {{ fs.dataset = "{folder}/data" }}
[[plugin]]
name = "exact-match"
source = "{plugins}/exact-match"
"""


def tasks(n):
    return [{"prompt": f"Say the word w{i}.", "answer": f"w{i}"} for i in range(n)]


def write_eval(folder, base, server, n, inflight):
    data = folder / "data"
    data.mkdir(exist_ok=True)
    rows = (json.dumps({"key": f"word-{i:05d}", "data": d, "target": d["answer"]}) for i, d in enumerate(tasks(n)))
    (data / "tasks.jsonl").write_text("\n".join(rows) + "\n")
    text = EVAL.format(base=base, server=server, inflight=inflight, folder=folder, plugins=HERE.parent.parent / "plugins")
    (folder / "eval.toml").write_text(text)


def start_model(*args):
    model = subprocess.Popen([sys.executable, HERE / "model.py", "--port", "0", *args], stdout=subprocess.PIPE, text=True)
    return model, model.stdout.readline().strip()


def serve(address, *args, log=subprocess.DEVNULL):
    argv = [sys.executable, HERE / "serve.py", "--address", address, "--taskset", "words", *args]
    return subprocess.Popen(argv, stderr=log)


def end(*processes):
    for p in processes:
        p.terminate()
    for p in processes:
        try:
            p.wait(30)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()


def figures(name, latencies, wall, cpu, rss_kib):
    latencies.sort()
    n = len(latencies)
    return {
        "client": name, "rollouts": n, "rollouts_per_s": round(n / wall, 1),
        "p50_ms": round(latencies[n // 2] * 1e3, 1), "p99_ms": round(latencies[int(n * 0.99)] * 1e3, 1),
        "cpu_ms_per_rollout": round(cpu / n * 1e3, 2), "rss_peak_mib": rss_kib // 1024,
    }


async def envclient(address, base, n, inflight):
    from verifiers.v1.configs.client import EvalClientConfig
    from verifiers.v1.serve import EnvClient

    env, client, slots, latencies = EnvClient(address), EvalClientConfig(base_url=base), asyncio.Semaphore(inflight), []
    await env.wait_for_server_startup(timeout=300, interval=0.2)

    async def one(data):
        async with slots:
            began = time.perf_counter()
            episode = await env.run(client, "stand-in", {}, data)
            assert episode.ok
            latencies.append(time.perf_counter() - began)

    await asyncio.gather(*(one(d) for d in tasks(inflight)))  # warm
    latencies.clear()
    cpu, began = time.process_time(), time.perf_counter()
    await asyncio.gather(*(one(d) for d in tasks(n)))
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    await env.close()
    peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print(json.dumps(figures("EnvClient", latencies, wall, cpu, int(peak.split()[1]))))


def wevalr(binary, folder, n):
    run = subprocess.Popen([binary, "run", "eval.toml", "--json"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = run.stdout.read(), run.stderr.read()
    _, status, used = os.wait4(run.pid, 0)
    run.returncode = os.waitstatus_to_exitcode(status)
    if run.returncode != 0:
        sys.exit(err)
    times = []
    for line in (folder / json.loads(out)["run"]["dir"] / "journal.jsonl").open():
        record = json.loads(line)
        if record["t"] == "finish":
            times.append([datetime.fromisoformat(record[k]).timestamp() for k in ("start", "end")])
    wall = max(e for _, e in times) - min(s for s, _ in times)
    return figures("wevalr", [e - s for s, e in times], wall, used.ru_utime + used.ru_stime, used.ru_maxrss)


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("wevalr", help="the binary")
    flags.add_argument("--rollouts", type=int, default=400)
    flags.add_argument("--inflight", type=int, default=32)
    flags.add_argument("--workers", default="1")
    flags.add_argument("--envclient", nargs=2, help=argparse.SUPPRESS)  # this file as the other client
    a = flags.parse_args()
    if a.envclient:
        return asyncio.run(envclient(*a.envclient, a.rollouts, a.inflight))
    with tempfile.TemporaryDirectory(prefix="wevalr-bench-") as name:
        folder = pathlib.Path(name)
        address = f"ipc://{folder}/s"
        model, base = start_model()
        server = serve(address, "--workers", a.workers, "--log-level", "WARNING")
        try:
            other = [sys.executable, __file__, a.wevalr, "--rollouts", str(a.rollouts), "--inflight", str(a.inflight)]
            theirs = json.loads(subprocess.check_output([*other, "--envclient", address, base]))
            write_eval(folder, base, f'address = "{address}"', a.rollouts, a.inflight)
            ours = wevalr(os.path.abspath(a.wevalr), folder, a.rollouts)
        finally:
            end(server, model)
    print(json.dumps(theirs))
    print(json.dumps(ours))
    names = ("rollouts_per_s", "p50_ms", "p99_ms", "cpu_ms_per_rollout", "rss_peak_mib")
    print(json.dumps({"wevalr / EnvClient": {k: round(ours[k] / theirs[k], 2) for k in names}}))


if __name__ == "__main__":
    main()
