#!/usr/bin/env python3
"""Serve a verifiers taskset as an env-server; verifiers itself has no command for it.

    serve.py --address ipc:///tmp/words.sock --taskset words                         one process
    serve.py --address tcp://127.0.0.1:5000 --taskset words --workers 2              a broker and 2 workers
    serve.py --address ... --taskset words --workers 4 --elastic                     from 1 worker up to 4

A taskset is an importable module (this folder, the working directory's packages and PYTHONPATH count).
Everything is logged to stderr; SIGTERM and SIGINT end it with code 0. It is ready when it answers `health`.
"""

import argparse
import functools
import json

from verifiers.v1.serve import env_config_data, serve_env
from verifiers.v1.utils.loaders import resolve_env_config
from verifiers.v1.utils.logging import setup_logging


def env_config(taskset, options, harness=None, env=""):
    """The environment's config. The harness is the taskset's own where it has one, else verifiers' default.

    The runtime is named because verifiers' default is a remote sandbox."""
    agent = {"runtime": {"type": "subprocess"}}
    if harness:
        agent["harness"] = {"id": harness}
    return resolve_env_config({"id": env, "taskset": {"id": taskset, **options}, "agent": agent})


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--address", required=True, help="ipc://PATH or tcp://HOST:PORT")
    flags.add_argument("--taskset", required=True)
    flags.add_argument("--options", default="{}", type=json.loads, help="the taskset's config, as JSON")
    flags.add_argument("--harness", help="a harness other than the taskset's own")
    flags.add_argument("--env", default="", help="an environment other than the taskset's own, such as best_of_n")
    flags.add_argument("--workers", type=int, default=1, help="1: this process is the server; more: a pool")
    flags.add_argument("--elastic", action="store_true", help="start with one worker and add more under load")
    flags.add_argument("--multiplex", type=int, default=128, help="rollouts that a worker is meant for")
    flags.add_argument("--max-concurrent", type=int, help="rollouts at once in a worker; the others wait")
    flags.add_argument("--log-level", default="INFO")
    a = flags.parse_args()
    serve_env(
        address=a.address,
        max_workers=a.workers,
        elastic=a.elastic,
        multiplex=a.multiplex,
        max_concurrent=a.max_concurrent,
        log_setup=functools.partial(setup_logging, a.log_level),
        config_data=env_config_data(env_config(a.taskset, a.options, a.harness, a.env)),
    )


if __name__ == "__main__":  # a pool's workers import this file again
    main()
