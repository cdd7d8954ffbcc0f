#!/usr/bin/env python3
"""Write a verifiers taskset's tasks as JSONL for wevalr's `jsonl` plugin, one task a line.

    export.py --taskset words -o tasks/words.jsonl

An env-server never loads the tasks: whoever calls it sends each task's data. A line's `data` is that, without
what is the taskset's default anyway. Each is validated here as the server will do it; a field that would not
arrive as it is here is an error that names the field. `key` is the task's id or name where it has one, else
its position.
"""

import argparse
import json
import pathlib
import re
import sys

from serve import env_config
from verifiers.v1.utils.loaders import load_taskset

KEY = re.compile(r"[A-Za-z0-9._/:-]{1,200}")


def differences(sent, back, path="data"):
    """The fields of sent that back lacks or has otherwise."""
    if isinstance(sent, dict) and isinstance(back, dict):
        for name, value in sent.items():
            if name in back:
                yield from differences(value, back[name], f"{path}.{name}")
            else:
                yield f"{path}.{name} is dropped"
    elif isinstance(sent, list) and isinstance(back, list) and len(sent) == len(back):
        for i, (a, b) in enumerate(zip(sent, back)):
            yield from differences(a, b, f"{path}.{i}")
    elif sent != back:
        yield f"{path} is sent as {sent!r} and comes back as {back!r}"


def row(task, taskset, target):
    """The line of a task, and what the server would not get of it."""
    fields = type(task.data).model_fields
    default = {n for n, f in fields.items() if getattr(task.data, n) == f.get_default(call_default_factory=True)}
    data = task.data.model_dump(mode="json", exclude_none=True, exclude=default)
    back = type(task).data_type().model_validate(data)
    wrong = list(differences(task.data.model_dump(mode="json"), back.model_dump(mode="json")))
    wrong += [f"data.{n} never goes over the wire (exclude=True)" for n, f in fields.items() if f.exclude]
    position = f"{taskset}-{task.data.idx:05d}"
    key = task.data.id or task.data.name or position
    if not KEY.fullmatch(key) or ".." in key:
        key = position
    out = {"key": key, "data": data}
    if target:
        out["target"] = task.data.model_dump(mode="json")[target]
    return out, [f"{key}: {w}" for w in wrong]


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--taskset", required=True)
    flags.add_argument("--options", default="{}", type=json.loads, help="the taskset's config, as JSON")
    flags.add_argument("--target", help="the data's field that scorers compare with")
    flags.add_argument("-n", type=int, help="the first N tasks; an endless taskset needs it")
    flags.add_argument("-o", type=pathlib.Path, required=True, help="the file to write")
    a = flags.parse_args()
    tasks = load_taskset(env_config(a.taskset, a.options).taskset)
    if a.n is not None:
        tasks = tasks.take(a.n)
    if not tasks.bounded:
        sys.exit(f"export: {a.taskset} has no end; say how many with -n")
    lines, seen = [], set()
    for task in tasks:
        out, wrong = row(task, a.taskset, a.target)
        if wrong:
            sys.exit("export: the server would not get what the taskset has:\n  " + "\n  ".join(wrong))
        if out["key"] in seen:
            sys.exit(f"export: two tasks have the key {out['key']}")
        seen.add(out["key"])
        lines.append(json.dumps(out, ensure_ascii=False) + "\n")
    a.o.parent.mkdir(parents=True, exist_ok=True)
    a.o.write_text("".join(lines), encoding="utf-8")
    print(f"{len(lines)} tasks in {a.o}", file=sys.stderr)


if __name__ == "__main__":
    main()
