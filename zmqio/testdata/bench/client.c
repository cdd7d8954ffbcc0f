/* A DEALER on libzmq that keeps a number of requests in flight, and measures.
 *
 *   cc -O2 -o client client.c -lzmq && ./client ENDPOINT INFLIGHT CALLS SIZE
 *
 * Prints one line of JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <zmq.h>

static void die(const char *what) {
	fprintf(stderr, "%s: %s\n", what, zmq_strerror(zmq_errno()));
	exit(1);
}

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static double cpu(void) {
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static int compare(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

int main(int argc, char **argv) {
	if (argc != 5) {
		fprintf(stderr, "usage: client ENDPOINT INFLIGHT CALLS SIZE\n");
		return 2;
	}
	long inflight = atol(argv[2]), calls = atol(argv[3]), size = atol(argv[4]), sent = 0, got = 0;
	void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_DEALER);
	int zero = 0;
	zmq_setsockopt(socket, ZMQ_SNDHWM, &zero, sizeof zero);
	zmq_setsockopt(socket, ZMQ_RCVHWM, &zero, sizeof zero);
	zmq_setsockopt(socket, ZMQ_LINGER, &zero, sizeof zero);
	if (zmq_connect(socket, argv[1]) != 0)
		die("connect");
	double *begun = calloc(calls, sizeof *begun), *took = calloc(calls, sizeof *took);
	char *payload = calloc(1, size + 1), id[33];

	double cpu0 = cpu(), start = now();
	while (got < calls) {
		for (; sent < calls && sent - got < inflight; sent++) {
			snprintf(id, sizeof id, "%032lx", sent);
			begun[sent] = now();
			if (zmq_send(socket, id, 32, ZMQ_SNDMORE) < 0 || zmq_send(socket, "run", 3, ZMQ_SNDMORE) < 0 ||
			    zmq_send(socket, payload, size, 0) < 0)
				die("send");
		}
		char kind[8];
		zmq_msg_t body;
		zmq_msg_init(&body);
		if (zmq_recv(socket, id, 32, 0) != 32 || zmq_recv(socket, kind, sizeof kind, 0) != 5 ||
		    zmq_msg_recv(&body, socket, 0) != size)
			die("recv");
		zmq_msg_close(&body);
		id[32] = 0;
		took[got++] = now() - begun[strtol(id, NULL, 16)];
	}
	double wall = now() - start, used = cpu() - cpu0;
	qsort(took, calls, sizeof *took, compare);
	printf("{\"req_per_s\": %.0f, \"p50_us\": %.1f, \"p99_us\": %.1f, \"cpu_us_per_req\": %.2f}\n", calls / wall,
	       took[calls / 2] * 1e6, took[calls * 99 / 100] * 1e6, used / calls * 1e6);
	zmq_close(socket);
	zmq_ctx_term(context);
	return 0;
}
