"""verifiers' own EnvClient against an env-server: ADDRESS BASE_URL.

It runs 20 rollouts; then two whose model calls are held: one is cancelled by its caller, one by another
connection; then one more. It goes on at a line on stdin, and says so with a line of JSON on stdout.
"""

import asyncio
import json
import sys
import uuid

import msgpack
import zmq
import zmq.asyncio
from verifiers.v1.configs.client import EvalClientConfig
from verifiers.v1.serve import EnvClient


def say(**what):
    print(json.dumps(what), flush=True)


async def told():
    await asyncio.to_thread(sys.stdin.readline)


async def cancel(address, request_id):
    """Cancels from a connection of its own, as verifiers' pool allows."""
    socket = zmq.asyncio.Context.instance().socket(zmq.DEALER)
    socket.setsockopt(zmq.LINGER, 0)
    socket.connect(address)
    await socket.send_multipart([uuid.uuid4().hex.encode(), b"cancel", msgpack.packb({"request_id": request_id})])
    reply = msgpack.unpackb((await socket.recv_multipart())[2])
    socket.close()
    return reply


async def main(address, base_url):
    env = EnvClient(address)
    await env.wait_for_server_startup(timeout=60, interval=0.1)
    client = EvalClientConfig(base_url=base_url)

    def run(i):
        data = {"prompt": f"Say the word w{i}.", "answer": f"w{i}"}
        return asyncio.create_task(env.run(client, "stand-in", {}, data))

    episodes = await asyncio.gather(*(run(i) for i in range(20)))
    say(ok=sum(e.ok for e in episodes), said=[e.traces[0].last_reply for e in episodes])
    before = set(env._pending)
    left, aborted = run(1), run(2)
    await told()  # both model calls are held
    left.cancel()
    ids = [i for i in env._pending if i not in before]
    reply = await cancel(address, ids[-1])
    text = str((await asyncio.gather(left, aborted, return_exceptions=True))[1])
    say(cancelled=reply["cancelled"], text=text, left=left.cancelled())
    await told()  # nothing is held any more
    say(ok=int((await run(3)).ok))
    await env.close()


asyncio.run(main(sys.argv[1], sys.argv[2]))
