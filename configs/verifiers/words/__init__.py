"""words: a small verifiers environment that needs no network, no sandbox and no data set.

The model is asked to say a word: at once, after being asked again twice (`turns`), or after looking it up
with a tool (`tool`). The module exports a taskset and the harness that plays it, in the server's process.
"""

import json

import httpx
import verifiers.v1 as vf
from verifiers.v1.runtimes import ProgramResult

__all__ = ["Words", "WordsHarness"]

LOOKUP = {
    "type": "function",
    "function": {
        "name": "lookup",
        "description": "The word that is kept under a name.",
        "parameters": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    },
}


class WordData(vf.TaskData):
    answer: str
    turns: int = 1
    tool: bool = False


class Word(vf.Task[WordData]):
    @vf.reward(weight=1.0)
    async def said(self, trace: vf.Trace) -> float:
        return float(self.data.answer in trace.last_reply)


class WordsConfig(vf.TasksetConfig):
    n: int = 20


class Words(vf.Taskset[Word, WordsConfig]):
    def load(self):
        for i in range(self.config.n):
            row = {"name": f"word-{i:04d}", "prompt": f"Say the word w{i}.", "answer": f"w{i}"}
            if i % 4 == 2:
                row["turns"] = 3
            if i % 4 == 3:
                row |= {"prompt": f"Look up what is kept under n{i}, and say that word.", "tool": True}
            yield Word(WordData(system_prompt="Answer with one word.", **row), self.config.task)


class WordsHarness(vf.Harness[vf.HarnessConfig]):
    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(self, ctx, trace, runtime, endpoint, secret, mcp_urls, data):
        system, prompt = self.resolve_prompt(data)
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": prompt})
        turns = data.turns
        auth = {"Authorization": f"Bearer {secret}"}
        async with httpx.AsyncClient(base_url=endpoint, headers=auth, timeout=None, trust_env=False) as http:
            while True:
                body = {"model": ctx.model, "messages": messages}
                if data.tool:
                    body["tools"] = [LOOKUP]
                answer = await http.post("chat/completions", json=body)
                if answer.status_code != 200:
                    return ProgramResult(exit_code=1, stdout="", stderr=answer.text[-500:])
                message = answer.json()["choices"][0]["message"]
                self.heard(message)
                messages.append({k: v for k, v in message.items() if v is not None})
                if calls := message.get("tool_calls"):
                    for call in calls:
                        name = json.loads(call["function"]["arguments"])["name"]
                        kept = data.answer if name == f"n{data.idx}" else "nothing"
                        messages.append({"role": "tool", "tool_call_id": call["id"], "content": kept})
                    continue
                turns -= 1
                if turns == 0:
                    return ProgramResult(exit_code=0, stdout="", stderr="")
                messages.append({"role": "user", "content": "Once more, please."})

    def heard(self, message):
        """For who extends this harness: each message of the model."""
