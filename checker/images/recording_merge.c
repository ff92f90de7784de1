/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See recording_merge.h.
 *
 * All messages are sorted, so that what left and what came of one packet, or of one direction of a
 * connection, stand side by side. What a record has to wait for is kept with it. The order is made
 * while it is walked: first to see whether there is one.
 */
#include "checker/images/recording_merge.h"
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include "checker/images/recording_read.h"
#include "core/array.h"
#include "core/record/format.h"
#include "core/record/message.h"

/* Numbers that are of one machine. A process has the number of its first thread. */
enum number_kind { NUMBER_THREAD, NUMBER_QP, NUMBER_CLIENT, NUMBER_KINDS };

struct number {
	uint64_t was, becomes;
	uint32_t machine;
	enum number_kind kind;
};

/* Names a packet, or a direction of a TCP connection. No padding: it is compared as bytes. */
struct channel {
	uint8_t from[20], to[20];
	uint32_t socket; /* it is a connection; else a packet's: */
	uint32_t qp;
	uint64_t packet;
};

struct message {
	struct channel channel;
	uint32_t machine;
	bool in;
	size_t record;
	uint64_t bytes; /* of a connection: where it begins, or how much had come */
};

/* This record comes after that one of another machine. */
struct need {
	size_t record, after;
	uint32_t of;
};

struct machine {
	struct merge_recording recording;
	const struct record_head *head;
	const struct record **record;
	size_t records, record_room;
	struct need *need; /* by record */
	size_t needs, need_room;
	uint32_t sources, source_base; /* its places in programs: their most number; added to it */
	const struct record *file[RECORD_FILES]; /* its first record: the name */
	uint32_t files;
	uint32_t group; /* machines that are connected have the same */
	/* While the order is walked. */
	size_t next, next_need;
	uint32_t becomes[RECORD_FILES]; /* numbers of files */
};

struct merge {
	struct machine machine[MERGE_MACHINES];
	unsigned machines;
	struct message *message;
	size_t messages, message_room;
	struct number *number;
	size_t numbers, number_room;
	size_t between; /* messages from machine to machine */
	uint32_t files; /* numbered until now */
	char *why;
	size_t why_len;
};

