/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tidemark members: who the members of a live store of several servers are, and which of them
 * clients ask. docs/live.md.
 *
 * What is kept is a text:
 *
 *	tidemark-members 1
 *	servers 2
 *	boot 1			(how often a server came when no other one was there)
 *	epoch 3
 *	primary 2
 *	server 1 out 127.0.0.1:41234
 *	server 2 member 127.0.0.1:34521
 *
 * A server that has never been there has "-" as its address. The text is in the file before anybody
 * is told: servers may be killed, and this may be, too.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/cli.h"
#include "cli/options.h"
#include "core/clock.h"
#include "core/live/live_config.h"
#include "core/live/rendezvous.h"
#include "core/text/text.h"
#include "report/output.h"

#define DEFAULT_LISTEN "127.0.0.1:7470"
#define TEXT_MAX       4096

struct service {
	const char *path, *listen;
	unsigned servers;
	bool quiet;
	uint64_t start_ns;
	struct config_answer now; /* in this machine's order */
};

/* --- what is kept --- */

static int write_members(FILE *out, const void *arg)
{
	const struct config_answer *now = arg;
	fprintf(out, CONFIG_MAGIC "\nservers %u\nboot %u\nepoch %u\nprimary %u\n", now->servers,
		now->boot, now->epoch, now->primary + 1);
	for (unsigned s = 0; s < now->servers; s++)
		fprintf(out, "server %u %s %s\n", s + 1, now->members >> s & 1 ? "member" : "out",
			*now->address[s] ? now->address[s] : "-");
	return fflush(out) || fsync(fileno(out)) ? -errno : 0;
}

static int read_server(struct text *t, struct config_answer *now, unsigned s)
{
	static const char expected[] = "server, its number, \"member\" or \"out\", its address";
	uint64_t number;
	char *line = text_field(t, "server", expected);
	if (!line)
		return -EINVAL;
	const char *nth = text_word(&line), *role = text_word(&line), *address = text_word(&line);
	if (!text_number(nth, s + 1, s + 1, &number) || *text_skip_blanks(line) ||
	    (strcmp(role, "member") && strcmp(role, "out")) ||
	    (strcmp(address, "-") && !rendezvous_is_address(address)) ||
	    strlen(address) >= CONFIG_ADDRESS)
		return text_wrong(t, "expected %s", expected);
	now->members |= (uint32_t)!strcmp(role, "member") << s;
	if (strcmp(address, "-"))
		strcpy(now->address[s], address);
	return 0;
}

static int read_members(struct text *t, struct config_answer *now)
{
	const char *version = text_field(t, "tidemark-members", CONFIG_MAGIC);
	uint64_t servers, boot, epoch, primary;
	char *more;
	if (!version)
		return -EINVAL;
	if (strcmp(version, "1"))
		return text_wrong(t, "expected %s", CONFIG_MAGIC);
	if (text_field_number(t, "servers", 2, LIVE_SERVERS, "servers and their number",
			      &servers) ||
	    text_field_number(t, "boot", 0, UINT32_MAX, "boot and a number", &boot) ||
	    text_field_number(t, "epoch", 1, UINT32_MAX, "epoch and a number", &epoch) ||
	    text_field_number(t, "primary", 1, servers, "primary and a server's number", &primary))
		return -EINVAL;
	*now = (struct config_answer){.servers = (uint32_t)servers,
				      .boot = (uint32_t)boot,
				      .epoch = (uint32_t)epoch,
				      .primary = (uint32_t)primary - 1};
	for (unsigned s = 0; s < servers; s++)
		if (read_server(t, now, s))
			return -EINVAL;
	return text_line(t, &more) ? text_wrong(t, "expected nothing more") : 0;
}

/* 0, or the status after a message. */
static int open_members(struct service *s)
{
	struct input_error wrong = {0};
	struct text t;
	size_t len;
	int error;
	char *text = text_read_path(s->path, TEXT_MAX, &len, &wrong, &error);
	if (!text && error == -ENOENT) {
		const unsigned n = s->servers ? s->servers : 2;
		s->now = (struct config_answer){.servers = n, .epoch = 1, .members = (1u << n) - 1};
		return saved(s->path, save_file(s->path, write_members, &s->now));
	}
	if (!text)
		return fail(EXIT_USAGE, "%s: %s", s->path, strerror(-error));
	text_start(&t, text, len > TEXT_MAX ? TEXT_MAX : len, &wrong);
	error = read_members(&t, &s->now);
	free(text);
	if (error)
		return fail(EXIT_USAGE, "%s%s: %s", s->path, input_place(&wrong).text,
			    wrong.message);
	if (s->servers && s->servers != s->now.servers)
		return fail(EXIT_USAGE, "--servers: %u; %s is of %u", s->servers, s->path,
			    s->now.servers);
	return 0;
}

/* --- answers --- */

static void tell(const struct service *s)
{
	const struct config_answer *now = &s->now;
	if (s->quiet)
		return;
	printf("epoch %u: server %u is the primary; members:", now->epoch, now->primary + 1);
	for (unsigned k = 0; k < now->servers; k++)
		if (now->members >> k & 1)
			printf(" %u", k + 1);
	printf("; alive:");
	for (unsigned k = 0; k < now->servers; k++)
		if (now->alive >> k & 1)
			printf(" %u", k + 1);
	puts(now->alive ? "" : " none");
	fflush(stdout);
}

