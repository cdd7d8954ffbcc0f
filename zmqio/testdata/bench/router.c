/* An echo ROUTER on libzmq: [id, method, payload] -> [id, "reply", payload].
 *
 *   cc -O2 -o router router.c -lzmq && ./router ENDPOINT
 *
 * Prints the endpoint it is bound to, and ends when its standard input does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

static void die(const char *what) {
	fprintf(stderr, "%s: %s\n", what, zmq_strerror(zmq_errno()));
	exit(1);
}

/* echo answers one request, and returns 0 when there is none. */
static int echo(void *socket) {
	zmq_msg_t part[4]; /* identity, id, method, payload */
	int n = 0, more = 1;
	while (more && n < 4) {
		zmq_msg_init(&part[n]);
		if (zmq_msg_recv(&part[n], socket, ZMQ_DONTWAIT) < 0) {
			if (zmq_errno() == EAGAIN && n == 0)
				return 0;
			die("recv");
		}
		more = zmq_msg_more(&part[n++]);
	}
	if (n != 4 || more) {
		fprintf(stderr, "request of %d frames\n", n);
		exit(1);
	}
	zmq_msg_close(&part[2]);
	zmq_msg_init_size(&part[2], 5);
	memcpy(zmq_msg_data(&part[2]), "reply", 5);
	for (int i = 0; i < 4; i++)
		if (zmq_msg_send(&part[i], socket, i < 3 ? ZMQ_SNDMORE : 0) < 0)
			die("send");
	return 1;
}

int main(int argc, char **argv) {
	if (argc != 2) {
		fprintf(stderr, "usage: router ENDPOINT\n");
		return 2;
	}
	void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_ROUTER);
	int zero = 0;
	zmq_setsockopt(socket, ZMQ_SNDHWM, &zero, sizeof zero);
	zmq_setsockopt(socket, ZMQ_RCVHWM, &zero, sizeof zero);
	zmq_setsockopt(socket, ZMQ_LINGER, &zero, sizeof zero);
	if (zmq_bind(socket, argv[1]) != 0)
		die("bind");
	char endpoint[256];
	size_t length = sizeof endpoint;
	zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &length);
	printf("%s\n", endpoint);
	fflush(stdout);

	zmq_pollitem_t items[] = {{socket, 0, ZMQ_POLLIN, 0}, {NULL, STDIN_FILENO, ZMQ_POLLIN, 0}};
	for (;;) {
		if (zmq_poll(items, 2, -1) < 0)
			die("poll");
		if (items[1].revents)
			break;
		while (echo(socket))
			;
	}
	zmq_close(socket);
	zmq_ctx_term(context);
	return 0;
}