__attribute__((format(printf, 2, 3))) static int wrong(const struct merge *m, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(m->why, m->why_len, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static bool is_message(const struct record *r)
{
	return r->kind >= RECORD_PACKET_OUT && r->kind <= RECORD_SOCKET_IN;
}

/* --- numbers --- */

static bool is_announced(const struct record *r)
{
	return r->kind == RECORD_CALL || r->kind == RECORD_RETURN;
}

static enum number_kind kind_of_thread(const struct record *r)
{
	return r->thread & RECORD_RNIC ? NUMBER_QP : NUMBER_THREAD;
}

static int add_number(struct merge *m, unsigned machine, enum number_kind kind, uint64_t number)
{
	/* The same as one before is common, and need not be kept again. */
	for (size_t i = m->numbers; i && i + 4 > m->numbers; i--)
		if (m->number[i - 1].was == number && m->number[i - 1].kind == kind &&
		    m->number[i - 1].machine == machine)
			return 0;
	if (!ARRAY_RESERVE(m->number, m->numbers, 1, m->number_room))
		return -ENOMEM;
	m->number[m->numbers++] = (struct number){.was = number, .machine = machine, .kind = kind};
	return 0;
}

static int add_numbers(struct merge *m, unsigned machine, const struct record *r)
{
	int error = add_number(m, machine, NUMBER_THREAD, r->process);
	if (!error)
		error = add_number(m, machine, kind_of_thread(r), r->thread & ~RECORD_RNIC);
	if (!error && is_announced(r))
		error = add_number(m, machine, NUMBER_CLIENT, r->off);
	return error;
}

static int by_number(const void *a, const void *b)
{
	const struct number *x = a, *y = b;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->was != y->was)
		return x->was < y->was ? -1 : 1;
	return (x->machine > y->machine) - (x->machine < y->machine);
}

/* The first machine that has a number keeps it; others get the next ones above all. */
static int settle_numbers(struct merge *m)
{
	uint64_t most[NUMBER_KINDS] = {0};
	size_t kept = 0;
	if (m->numbers)
		qsort(m->number, m->numbers, sizeof(*m->number), by_number);
	for (size_t i = 0; i < m->numbers; i++)
		if (!kept || by_number(&m->number[kept - 1], &m->number[i]) != 0)
			m->number[kept++] = m->number[i];
	m->numbers = kept;
	for (size_t i = 0; i < kept; i++)
		most[m->number[i].kind] = m->number[i].was;
	for (size_t i = 0; i < kept; i++) {
		struct number *n = &m->number[i];
		bool taken = i && n[-1].kind == n->kind && n[-1].was == n->was && n->was;
		n->becomes = taken ? ++most[n->kind] : n->was;
		if (n->becomes >= RECORD_RNIC && n->kind != NUMBER_CLIENT)
			return wrong(m, "%s: a number of a thread or queue pair is too large",
				     m->machine[n->machine].recording.name);
	}
	return 0;
}

static uint64_t number_becomes(const struct merge *m, unsigned machine, enum number_kind kind,
			       uint64_t number)
{
	struct number key = {.was = number, .machine = machine, .kind = kind};
	const struct number *found = bsearch(&key, m->number, m->numbers, sizeof(key), by_number);
	return found ? found->becomes : number;
}

/* --- reading --- */

static void put_address(uint8_t end[20], uint32_t address)
{
	end[10] = end[11] = 0xff;
	for (unsigned i = 0; i < 4; i++)
		end[12 + i] = (uint8_t)(address >> 8 * (3 - i));
}

static void put_end(uint8_t to[20], const struct record_end *end)
{
	memcpy(to, end->address, sizeof(end->address));
	memcpy(to + sizeof(end->address), end->port, sizeof(end->port));
}

static int take_message(struct merge *m, unsigned machine, const struct record *r)
{
	struct machine *of = &m->machine[machine];
	struct message new = {.machine = machine, .record = of->records};
	uint8_t own[20] = {0}, other[20] = {0};
	new.in = r->kind == RECORD_PACKET_IN || r->kind == RECORD_SOCKET_IN;
	if (r->kind == RECORD_PACKET_IN || r->kind == RECORD_PACKET_OUT) {
		put_address(own, r->source);
		put_address(other, r->file);
		new.channel.qp = r->message;
		new.channel.packet = r->off;
	} else {
		const struct record_connection *c = (const void *)r->payload;
		if (r->bytes < sizeof(*r) + sizeof(*c))
			return wrong(m, "%s: a connection without its ends", of->recording.name);
		put_end(own, &c->own);
		put_end(other, &c->other);
		new.channel.socket = 1;
		new.bytes = r->off;
	}
	memcpy(new.channel.from, new.in ? other : own, sizeof(own));
	memcpy(new.channel.to, new.in ? own : other, sizeof(own));
	if (!ARRAY_RESERVE(m->message, m->messages, 1, m->message_room))
		return -ENOMEM;
	m->message[m->messages++] = new;
	return 0;
}

static int take_file(struct merge *m, struct machine *of, const struct record *r)
{
	if (r->file > of->files || r->file >= RECORD_FILES || r->len > r->bytes - sizeof(*r))
		return wrong(m, "%s: file %u; expected at most %u", of->recording.name, r->file,
			     of->files);
	if (r->file == of->files)
		of->file[of->files++] = r;
	return 0;
}

static int take_record(struct merge *m, unsigned machine, const struct record *r)
{
	struct machine *of = &m->machine[machine];
	int error = 0;
	if (is_message(r))
		error = take_message(m, machine, r);
	else
		error = add_numbers(m, machine, r);
	if (!error && r->kind == RECORD_FILE)
		error = take_file(m, of, r);
	if (r->kind == RECORD_SOURCE && r->source > of->sources)
		of->sources = r->source;
	if (error)
		return error;
	if (!ARRAY_RESERVE(of->record, of->records, 1, of->record_room))
		return -ENOMEM;
	of->record[of->records++] = r;
	return 0;
}

static int take_recording(struct merge *m, unsigned machine)
{
	struct machine *of = &m->machine[machine];
	struct input_error error = {0};
	const struct merge_recording *from = &of->recording;
	of->head = recording_head(from->bytes, from->len, &error);
	if (!of->head)
		return wrong(m, "%s: %s", from->name, error.message);
	if (of->head->full)
		return wrong(m,
			     "%s: it was full, and what came later is missing; expected a whole "
			     "recording (--room)",
			     from->name);
	int failed = 0;
	for (uint64_t at = RECORD_HEAD; !failed && at < of->head->used;) {
		const struct record *r = recording_at(from->bytes, of->head->used, at);
		if (!r)
			return wrong(m, "%s: the record at byte %llu is not whole", from->name,
				     (unsigned long long)at);
		failed = take_record(m, machine, r);
		at += r->bytes;
	}
	return failed;
}

/* --- messages --- */

static int by_channel(const void *a, const void *b)
{
	const struct message *x = a, *y = b;
	int order = memcmp(&x->channel, &y->channel, sizeof(x->channel));
	if (order)
		return order;
	if (x->in != y->in)
		return x->in ? 1 : -1;
	if (x->machine != y->machine)
		return x->machine < y->machine ? -1 : 1;
	return (x->record > y->record) - (x->record < y->record);
}

struct address_text {
	char text[20];
};

static struct address_text show_address(const uint8_t end[20])
{
	struct address_text shown;
	snprintf(shown.text, sizeof(shown.text), "%u.%u.%u.%u", end[12], end[13], end[14], end[15]);
	return shown;
}

/* An end of which a machine is known by a packet that left there or came there. */
struct own_address {
	uint8_t end[20];
	uint32_t machine;
};

static int by_address(const void *a, const void *b)
{
	const struct own_address *x = a, *y = b;
	int order = memcmp(x->end, y->end, sizeof(x->end));
	return order ? order : (x->machine > y->machine) - (x->machine < y->machine);
}

static int by_address_alone(const void *a, const void *b)
{
	return memcmp(((const struct own_address *)a)->end, ((const struct own_address *)b)->end,
		      sizeof(((const struct own_address *)a)->end));
}

/* Two recordings of one address are of one machine, or one of them twice. And from an address that
 * none has no packet may come: with that machine's recording a part of the order is missing. */
static int check_addresses(struct merge *m)
{
	struct own_address *own = calloc(m->messages + 1, sizeof(*own));
	size_t n = 0;
	int error = own ? 0 : -ENOMEM;
	for (size_t i = 0; own && i < m->messages; i++) {
		const struct message *msg = &m->message[i];
		if (msg->channel.socket)
			continue;
		own[n].machine = msg->machine;
		memcpy(own[n++].end, msg->in ? msg->channel.to : msg->channel.from,
		       sizeof(own->end));
	}
	if (n)
		qsort(own, n, sizeof(*own), by_address);
	for (size_t i = 1; i < n && !error; i++)
		if (!by_address_alone(&own[i - 1], &own[i]) && own[i - 1].machine != own[i].machine)
			error = wrong(m,
				      "%s and %s are both of %s: expected one recording of each "
				      "machine (--join)",
				      m->machine[own[i - 1].machine].recording.name,
				      m->machine[own[i].machine].recording.name,
				      show_address(own[i].end).text);
	for (size_t i = 0; i < m->messages && !error; i++) {
		const struct message *msg = &m->message[i];
		struct own_address key = {.machine = 0};
		memcpy(key.end, msg->channel.from, sizeof(key.end));
		if (msg->in && !msg->channel.socket &&
		    !bsearch(&key, own, n, sizeof(*own), by_address_alone))
			error = wrong(m,
				      "%s: packets came from %s, and none of the recordings is of "
				      "that machine",
				      m->machine[msg->machine].recording.name,
				      show_address(key.end).text);
	}
	free(own);
	return error;
}

static int add_need(struct merge *m, const struct message *in, const struct message *out)
{
	struct machine *of = &m->machine[in->machine];
	if (!ARRAY_RESERVE(of->need, of->needs, 1, of->need_room))
		return -ENOMEM;
	of->need[of->needs++] = (struct need){
		.record = in->record, .after = out->record, .of = out->machine};
	m->between++;
	uint32_t gone = of->group, into = m->machine[out->machine].group;
	for (unsigned i = 0; i < m->machines; i++)
		if (m->machine[i].group == gone)
			m->machine[i].group = into;
	return 0;
}

/* All that came on a channel to one machine, in[0..ins), from out[0..outs) of another. */
static int match(struct merge *m, const struct message *out, size_t outs, const struct message *in,
		 size_t ins)
{
	size_t at = 0; /* so many have left before */
	int error = 0;
	for (size_t i = 0; i < ins && !error; i++) {
		if (!in->channel.socket)
			at = i < outs ? i + 1 : outs;
		else
			while (at < outs && out[at].bytes < in[i].bytes)
				at++;
		if (at)
			error = add_need(m, &in[i], &out[at - 1]);
	}
	return error;
}

/* One channel: msg[0..outs) have left, and msg[outs..n) have come. */
static int match_channel(struct merge *m, const struct message *msg, size_t outs, size_t n)
{
	int error = 0;
	for (size_t in = outs, end; in < n && !error; in = end) {
		for (end = in; end < n && msg[end].machine == msg[in].machine;)
			end++;
		size_t own = 0, others = 0;
		while (own < outs && msg[own].machine != msg[in].machine)
			own++;
		if (own < outs) /* between processes of one machine */
			continue;
		while (others < outs && msg[others].machine == msg->machine)
			others++;
		if (!others && !msg->channel.socket)
			return wrong(m,
				     "%s: a packet came from %s, and that machine's recording does "
				     "not have it: expected whole recordings of one run",
				     m->machine[msg[in].machine].recording.name,
				     show_address(msg->channel.from).text);
		error = match(m, msg, others, msg + in, end - in);
	}
	return error;
}

static int by_record(const void *a, const void *b)
{
	const struct need *x = a, *y = b;
	return (x->record > y->record) - (x->record < y->record);
}

static int match_messages(struct merge *m)
{
	int error = 0;
	if (m->messages)
		qsort(m->message, m->messages, sizeof(*m->message), by_channel);
	for (size_t i = 0, in, end; i < m->messages && !error; i = end) {
		for (in = i; in < m->messages && !m->message[in].in &&
			     !memcmp(&m->message[in].channel, &m->message[i].channel,
				     sizeof(struct channel));)
			in++;
		for (end = in; end < m->messages && m->message[end].in &&
			       !memcmp(&m->message[end].channel, &m->message[i].channel,
				       sizeof(struct channel));)
			end++;
		error = match_channel(m, m->message + i, in - i, end - i);
	}
	for (unsigned i = 0; i < m->machines && !error; i++) {
		struct machine *of = &m->machine[i];
		if (of->needs)
			qsort(of->need, of->needs, sizeof(*of->need), by_record);
		if (of->group != m->machine[0].group)
			error = wrong(m,
				      "%s: no message goes from or to the other machines: expected "
				      "recordings of one run, with TIDEMARK_LINK=udp",
				      of->recording.name);
	}
	return error;
}

/* --- the order --- */

/* Does its next record wait for another machine's? */
static bool waits(const struct merge *m, const struct machine *of)
{
	if (of->next_need == of->needs || of->need[of->next_need].record != of->next)
		return false;
	const struct need *need = &of->need[of->next_need];
	return m->machine[need->of].next <= need->after;
}

static void begin_walk(struct merge *m)
{
	for (unsigned i = 0; i < m->machines; i++)
		m->machine[i].next = m->machine[i].next_need = 0;
}

/* The next record, and whose; NULL: the end, or all that are left wait. */
static const struct record *step(struct merge *m, unsigned *machine)
{
	for (unsigned i = 0; i < m->machines; i++) {
		struct machine *of = &m->machine[i];
		if (of->next == of->records || waits(m, of))
			continue;
		if (of->next_need < of->needs && of->need[of->next_need].record == of->next)
			of->next_need++;
		*machine = i;
		return of->record[of->next++];
	}
	return NULL;
}

/* Files get their numbers by the way. */
static int check_order(struct merge *m)
{
	unsigned machine;
	const struct record *r;
	begin_walk(m);
	while ((r = step(m, &machine))) {
		struct machine *of = &m->machine[machine];
		if (r->kind == RECORD_FILE && r == of->file[r->file])
			of->becomes[r->file] = m->files++;
	}
	for (unsigned i = 0; i < m->machines; i++) {
		const struct machine *of = &m->machine[i];
		if (of->next < of->records)
			return wrong(m,
				     "%s and %s each have something come before the other sends "
				     "it: these are not recordings of one run",
				     of->recording.name,
				     m->machine[of->need[of->next_need].of].recording.name);
	}
	return 0;
}

int merge_open(struct merge **out, const struct merge_recording *recording, unsigned n, char *why,
	       size_t len)
{
	struct merge *m = calloc(1, sizeof(*m));
	int error = 0;
	uint64_t sources = 0, files = 0;
	*out = m;
	if (!m)
		return -ENOMEM;
	m->why = why;
	m->why_len = len;
	m->machines = n;
	for (unsigned i = 0; i < n && !error; i++) {
		m->machine[i].recording = recording[i];
		m->machine[i].group = i;
		m->machine[i].source_base = (uint32_t)sources;
		error = take_recording(m, i);
		if (error)
			break;
		sources += m->machine[i].sources;
		files += m->machine[i].files;
		if (sources > UINT32_MAX || files > RECORD_FILES)
			error = wrong(m, "%s: with it there are more than %d files of PM",
				      recording[i].name, RECORD_FILES);
	}
	if (!error)
		error = settle_numbers(m);
	if (!error)
		error = check_addresses(m);
	if (!error)
		error = match_messages(m);
	return error ? error : check_order(m);
}

void merge_close(struct merge *m)
{
	for (unsigned i = 0; m && i < m->machines; i++) {
		free(m->machine[i].record);
		free(m->machine[i].need);
	}
	if (m) {
		free(m->message);
		free(m->number);
	}
	free(m);
}

size_t merge_messages(const struct merge *merge)
{
	return merge->between;
}

/* --- writing --- */

static bool same_name(const struct record *a, const struct record *b)
{
	return a->len == b->len && !memcmp(a->payload, b->payload, a->len);
}

/* Has another machine a file of this name? */
static bool is_shared(const struct merge *m, unsigned machine, const struct record *file)
{
	for (unsigned i = 0; i < m->machines; i++)
		for (unsigned k = 0; i != machine && k < m->machine[i].files; k++)
			if (same_name(m->machine[i].file[k], file))
				return true;
	return false;
}

/* Also the numbers of records that have no file are asked for. */
static uint32_t file_becomes(const struct machine *of, uint32_t file)
{
	return file < of->files ? of->becomes[file] : file;
}

struct output {
	FILE *out;	   /* NULL: it is only to be known what it becomes */
	uint64_t used;	   /* bytes */
	XXH3_state_t *sum; /* of them */
};

static void put_bytes(struct output *o, const void *bytes, size_t len)
{
	if (o->out)
		fwrite(bytes, 1, len, o->out);
	else
		XXH3_64bits_update(o->sum, bytes, len);
}

static void put(struct output *o, const struct record *head, const void *payload, uint32_t len)
{
	static const char zeros[8];
	struct record r;
	memcpy(&r, head, sizeof(r));
	r.bytes = (uint32_t)(sizeof(r) + (len + 7ull) / 8 * 8);
	o->used += r.bytes;
	put_bytes(o, &r, sizeof(r));
	put_bytes(o, payload, len);
	put_bytes(o, zeros, r.bytes - sizeof(r) - len);
}

static void put_record(struct merge *m, struct output *o, unsigned machine,
		       const struct record *was)
{
	struct machine *of = &m->machine[machine];
	uint32_t len = was->bytes - (uint32_t)sizeof(*was);
	struct record r;
	char name[RECORD_HEAD];
	memcpy(&r, was, sizeof(r));
	if (r.kind == RECORD_UNFINISHED || r.kind == RECORD_SUM || is_message(was))
		return;
	r.ns = 0;
	r.file = file_becomes(of, was->file);
	r.source = was->source ? was->source + of->source_base : 0;
	r.process = (uint32_t)number_becomes(m, machine, NUMBER_THREAD, was->process);
	r.thread = (uint32_t)number_becomes(m, machine, kind_of_thread(was),
					    was->thread & ~RECORD_RNIC) |
		   (was->thread & RECORD_RNIC);
	if (is_announced(was))
		r.off = number_becomes(m, machine, NUMBER_CLIENT, was->off);
	if (r.kind != RECORD_FILE || !is_shared(m, machine, was)) {
		put(o, &r, was->payload, len);
		return;
	}
	int n = snprintf(name, sizeof(name), "%s:%.*s", of->recording.name, (int)was->len,
			 (const char *)was->payload);
	r.len = n < (int)sizeof(name) ? (uint32_t)n : (uint32_t)sizeof(name) - 1;
	put(o, &r, name, r.len);
}

/* What is said of all of it. */
static struct record_head make_head(const struct merge *m, const struct output *o)
{
	struct record_head head = {.magic = RECORD_MAGIC,
				   .used = o->used,
				   .room = o->used,
				   .allocated = o->used,
				   .summed = RECORD_HEAD,
				   .sum = XXH3_64bits_digest(o->sum),
				   .ended = 1};
	for (unsigned i = 0; i < m->machines; i++) {
		const struct machine *of = &m->machine[i];
		const struct record_head *was = of->head;
		if (was->stores > head.stores)
			head.stores = was->stores;
		if (!head.status)
			head.status = was->status;
		head.ended &= was->ended;
		head.sources += of->sources;
		head.exact += was->exact;
		head.told += was->told;
		for (unsigned k = 0; k < of->files; k++) {
			head.file[of->becomes[k]] = was->file[k];
			head.unseen[of->becomes[k]] = was->unseen[k];
		}
		head.files += of->files;
	}
	return head;
}

static void put_records(struct merge *m, struct output *o)
{
	const struct record *r;
	unsigned machine;
	begin_walk(m);
	while ((r = step(m, &machine)))
		put_record(m, o, machine, r);
}

int merge_write(FILE *out, const void *merge)
{
	/* The place in the order is its only state, and begins anew. */
	struct merge *m = (struct merge *)(uintptr_t)merge;
	struct output o = {.used = RECORD_HEAD, .sum = XXH3_createState()};
	char page[RECORD_HEAD] = "";
	if (!o.sum)
		return -ENOMEM;
	XXH3_64bits_reset(o.sum);
	put_records(m, &o);
	const struct record_head head = make_head(m, &o);
	XXH3_freeState(o.sum);
	memcpy(page, &head, sizeof(head));
	fwrite(page, sizeof(page), 1, out);
	o.out = out;
	put_records(m, &o);
	return ferror(out) ? -EIO : 0;
}