/* The next one becomes the one in force when it is in the file. */
static int change(struct service *s, const struct config_answer *next)
{
	int error = save_file(s->path, write_members, next);
	if (error) {
		fail(0, "%s: %s", s->path, strerror(-error));
		return -EIO;
	}
	s->now = *next;
	tell(s);
	return 0;
}

static int set(struct service *s, const struct config_request *req)
{
	struct config_answer next = s->now;
	next.epoch = ntohl(req->epoch);
	next.members = ntohl(req->members);
	next.primary = ntohl(req->primary);
	if (next.members >> next.servers || next.primary >= next.servers)
		return -EINVAL;
	return next.epoch == s->now.epoch + 1 ? change(s, &next) : -EAGAIN;
}

static int ready(struct service *s, unsigned server, bool again, const struct config_request *req)
{
	struct config_answer next = s->now;
	if (server >= s->now.servers || !memchr(req->address, '\0', CONFIG_ADDRESS) ||
	    !rendezvous_is_address(req->address))
		return -EINVAL;
	next.boot += !next.alive && !again;
	next.alive |= 1u << server;
	strcpy(next.address[server], req->address);
	return change(s, &next);
}

static int answer(void *arg, unsigned number, const void *bytes, size_t len, void *rsp,
		  size_t rsp_len)
{
	const struct config_request *req = bytes;
	struct service *s = arg;
	int error = 0;
	if (len != sizeof(*req) || rsp_len != sizeof(s->now))
		return -EPROTO;
	switch (ntohl(req->op)) {
	case CONFIG_GET:
		break;
	case CONFIG_SET:
		error = set(s, req);
		break;
	case CONFIG_READY:
	case CONFIG_AGAIN:
		error = ready(s, number - config_number(0), ntohl(req->op) == CONFIG_AGAIN, req);
		break;
	default:
		error = -EPROTO;
	}
	struct config_answer out = s->now;
	/* Servers of an earlier service may have leases. */
	for (unsigned k = 0; k < out.servers && clock_ns() < s->start_ns + CONFIG_GRACE_NS; k++)
		out.alive |= (uint32_t)(*out.address[k] != 0) << k;
	config_answer_turn(&out);
	memcpy(rsp, &out, sizeof(out));
	return error;
}

static void departs(void *arg, unsigned number)
{
	struct service *s = arg;
	const unsigned server = number - config_number(0);
	if (server >= s->now.servers || !(s->now.alive >> server & 1))
		return;
	s->now.alive &= ~(1u << server);
	tell(s);
}

/* --- the command --- */

#define SERVICE(member) OPTION_FIELD(struct service, member)

static const struct option_row rows[] = {
	{"servers", "N", "of so many, if FILE is new; without it of two", SERVICE(servers), 2,
	 LIVE_SERVERS},
	{"listen", "A:P", "where servers and clients ask (=)", SERVICE(listen)},
	{"quiet", NULL, "do not tell who is a member now", SERVICE(quiet), .letter = 'q'},
	OPTION_END};

static const struct options options = {
	"members", "FILE [OPTION...]",
	"Keeps who the members of a live store of several servers are, and which of them clients "
	"ask. Its servers are started with tidemark serve --members; clients name its address in "
	"--server. FILE has what is kept; SIGTERM ends it. docs/live.md explains it.",
	rows, "0 stopped in order, 2 usage or bad input, 70 internal error"};

int members_main(int argc, char **argv)
{
	struct service s = {.listen = DEFAULT_LISTEN};
	struct rendezvous_server *control;
	int status = options_read(&options, &s, argc, argv);
	if (status >= 0)
		return status;
	if (argc - optind != 1)
		return fail(EXIT_USAGE, "members: expected one FILE (tidemark members --help)");
	s.path = argv[optind];
	s.start_ns = clock_ns();
	status = check_output("FILE", s.path, OUTPUT_IN_PLACE);
	if (!status)
		status = open_members(&s);
	if (status)
		return status;
	const struct rendezvous_server_setup setup = {.address = s.listen,
						      .text = CONFIG_MAGIC "\n",
						      .clients = TM_MAX_CLIENTS,
						      .reserved = s.now.servers,
						      .accept = answer,
						      .departs = departs,
						      .arg = &s};
	int error = signals_await();
	if (error)
		return fail(EXIT_INTERNAL, "members: %s", strerror(-error));
	error = rendezvous_listen(&control, &setup);
	if (error == -EINVAL)
		return fail(EXIT_USAGE, "--listen: \"%.80s\"; expected ADDRESS:PORT", s.listen);
	if (error)
		return fail(EXIT_USAGE, "--listen: %.80s: %s", s.listen, strerror(-error));
	if (!s.quiet) {
		printf("members of %u servers on %.*s:%u\n", s.now.servers,
		       (int)(strrchr(s.listen, ':') - s.listen), s.listen,
		       rendezvous_port(control));
		fflush(stdout);
	}
	signals_wait();
	rendezvous_stop(control);
	return 0;
}
