"""A DEALER on pyzmq's asyncio that keeps a number of requests in flight, and measures.

    python3 client.py ENDPOINT INFLIGHT CALLS SIZE

One task receives and settles a future for each request, as clients of env-servers do. Prints one
line of JSON.
"""

import asyncio
import json
import sys
import time
import uuid

import zmq
import zmq.asyncio


async def main(endpoint: str, inflight: int, calls: int, size: int) -> None:
    context = zmq.asyncio.Context()
    socket = context.socket(zmq.DEALER)
    for option in (zmq.SNDHWM, zmq.RCVHWM, zmq.LINGER):
        socket.setsockopt(option, 0)
    socket.connect(endpoint)
    waiting: dict[bytes, asyncio.Future[bytes]] = {}
    payload = bytes(size)
    took: list[float] = []
    left = calls

    async def receive() -> None:
        while True:
            request, kind, body = await socket.recv_multipart()
            assert kind == b"reply"
            waiting.pop(request).set_result(body)

    async def call() -> None:
        request = uuid.uuid4().hex.encode()
        future = asyncio.get_running_loop().create_future()
        waiting[request] = future
        await socket.send_multipart([request, b"run", payload])
        assert len(await future) == size

    async def work() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            start = time.perf_counter()
            await call()
            took.append(time.perf_counter() - start)

    receiver = asyncio.create_task(receive())
    await call()
    cpu, start = time.process_time(), time.perf_counter()
    await asyncio.gather(*(work() for _ in range(inflight)))
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    receiver.cancel()
    socket.close()
    context.term()
    took.sort()
    print(
        json.dumps(
            {
                "req_per_s": round(calls / wall),
                "p50_us": took[calls // 2] * 1e6,
                "p99_us": took[calls * 99 // 100] * 1e6,
                "cpu_us_per_req": cpu / calls * 1e6,
            }
        )
    )


asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:5])))
