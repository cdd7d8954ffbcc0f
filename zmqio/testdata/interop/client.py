"""A client of an env-server on pyzmq's asyncio, for tests.

    python3 client.py ENDPOINT

Asks for health, runs 200 at once, cancels 50 that would never end, and leaves while 20 more run.
Payloads are text: a run's is echoed, or "never". Prints what it saw.
"""

import asyncio
import sys
import uuid

import zmq
import zmq.asyncio


async def main(endpoint: str) -> None:
    context = zmq.asyncio.Context()
    socket = context.socket(zmq.DEALER)
    socket.setsockopt(zmq.LINGER, 0)
    socket.connect(endpoint)
    waiting: dict[bytes, asyncio.Future[bytes]] = {}
    begun: dict[bytes, asyncio.Event] = {}
    order: list[bytes] = []

    async def receive() -> None:
        while True:
            request, kind, body = await socket.recv_multipart()
            if kind == b"delta":
                begun[request].set()
                continue
            assert kind == b"reply", kind
            order.append(request)
            waiting.pop(request).set_result(body)

    async def send(method: bytes, payload: bytes) -> tuple[bytes, asyncio.Future[bytes]]:
        request = uuid.uuid4().hex.encode()
        waiting[request] = asyncio.get_running_loop().create_future()
        begun[request] = asyncio.Event()
        await socket.send_multipart([request, method, payload])
        return request, waiting[request]

    async def call(method: bytes, payload: bytes) -> bytes:
        return await (await send(method, payload))[1]

    receiver = asyncio.create_task(receive())
    assert await call(b"health", b"") == b"well"
    texts = [b"%d " % i * i for i in range(200)]
    assert await asyncio.gather(*(call(b"run", t) for t in texts)) == texts
    print("echoed", len(texts))

    runs = [await send(b"run", b"never") for _ in range(50)]
    for request, _ in runs:
        await begun[request].wait()
    cancels = [await send(b"cancel", request) for request, _ in runs]
    assert await asyncio.gather(*(f for _, f in cancels)) == [b"true"] * 50
    assert await asyncio.gather(*(f for _, f in runs)) == [b"aborted"] * 50
    for (run, _), (cancel, _) in zip(runs, cancels):
        assert order.index(cancel) < order.index(run)
    assert await call(b"cancel", runs[0][0]) == b"false"
    print("cancelled", len(runs))

    left = [await send(b"run", b"never") for _ in range(20)]
    for request, _ in left:
        await begun[request].wait()
    print("leaves", len(left))
    receiver.cancel()
    socket.close()
    context.term()


asyncio.run(asyncio.wait_for(main(sys.argv[1]), 60))
