"""An env-server's wire on pyzmq's asyncio, for tests: one task for each run, and cancels.

    python3 server.py ENDPOINT

Payloads are text: a run's is how many milliseconds it takes, or "never"; a cancel's is the id of a
run. Prints the endpoint it is bound to, and ends when its standard input does.
"""

import asyncio
import sys

import zmq
import zmq.asyncio


async def main(endpoint: str) -> None:
    context = zmq.asyncio.Context()
    socket = context.socket(zmq.ROUTER)
    for option in (zmq.SNDHWM, zmq.RCVHWM, zmq.LINGER):
        socket.setsockopt(option, 0)
    socket.bind(endpoint)
    print(socket.getsockopt_string(zmq.LAST_ENDPOINT), flush=True)
    running: dict[bytes, asyncio.Event] = {}  # set when the run is cancelled
    tasks: set[asyncio.Task[None]] = set()

    async def run(client: bytes, request: bytes, payload: bytes) -> None:
        await socket.send_multipart([client, request, b"delta", b"begun"])
        answer = b"aborted"
        try:
            await asyncio.wait_for(running[request].wait(), None if payload == b"never" else int(payload) / 1000)
        except asyncio.TimeoutError:
            answer = b"done"
        del running[request]
        await socket.send_multipart([client, request, b"reply", answer])

    async def serve() -> None:
        while True:
            client, request, method, payload = await socket.recv_multipart()
            if method == b"run":
                running[request] = asyncio.Event()
                task = asyncio.create_task(run(client, request, payload))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
                continue
            answer = b"well"
            if method == b"cancel":
                answer = b"true" if payload in running else b"false"
                if payload in running:
                    running[payload].set()
            await socket.send_multipart([client, request, b"reply", answer])

    serving = asyncio.create_task(serve())
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    serving.cancel()
    socket.close()
    context.term()


asyncio.run(main(sys.argv[1]))
