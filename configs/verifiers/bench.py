#!/usr/bin/env python3
"""wevalr and verifiers' EnvClient as clients of the same env-servers, in turns.

    bench.py WEVALR [--rollouts 1000] [--rounds 2] [--inflight 32] [--workers 1]

Two servers: verifiers' own, which costs more than any client, and `wevalr serve`, which costs less, so that it
is the client that bounds the rate. Four clients, in turns, each round with two lengths:

    EnvClient        awaits each episode, checks its `ok` and drops it
    EnvClient, kept  also appends each to a file, as JSON (no fsync)
    host/server      wevalr's client alone, see client/: awaits each episode, checks its `ok` and drops it
    wevalr           journals, syncs every episode to the disk, compares its task with what was sent, scores it in
                     a sandbox, and prints a summary

Rates and latencies are of the rollouts alone, in the long runs. CPU is the client's process with its children.
Two lengths tell what a rollout costs from what a start does (imports there; plugins here). RSS is the peak.
Prints one JSON object a client and server, then the ratios to EnvClient.
"""

import argparse
import asyncio
import json
import os
import pathlib
import resource
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


def envclient(address, base, n, inflight, folder, keep):
    """One run of EnvClient, in a process of its own."""
    argv = [sys.executable, __file__, "-", "--rollouts", str(n), "--inflight", str(inflight), "--envclient", address, base, str(folder), keep]
    return json.loads(subprocess.check_output(argv))


async def envclient_main(address, base, folder, keep, n, inflight):
    from verifiers.v1.configs.client import EvalClientConfig
    from verifiers.v1.serve import EnvClient

    env, client, slots, latencies = EnvClient(address), EvalClientConfig(base_url=base), asyncio.Semaphore(inflight), []
    await env.wait_for_server_startup(timeout=300, interval=0.2)
    out = open(pathlib.Path(folder) / "kept.jsonl", "w")

    async def one(data):
        async with slots:
            began = time.perf_counter()
            episode = await env.run(client, "stand-in", {}, data)
            assert episode.ok
            if keep == "keep":
                out.write(episode.model_dump_json(exclude_none=True) + "\n")
                out.flush()
            latencies.append(time.perf_counter() - began)

    began = time.perf_counter()
    await asyncio.gather(*(one(d) for d in tasks(n)))
    wall = time.perf_counter() - began
    await env.close()
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"latencies": latencies, "wall": wall, "cpu": used.ru_utime + used.ru_stime, "rss": used.ru_maxrss}))


def child(argv, folder):
    """A child's stdout, its CPU seconds and its peak RSS."""
    run = subprocess.Popen(argv, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = run.stdout.read(), run.stderr.read()
    _, status, used = os.wait4(run.pid, 0)
    run.returncode = os.waitstatus_to_exitcode(status)
    if run.returncode != 0:
        sys.exit(err)
    return json.loads(out), {"cpu": used.ru_utime + used.ru_stime, "rss": used.ru_maxrss}


def goclient(address, base, n, inflight, folder):
    """One run of wevalr's client alone."""
    times, used = child([folder / "client", address, base, str(n), str(inflight)], folder)
    return times | used


def wevalr(binary, address, base, n, inflight, folder):
    write_eval(folder, base, f'address = "{address}"', n, inflight)
    summary, used = child([binary, "run", "eval.toml", "--json"], folder)
    times = []
    for line in (folder / summary["run"]["dir"] / "journal.jsonl").open():
        record = json.loads(line)
        if record["t"] == "finish":
            times.append([datetime.fromisoformat(record[k]).timestamp() for k in ("start", "end")])
    wall = max(e for _, e in times) - min(s for s, _ in times)
    return {"latencies": [e - s for s, e in times], "wall": wall} | used


def figures(short, long):
    """What the short and the long runs of a client say, all rounds together."""
    def rollouts(runs):
        return sum(len(r["latencies"]) for r in runs)

    def cpu(runs):
        return sum(r["cpu"] for r in runs)

    latencies = sorted(x for r in long for x in r["latencies"])
    each = (cpu(long) - cpu(short)) / (rollouts(long) - rollouts(short))
    return {
        "rollouts_per_s": round(len(latencies) / sum(r["wall"] for r in long), 1),
        "p50_ms": round(latencies[len(latencies) // 2] * 1e3, 1),
        "p99_ms": round(latencies[int(len(latencies) * 0.99)] * 1e3, 1),
        "cpu_ms_per_rollout": round(each * 1e3, 2),
        "cpu_s_per_start": round((cpu(short) - each * rollouts(short)) / len(short), 2),
        "rss_peak_mib": max(r["rss"] for r in long) // 1024,
    }


def compare(binary, name, address, base, rollouts, a, folder):
    clients = {
        "EnvClient": lambda n: envclient(address, base, n, a.inflight, folder, "drop"),
        "EnvClient, kept": lambda n: envclient(address, base, n, a.inflight, folder, "keep"),
        "host/server": lambda n: goclient(address, base, n, a.inflight, folder),
        "wevalr": lambda n: wevalr(binary, address, base, n, a.inflight, folder),
    }
    runs = {c: ([], []) for c in clients}
    for run in clients.values():  # warms the server, and wevalr's cache of compiled plugins
        run(a.inflight)
    for _ in range(a.rounds):
        for length, n in enumerate((rollouts // 5, rollouts)):
            for client, run in clients.items():
                runs[client][length].append(run(n))
    found = {c: figures(*r) for c, r in runs.items()}
    for client, f in found.items():
        print(json.dumps({"server": name, "client": client, **f}), flush=True)
    for ours, theirs in (("host/server", "EnvClient"), ("wevalr", "EnvClient"), ("wevalr", "EnvClient, kept")):
        ratios = {k: round(v / found[theirs][k], 2) if found[theirs][k] else None for k, v in found[ours].items()}
        print(json.dumps({"server": name, "client": f"{ours} / {theirs}", **ratios}), flush=True)


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("wevalr", help="the binary")
    flags.add_argument("--rollouts", type=int, default=1000, help="of the long runs: 4 times as many on the fast server; the short ones have a fifth")
    flags.add_argument("--rounds", type=int, default=2)
    flags.add_argument("--inflight", type=int, default=32)
    flags.add_argument("--workers", default="1")
    flags.add_argument("--envclient", nargs=4, help=argparse.SUPPRESS)  # this file as the other client
    a = flags.parse_args()
    if a.envclient:
        return asyncio.run(envclient_main(*a.envclient, a.rollouts, a.inflight))
    binary = os.path.abspath(a.wevalr)
    with tempfile.TemporaryDirectory(prefix="wevalr-bench-") as name:
        folder = pathlib.Path(name)
        address = f"ipc://{folder}/s"
        subprocess.check_call(["go", "build", "-o", folder / "client", "./client"], cwd=HERE)
        model, base = start_model()
        try:
            server = serve(address, "--workers", a.workers, "--log-level", "WARNING")
            try:
                compare(binary, "verifiers", address, base, a.rollouts, a, folder)
            finally:
                end(server)
            server = subprocess.Popen([binary, "serve", "--address", address], stderr=subprocess.DEVNULL)
            try:
                compare(binary, "wevalr serve", address, base, 4 * a.rollouts, a, folder)
            finally:
                end(server)
        finally:
            end(model)


if __name__ == "__main__":
    main()
