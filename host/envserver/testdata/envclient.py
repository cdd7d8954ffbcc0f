"""Runs rollouts through verifiers' own EnvClient; prints one JSON object a rollout."""

import asyncio
import json
import sys

from verifiers.v1.configs.client import EvalClientConfig
from verifiers.v1.serve.client import EnvClient
from verifiers.v1.types import SamplingConfig


async def main(address, base_url):
    env = EnvClient(address)
    assert await env.health(timeout=20)
    client = EvalClientConfig(base_url=base_url, api_key_var="MODEL_API_KEY")
    data = {"prompt": "Say the word w1.", "system_prompt": "Be brief.", "answer": "w1"}
    for model in sys.argv[3:]:
        seen = []
        try:
            ep = await env.run(client, model, SamplingConfig(temperature=0.5), data, on_delta=seen.append)
        except RuntimeError as e:
            print(json.dumps({"model": model, "error": str(e)}))
            continue
        trace = ep.traces[0]
        from verifiers.v1.task import task_key

        print(json.dumps({
            "model": model,
            "deltas": len(seen),
            "ok": ep.ok,
            "stop": trace.stop_condition,
            "text": trace.nodes[-1].message.content if trace.nodes else None,
            "tokens": [ep.num_input_tokens, ep.num_output_tokens, trace.num_total_tokens],
            "status": trace.errors[-1].status_code if trace.errors else None,
            "hash": trace.task.hash == task_key(trace.task.data.model_dump(mode="json", exclude_none=True)),
            "dump": len(ep.model_dump_json()) > 100,
        }))
    run = asyncio.create_task(env.run(client, "hang", SamplingConfig(), data))
    print(json.dumps({"model": "hang"}), flush=True)
    await asyncio.to_thread(sys.stdin.readline)  # the endpoint has been called
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)
    await asyncio.to_thread(sys.stdin.readline)  # the endpoint's client has gone
    await env.close()


asyncio.run(main(sys.argv[1], sys.argv[2]))
