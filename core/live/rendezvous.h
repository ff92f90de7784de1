/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_LIVE_RENDEZVOUS_H
#define TM_LIVE_RENDEZVOUS_H
/*
 * The way by which live clients and servers meet: TCP, beside the RDMA network. A
 * client says which number it would like (0: any that is free); the server answers
 * with the number it gets and with a text that describes what is served. From then on
 * the client can ask to connect queue pairs (rt_connect). The number is the client's as long as the
 * TCP connection lasts.
 *
 * All that comes in is checked: a peer that talks nonsense is dropped.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/live/injected.h"

#define RENDEZVOUS_TEXT 4096 /* bytes of the description, its NUL included */
#define RENDEZVOUS_MSG	1024 /* bytes of a connect request or its reply */

/* Is it "ADDRESS:PORT", or "[::1]:7471"? No name is looked up. */
bool rendezvous_is_address(const char *address);

struct rendezvous;
/* Connect to "ADDRESS:PORT" ("[::1]:7471"). *client: the number wanted, then the number given.
 * `text`: the description, RENDEZVOUS_TEXT bytes. -ECONNREFUSED, -EUSERS (no number is free),
 * -EBUSY (that one is taken), -EPROTO, -ETIMEDOUT, or what the system says. */
int rendezvous_connect(struct rendezvous **out, const char *address, unsigned *client, char *text);
/* Ask the server to accept a queue pair. 0 or -errno, the server's own included. */
int rendezvous_ask(struct rendezvous *c, const void *req, size_t req_len, void *rsp,
		   size_t rsp_len);
/* Ask it what was injected at its end. 0 or -errno: there is no answer. */
int rendezvous_ask_injected(struct rendezvous *c, struct injected *out);
/* From any thread, also from a signal's: what is being asked fails, and all that will be asked. */
void rendezvous_break(struct rendezvous *c);
void rendezvous_close(struct rendezvous *c); /* NULL: nothing */

/* The server's end. `accept` is called on one thread at a time. */
struct rendezvous_server;
struct rendezvous_server_setup {
	const char *address; /* "127.0.0.1:7471"; port 0: any */
	const char *text;
	unsigned clients;  /* numbers 1..clients are given out */
	unsigned reserved; /* the next ones are for those that ask for them */
	int (*accept)(void *arg, unsigned client, const void *req, size_t req_len, void *rsp,
		      size_t rsp_len);
	/* Fills in all but `departed`; NULL: nothing is known. */
	void (*injected)(void *arg, unsigned client, struct injected *out);
	/* The one with this number has gone away; NULL: nobody wants to know. */
	void (*departs)(void *arg, unsigned client);
	void *arg;
	unsigned patience_ms; /* for a hello, and for the rest of a frame; 0: 5000 */
};
/* Could a server listen there, now? 0; -EINVAL: not "ADDRESS:PORT"; or what the system says. */
int rendezvous_check(const char *address);
int rendezvous_listen(struct rendezvous_server **out, const struct rendezvous_server_setup *setup);
/* The port that it listens on. */
uint16_t rendezvous_port(const struct rendezvous_server *s);
void rendezvous_stop(struct rendezvous_server *s);

#endif
