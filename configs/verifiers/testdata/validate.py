"""Reads traces.jsonl files with verifiers' own models and reader; prints how many episodes there are in each."""

import pathlib
import sys

from verifiers.v1 import WireEpisode, WireTrace
from verifiers.v1.utils.trace_store import read_episodes

for path in map(pathlib.Path, sys.argv[1:]):
    lines = path.read_text(encoding="utf-8").splitlines()
    episodes = [WireEpisode.model_validate_json(line) for line in lines]
    for e in episodes:
        assert e.traces and all(t.task.data.prompt for t in e.traces), e.id
        text = e.model_dump_json()
        assert WireEpisode.model_validate_json(text).model_dump_json() == text, f"{e.id} changes when written and read"
    assert len(read_episodes(path.parent, WireTrace)) == len(episodes)
    print(len(episodes))
