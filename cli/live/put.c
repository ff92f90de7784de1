/* SPDX-License-Identifier: BSD-3-Clause */
/* tidemark put, get, del: one operation on a live server. */
#include <errno.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <string.h>
#include <unistd.h>
#include "cli/cli.h"
#include "cli/options.h"
#include "core/live/rendezvous.h"
#include "scenarios/workload/session.h"

struct request {
	const char *server, *device;
	unsigned client;
};

/* What is done when there is a session; the exit status. */
typedef int operation(struct session *s, char **word);

static const struct option_row rows[] = {
	{"server", "A:P", "where it listens: 10.0.0.1:7471, [::1]:7471",
	 OPTION_FIELD(struct request, server)},
	{"device", "D", "this machine's RDMA device (the first; tide0: the soft RNIC)",
	 OPTION_FIELD(struct request, device)},
	{"client", "N", "be client number N (any that is free)",
	 OPTION_FIELD(struct request, client), 1, TM_MAX_CLIENTS},
	OPTION_END};

#define ABOUT "One operation on a store that `tidemark serve` serves. docs/live.md explains it."
#define STATUS                                                                                 \
	"0, 1 the operation failed or there is no such key, 2 usage or bad input, 77 no RDMA " \
	"device"

static int outcome(const char *what, const char *key, int error)
{
	if (error == -ENOENT)
		return fail(EXIT_BROKEN, "%s %.40s: not found", what, key);
	return error ? fail(EXIT_BROKEN, "%s %.40s: %s", what, key, strerror(-error)) : 0;
}

static int put_value(struct session *s, char **word)
{
	static char buffer[TM_MAX_VALUE + 1];
	const char *value = word[1];
	unsigned most = session_store(s)->params.max_vlen;
	size_t len = strlen(value);
	if (!strcmp(value, "-")) {
		len = fread(buffer, 1, sizeof(buffer), stdin);
		if (ferror(stdin))
			return fail(EXIT_USAGE, "standard input: %s", strerror(errno));
		value = buffer;
	}
	if (len > most)
		return fail(EXIT_USAGE, "put: a value of %s%zu bytes; the server takes at most %u",
			    len == sizeof(buffer) ? "at least " : "", len, most);
	return outcome("put", word[0], session_put(s, word[0], strlen(word[0]), value, len));
}

static int get(struct session *s, char **word)
{
	static char value[TM_MAX_VALUE];
	size_t len = 0;
	int error = session_get(s, word[0], strlen(word[0]), value, sizeof(value), &len);
	if (error)
		return outcome("get", word[0], error);
	fwrite(value, 1, len, stdout);
	if (isatty(STDOUT_FILENO))
		putchar('\n');
	return 0;
}

static int del(struct session *s, char **word)
{
	return outcome("del", word[0], session_del(s, word[0], strlen(word[0])));
}

static int run_operation(const struct options *o, int argc, char **argv, const char *expected,
			 int words, operation *fn)
{
	const char *name = o->command;
	struct request r = {0};
	struct ibv_context *verbs;
	struct session *s;
	char why[256];
	int status = options_read(o, &r, argc, argv);
	if (status >= 0)
		return status;
	if (argc - optind != words)
		return fail(EXIT_USAGE, "%s: expected %s (tidemark %s --help)", name, expected,
			    name);
	if (!r.server)
		return fail(EXIT_USAGE, "%s: expected --server ADDRESS:PORT", name);
	if (!rendezvous_is_address(r.server))
		return fail(EXIT_USAGE, "--server: \"%.80s\"; expected ADDRESS:PORT", r.server);
	size_t klen = strlen(argv[optind]);
	if (!klen || klen > TM_MAX_KEY)
		return fail(EXIT_USAGE, "%s: a key of %zu bytes; expected 1 to %d", name, klen,
			    TM_MAX_KEY);
	status = soft_rnic_if_asked(r.device);
	if (!status)
		status = open_device(r.device, &verbs);
	if (status)
		return status;
	int error = session_open(&s, verbs, r.server, r.client, why, sizeof(why));
	if (error) {
		status = fail(error == -EINVAL ? EXIT_USAGE : EXIT_BROKEN, "%s: %s", name, why);
	} else {
		status = fn(s, argv + optind);
		session_close(s);
	}
	ibv_close_device(verbs);
	return status;
}

int put_main(int argc, char **argv)
{
	static const struct options options = {
		"put", "--server ADDRESS:PORT [OPTION...] KEY VALUE",
		ABOUT " VALUE may be -: standard input is the value.", rows, STATUS};
	return run_operation(&options, argc, argv, "KEY VALUE", 2, put_value);
}

int get_main(int argc, char **argv)
{
	static const struct options options = {
		"get", "--server ADDRESS:PORT [OPTION...] KEY",
		ABOUT " The value is written as it is, with a newline if it goes to a terminal.",
		rows, STATUS};
	return run_operation(&options, argc, argv, "KEY", 1, get);
}

int del_main(int argc, char **argv)
{
	static const struct options options = {"del", "--server ADDRESS:PORT [OPTION...] KEY",
					       ABOUT, rows, STATUS};
	return run_operation(&options, argc, argv, "KEY", 1, del);
}
