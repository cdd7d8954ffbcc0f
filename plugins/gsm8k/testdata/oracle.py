"""The `flexible` rule in Python, to compare with: oracle.py TEST.jsonl REPLAY.jsonl.

Rule: the last match of the pattern, both sides without commas, "$" and one final ".", then equality.
Prints how many are right and the seconds that scoring alone took.
"""
import json
import re
import sys
import time

PATTERN = re.compile(r"(-?[$0-9.,]{2,})|(-?[0-9]+)")


def normal(text):
    text = re.sub(r"(?s).*#### ", "", text.replace(",", "").replace("$", ""))
    return re.sub(r"\.$", "", text).strip().lower()


def flexible(completion, answer):
    found = [a or b for a, b in PATTERN.findall(completion)]
    return bool(found) and normal(found[-1]) == normal(answer)


with open(sys.argv[1]) as f:
    tasks = {f"test-{i}": json.loads(line)["answer"] for i, line in enumerate(f)}
with open(sys.argv[2]) as f:
    rows = [json.loads(line) for line in f]
start = time.perf_counter()
right = sum(flexible(r["completion"], tasks[r["key"]]) for r in rows)
print(right, "of", len(rows), "right;", round(time.perf_counter() - start, 4), "s")
