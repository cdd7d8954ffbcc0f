"""A broker with two workers, of which one dies in a run that then never ends, for tests.

    python3 pool.py ENDPOINT

The broker answers health and cancel itself, and does not notice. Payloads are text: "die", or what
is echoed. Prints the endpoint it is bound to, and ends when its standard input does.
"""

import multiprocessing
import os
import sys

import zmq


def work(address: str) -> None:
    socket = zmq.Context().socket(zmq.DEALER)
    socket.connect(address)
    while True:
        client, request, payload = socket.recv_multipart()
        if payload == b"die":
            os._exit(23)
        socket.send_multipart([client, request, b"reply", payload])


def main(endpoint: str) -> None:
    context = zmq.Context()
    front, back = context.socket(zmq.ROUTER), []
    front.bind(endpoint)
    for i in range(2):
        socket = context.socket(zmq.DEALER)
        address = f"ipc://{os.environ['POOL_DIR']}/w{i}"
        socket.bind(address)
        multiprocessing.Process(target=work, args=(address,), daemon=True).start()
        back.append(socket)
    print(front.getsockopt_string(zmq.LAST_ENDPOINT), flush=True)
    poller, turn = zmq.Poller(), 0
    for socket in (front, *back):
        poller.register(socket, zmq.POLLIN)
    poller.register(sys.stdin.fileno(), zmq.POLLIN)
    while True:
        ready = dict(poller.poll())
        if sys.stdin.fileno() in ready:
            break
        if front in ready:
            client, request, method, payload = front.recv_multipart()
            if method == b"run":
                back[turn % 2].send_multipart([client, request, payload])
                turn += 1
            else:
                front.send_multipart([client, request, b"reply", b"well"])
        for socket in back:
            if socket in ready:
                front.send_multipart(socket.recv_multipart())
    context.destroy(linger=0)


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    main(sys.argv[1])
