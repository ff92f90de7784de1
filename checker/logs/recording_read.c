/* SPDX-License-Identifier: BSD-3-Clause */
/* See recording_read.h. */
#include "checker/logs/recording_read.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include "checker/logs/printed.h"
#include "checker/logs/symbol.h"
#include "checker/world/where.h"
#include "core/array.h"

#define SOURCES (1u << 20)
#define NO_CALL SIZE_MAX

struct reader {
	struct pm_log *log;
	struct input_error *error;
	const struct record_head *head;
	struct where *where;
	uint32_t *source; /* by the recording's number */
	uint32_t sources;
	/* By process: events before the lines that it has taken last. */
	struct lines {
		uint32_t process;
		size_t event;
	} * lines;
	size_t line_takers, line_room;
	/* Answers that have no place yet. */
	struct answer {
		const struct record *record;
		size_t call; /* of pm_log.call; NO_CALL: none */
	} * answer;
	size_t answers, answer_room;
	struct printed printed;
	size_t batches; /* of lines */
	/* Who prints operations: to a file, to one of a process's sockets, or a client by its
	 * number. */
	struct printer {
		uint64_t client, socket;
		uint32_t process;
		bool named;
		size_t batch; /* the latest that had lines of it that count */
		size_t from;  /* the event from which on what that one tells of may have begun */
		size_t at;    /* ... at which it was begun to be taken */
	} * printer;
	size_t printers, printer_room, sockets;
	uint64_t at;	 /* of the record */
	unsigned number; /* of the record, from 1 */
};

__attribute__((format(printf, 2, 3))) static int wrong(const struct reader *r, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int error = input_wrong(r->error, r->number, 0, fmt, ap);
	va_end(ap);
	return error;
}

bool recording_begins(const char *bytes, size_t len)
{
	return len >= sizeof(RECORD_NAME) - 1 &&
	       !memcmp(bytes, RECORD_NAME, sizeof(RECORD_NAME) - 1);
}

/* What older formats have cannot be read as this one: format 5 had stores that were told of without
 * what others had stored to their lines before. */
static int check_format(const struct reader *r)
{
	const char *magic = r->head->magic;
	size_t at = sizeof(RECORD_NAME) - 1;
	if (!memcmp(magic, RECORD_MAGIC, sizeof(RECORD_MAGIC)))
		return 0;
	int digits = (int)strspn(magic + at, "0123456789");
	return wrong(r,
		     "a recording of format %.*s, and expected format %.*s: record the "
		     "program once more",
		     digits, magic + at, (int)strcspn(&RECORD_MAGIC[at], "\n"), &RECORD_MAGIC[at]);
}

/* --- records --- */

static int take_file(struct reader *r, const struct record *rec)
{
	char name[RECORD_HEAD];
	if (!rec->len || rec->len >= sizeof(name) || memchr(rec->payload, 0, rec->len))
		return wrong(r, "a file without a name");
	memcpy(name, rec->payload, rec->len);
	name[rec->len] = 0;
	if (!rec->off || rec->off > PM_FILE_MAX || rec->off % PM_LINE)
		return wrong(r, "%s: expected a size that is a multiple of %d bytes",
			     text_show(name).text, PM_LINE);
	if (rec->file < r->log->files) {
		/* It has become longer. */
		struct pm_file *file = &r->log->file[rec->file];
		if (rec->off <= file->len)
			return 0;
		file->len = file->size = rec->off;
		return pm_file_room(file);
	}
	if (rec->file != r->log->files)
		return wrong(r, "file %u; expected %u", rec->file, r->log->files);
	for (unsigned i = 0; i < r->log->files; i++)
		if (!strcmp(r->log->file[i].name, name))
			return wrong(r, "%s twice", text_show(name).text);
	int file = pm_log_file(r->log, name, rec->off);
	if (file < 0)
		return file == -ENOSPC ? wrong(r, "more than %d files", PM_FILES) : file;
	return pm_file_room(&r->log->file[file]);
}

/* One place "PATH+0xOFFSET" as "put (store.c:12)"; what is not known stays as it is. 0 or -ENOMEM.
 */
static int name_place(const struct reader *r, char *place, char *out, size_t n)
{
	struct where *w = r->where;
	unsigned long long offset;
	char *plus = strrchr(place, '+'), line[200], function[280];
	int error = 0, number;
	snprintf(out, n, "%s", place);
	if (!plus || sscanf(plus, "+0x%llx", &offset) != 1)
		return 0;
	*plus = 0;
	uintptr_t pc = where_in_file(w, place, offset);
	const char *slash = strrchr(place, '/'), *path = where_source(w, pc, &number);
	const char *inlined = where_inlined(w, pc);
	symbol_print(inlined ? inlined : where_function(w, pc), function, sizeof(function));
	where_print(w, pc, line, sizeof(line));
	if (path) {
		snprintf(out, n, "%s (%s)", *function ? function : "?", line);
		error = pm_log_add_place(r->log, out, path, place);
	} else if (*function) {
		snprintf(out, n, "%s (%s)", function, slash ? slash + 1 : place);
	}
	return error;
}

/* Several, with ';' between them. 0 or -ENOMEM. */
static int name_places(const struct reader *r, const char *places, char *out, size_t n)
{
	size_t at = 0;
	int error = 0;
	out[0] = 0;
	for (size_t len; *places && at < n && !error; places += len + (places[len] == ';')) {
		char place[600], words[900];
		len = strcspn(places, ";");
		snprintf(place, sizeof(place), "%.*s", (int)len, places);
		error = name_place(r, place, words, sizeof(words));
		at += (size_t)snprintf(out + at, n - at, "%s%s", at ? ";" : "", words);
	}
	return error;
}

static int take_source(struct reader *r, const struct record *rec)
{
	char places[2048], words[2048];
	if (!rec->source || rec->source > SOURCES || rec->len >= sizeof(places) ||
	    memchr(rec->payload, 0, rec->len))
		return wrong(r, "a place in a program without a number or a name");
	const uint32_t had = r->sources;
	if (!ARRAY_RESERVE(r->source, 0, (size_t)rec->source + 1, r->sources))
		return -ENOMEM;
	memset(r->source + had, 0, (r->sources - had) * sizeof(*r->source));
	memcpy(places, rec->payload, rec->len);
	places[rec->len] = 0;
	int error = name_places(r, places, words, sizeof(words));
	r->source[rec->source] = pm_log_source(r->log, words, strlen(words));
	return error;
}

static const uint8_t kind_of[] = {
	[RECORD_STORE] = PM_STORE,	[RECORD_EXACT] = PM_STORE,
	[RECORD_LAND] = PM_LAND,	[RECORD_FLUSH] = PM_FLUSH,
	[RECORD_FENCE] = PM_FENCE,	[RECORD_SYNC] = PM_SYNC,
	[RECORD_COMMIT] = PM_COMMIT,	[RECORD_PUSH] = PM_PUSH,
	[RECORD_ACK] = PM_ACK,		[RECORD_MARK] = PM_MARK,
	[RECORD_RETURN] = PM_ACK,	[RECORD_LAND_SEND] = PM_LAND,
	[RECORD_LAND_WORD] = PM_LAND,	[RECORD_RDMA_FLUSH] = PM_RDMA_FLUSH,
	[RECORD_STORE_NT] = PM_STORE,	[RECORD_FLUSH_NT] = PM_FLUSH,
	[RECORD_CALL_STORE] = PM_STORE, [RECORD_PRINTED] = PM_ACK,
};

/* Do bytes that were written follow? */
static bool writes(const struct record *rec)
{
	switch ((enum record_kind)rec->kind) {
	case RECORD_STORE:
	case RECORD_STORE_NT:
	case RECORD_EXACT:
	case RECORD_CALL_STORE:
	case RECORD_LAND:
	case RECORD_LAND_SEND:
	case RECORD_LAND_WORD:
		return true;
	default:
		return false;
	}
}

/* Is it of a range in a file? */
static bool has_range(const struct record *rec)
{
	return writes(rec) || kind_of[rec->kind] == PM_FLUSH || rec->kind == RECORD_SYNC ||
	       rec->kind == RECORD_COMMIT || (rec->kind == RECORD_RDMA_FLUSH && rec->len);
}

/* --- what clients announce --- */

/* Of this process; a new one begins here. NULL without memory. */
static struct lines *lines_of(struct reader *r, uint32_t process)
{
	for (size_t i = 0; i < r->line_takers; i++)
		if (r->lines[i].process == process)
			return &r->lines[i];
	if (!ARRAY_RESERVE(r->lines, r->line_takers, 1, r->line_room))
		return NULL;
	r->lines[r->line_takers] = (struct lines){process, r->log->events};
	return &r->lines[r->line_takers++];
}

static int take_lines(struct reader *r, const struct record *rec)
{
	struct lines *l = lines_of(r, rec->process);
	r->batches++;
	if (l)
		l->event = r->log->events;
	return l ? 0 : -ENOMEM;
}

/* Calls begin in their order, and as early as they can have. */
static int find_event(struct reader *r, const struct record *rec, size_t *event)
{
	const struct pm_log *log = r->log;
	*event = log->events;
	if (rec->kind != RECORD_CALL || !rec->message)
		return 0;
	const struct lines *l = lines_of(r, rec->process);
	if (!l)
		return -ENOMEM;
	*event = l->event;
	for (size_t i = log->calls; i--;) {
		if (log->call[i].returns)
			continue;
		*event = *event < log->call[i].event ? log->call[i].event : *event;
		break;
	}
	return 0;
}

static int take_call(struct reader *r, const struct record *rec)
{
	const char *words = (const char *)rec->payload;
	size_t event;
	int error = find_event(r, rec, &event);
	if (!error)
		error = pm_log_add_call(r->log, rec->off, rec->kind == RECORD_RETURN, words,
					strnlen(words, rec->len), 0);
	if (!error)
		r->log->call[r->log->calls - 1].event = event;
	return error;
}

/* What is not recorded. */
static int take_unseen(struct reader *r, const struct record *rec)
{
	const char *name = (const char *)rec->payload;
	const struct pm_unseen unseen = {
		.kind = (enum pm_unseen_kind)(rec->kind - RECORD_UNSEEN_FLUSH),
		.event = r->log->events,
		.times = rec->off,
		.name = pm_log_source(r->log, name, strnlen(name, rec->len)),
		.source = rec->source < r->sources ? r->source[rec->source] : 0};
	return pm_log_add_unseen(r->log, &unseen);
}

static int take_event(struct reader *r, const struct record *rec)
{
	struct pm_log *log = r->log;
	bool ranges = has_range(rec);
	struct pm_event e = {.off = rec->off,
			     .ns = rec->ns,
			     .len = rec->len,
			     .thread = rec->thread,
			     /* An answer is a client's, in whichever process it was noticed. */
			     .process = rec->kind == RECORD_RETURN || rec->kind == RECORD_PRINTED
						? 0
						: rec->process,
			     .message = kind_of[rec->kind] == PM_LAND ? rec->message : 0,
			     .kind = kind_of[rec->kind],
			     .file = ranges ? (uint8_t)rec->file : 0,
			     .noticed = rec->kind == RECORD_STORE || rec->kind == RECORD_STORE_NT,
			     .together = rec->kind == RECORD_CALL_STORE,
			     .nt = rec->kind == RECORD_STORE_NT || rec->kind == RECORD_FLUSH_NT,
			     .send = rec->kind == RECORD_LAND_SEND,
			     .word = rec->kind == RECORD_LAND_WORD,
			     .source = rec->source < r->sources ? r->source[rec->source] : 0};
	if (ranges &&
	    (rec->file >= log->files || !rec->len || rec->off > log->file[rec->file].len ||
	     rec->len > log->file[rec->file].len - rec->off))
		return wrong(r, "the %s of %u bytes at 0x%llx is not within its file",
			     pm_event_name[e.kind], rec->len, (unsigned long long)rec->off);
	if (rec->kind == RECORD_MARK)
		e.source = pm_log_source(log, (const char *)rec->payload, rec->len);
	return pm_log_add(log, &e, writes(rec) ? rec->payload : NULL);
}

static int place_answers(struct reader *r)
{
	int error = 0;
	for (size_t i = 0; i < r->answers && !error; i++) {
		if (r->answer[i].call != NO_CALL)
			r->log->call[r->answer[i].call].event = r->log->events;
		error = take_event(r, r->answer[i].record);
	}
	r->answers = 0;
	return error;
}

/* An answer comes after what was stored before it. A process that does not see all PM cannot have
 * looked for that: then the answer waits for the next event before which others have looked. */
static int take_answer(struct reader *r, const struct record *rec)
{
	if (!ARRAY_RESERVE(r->answer, r->answers, 1, r->answer_room))
		return -ENOMEM;
	r->answer[r->answers++] = (struct answer){rec, r->log->calls};
	int error = take_call(r, rec);
	return error || rec->message ? error : place_answers(r);
}

/* Whose operation it is, which may begin with a number: then *operation is what follows. `early` is
 * that of its call. NULL without memory. */
static struct printer *printer_of(struct reader *r, const struct record *rec, char **operation,
				  uint8_t *early)
{
	char *end;
	struct printer p = {.client = strtoull(*operation, &end, 10), .batch = SIZE_MAX};
	p.named = end > *operation && *end == ' ';
	if (p.named)
		*operation = end + 1;
	else
		p = (struct printer){.socket = rec->off,
				     .process = rec->off ? rec->process : 0,
				     .batch = SIZE_MAX};
	*early = PM_AFTER_ANSWER;
	for (struct printer *o = r->printer; o < r->printer + r->printers; o++)
		if (p.named ? o->named && o->client == p.client
			    : !o->named && o->socket == p.socket && o->process == p.process)
			return o;
	if (!ARRAY_RESERVE(r->printer, r->printers, 1, r->printer_room))
		return NULL;
	if (p.socket)
		p.client = ++r->sockets;
	*early = PM_AT_ONCE;
	r->printer[r->printers] = p;
	return &r->printer[r->printers++];
}

/* What is taken now may have begun as soon as the lines of the same printer were there that were
 * taken before. */
static int take_moment(struct reader *r, const struct record *rec, struct printer *p)
{
	const struct lines *l = rec->off ? NULL : lines_of(r, rec->process);
	if (!rec->off && !l)
		return -ENOMEM;
	if (l && p->batch == r->batches)
		return 0;
	p->from = p->at;
	p->at = l ? l->event : r->log->events;
	p->batch = r->batches;
	return 0;
}

/* Operations whose ends are printed are those of one client, or of one on each socket, or of those
 * that they name; of each one after the other. When one began is not known. */
static int take_printed(struct reader *r, const struct record *rec)
{
	char text[RECORD_WORDS], answer[RECORD_WORDS], *operation = text;
	struct printer *p;
	struct pm_log *log = r->log;
	size_t call = NO_CALL;
	uint8_t early;
	if (!printed_find(&r->printed, (const char *)rec->payload, rec->len, text, answer,
			  sizeof(text)))
		return 0;
	int error = 0;
	if (*text) {
		p = printer_of(r, rec, &operation, &early);
		error = p ? take_moment(r, rec, p) : -ENOMEM;
		if (!error)
			error = pm_log_add_call(log, p->client, false, operation, strlen(operation),
						0);
		if (!error) {
			log->printed = true;
			log->call[log->calls - 1].event = p->from;
			log->call[log->calls - 1].early = early;
			call = log->calls;
			error = pm_log_add_call(log, p->client, true, answer, strlen(answer), 0);
		}
	}
	if (error || !ARRAY_RESERVE(r->answer, r->answers, 1, r->answer_room))
		return error ? error : -ENOMEM;
	r->answer[r->answers++] = (struct answer){rec, call};
	return rec->message ? 0 : place_answers(r);
}

/* Calls that were heard of with their answers alone come to where they may have begun. */
static int spread_calls(struct pm_log *log)
{
	struct pm_call *all = malloc((log->calls + 1) * sizeof(*all));
	size_t n = 0, next;
	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < log->calls; i++)
		if (log->call[i].early == PM_AT_ONCE)
			all[n++] = log->call[i];
	for (size_t i = 0; i < log->calls; i++) {
		const struct pm_call *c = &log->call[i];
		if (c->early)
			continue;
		all[n++] = *c;
		for (next = i + 1; next < log->calls && log->call[next].client != c->client;)
			next++;
		if (next < log->calls && log->call[next].early == PM_AFTER_ANSWER)
			all[n++] = log->call[next];
	}
	assert(n == log->calls);
	free(log->call);
	log->call = all;
	log->call_room = log->calls + 1;
	return 0;
}

/* An event that is no answer. Answers may be later than stores, and than a flush, which makes
 * nothing durable by itself. */
static int take_other(struct reader *r, const struct record *rec)
{
	bool waits = kind_of[rec->kind] == PM_STORE || kind_of[rec->kind] == PM_FLUSH;
	int error = waits ? 0 : place_answers(r);
	return error ? error : take_event(r, rec);
}

static int take_before(struct reader *r, const struct record *rec)
{
	struct pm_log *log = r->log;
	if (rec->file >= log->files || rec->off > log->file[rec->file].len ||
	    rec->len > log->file[rec->file].len - rec->off)
		return wrong(r, "content that is not within its file");
	memcpy(log->file[rec->file].before + rec->off, rec->payload, rec->len);
	pm_file_touch(&log->file[rec->file], rec->off, rec->len);
	return 0;
}

static int take_record(struct reader *r, const struct record *rec)
{
	if (rec->kind >= RECORD_KINDS)
		return wrong(r, "a record of kind %u; expected at most %u", rec->kind,
			     RECORD_KINDS - 1);
	bool payload = rec->kind == RECORD_FILE || rec->kind == RECORD_BEFORE ||
		       rec->kind == RECORD_SOURCE || rec->kind == RECORD_MARK ||
		       rec->kind == RECORD_CALL || rec->kind == RECORD_RETURN ||
		       rec->kind == RECORD_PRINTED || rec->kind >= RECORD_UNSEEN_FLUSH ||
		       writes(rec);
	if (payload && rec->len > rec->bytes - sizeof(*rec))
		return wrong(r, "a record of %u bytes has %u bytes of content", rec->bytes,
			     rec->len);
	switch ((enum record_kind)rec->kind) {
	case RECORD_UNFINISHED: /* the process died while it wrote this */
		return 0;
	case RECORD_FILE:
		return take_file(r, rec);
	case RECORD_BEFORE:
		return take_before(r, rec);
	case RECORD_SOURCE:
		return take_source(r, rec);
	case RECORD_CALL:
		return take_call(r, rec);
	case RECORD_RETURN:
		return take_answer(r, rec);
	case RECORD_PRINTED:
		return take_printed(r, rec);
	case RECORD_LINES:
		return take_lines(r, rec);
	case RECORD_UNSEEN_FLUSH:
	case RECORD_UNSEEN_FENCE:
	case RECORD_UNSEEN_NAME:
	case RECORD_UNSEEN_OTHER:
		return take_unseen(r, rec);
	case RECORD_SUM:
		return 0;
	default:
		return take_other(r, rec);
	}
}

/* --- all of it --- */

const struct record *recording_at(const char *bytes, uint64_t end, uint64_t at)
{
	const struct record *r = (const void *)(bytes + at);
	bool whole = at <= end && end - at >= sizeof(*r) && r->bytes >= sizeof(*r) &&
		     r->bytes % 8 == 0 && r->bytes <= end - at;
	return whole ? r : NULL;
}

uint64_t recording_sum(const char *bytes, size_t len)
{
	return RECORD_CHECKSUM(bytes, len);
}

static int check_sum(const struct reader *r, const char *bytes, uint64_t from, uint64_t end,
		     uint64_t expected)
{
	uint64_t sum = recording_sum(bytes + from, end - from);
	if (sum == expected)
		return 0;
	return wrong(r,
		     "bytes %llu to %llu are not as they were recorded: their checksum is %016llx, "
		     "expected %016llx",
		     (unsigned long long)from, (unsigned long long)end - 1, (unsigned long long)sum,
		     (unsigned long long)expected);
}

/* A process that died may have left one block with two checksums. What nobody has brought to its
 * end has none of its last one. */
static int check_sums(const struct reader *r, const char *bytes)
{
	const struct record_head *head = r->head;
	const struct record *rec;
	uint64_t from = RECORD_HEAD, sum;
	int error = 0;
	for (uint64_t at = RECORD_HEAD; !error && (rec = recording_at(bytes, head->used, at));
	     at += rec->bytes) {
		if (rec->kind != RECORD_SUM)
			continue;
		if (rec->off < RECORD_HEAD || rec->off > from ||
		    rec->bytes < sizeof(*rec) + sizeof(sum))
			break;
		memcpy(&sum, rec->payload, sizeof(sum));
		error = check_sum(r, bytes, rec->off, at, sum);
		from = at;
	}
	if (error || !head->summed || !head->ended)
		return error;
	from = head->summed < from && head->summed >= RECORD_HEAD ? head->summed : from;
	return check_sum(r, bytes, from, head->used, head->sum);
}

/* Its head; NULL: it is none, or not whole, or something has written to it (*error). */
static const struct record_head *find_head(const char *bytes, size_t len, struct input_error *error)
{
	const struct record_head *head = (const void *)bytes;
	const struct reader r = {.error = error, .head = head};
	if (!recording_begins(bytes, len))
		wrong(&r, "expected a recording");
	else if (len < RECORD_HEAD)
		wrong(&r, "it is shorter than the head of a recording");
	else if (check_format(&r))
		return NULL;
	else if (head->used < RECORD_HEAD || head->used > len)
		wrong(&r, "it says that it has %llu bytes, and has %zu",
		      (unsigned long long)head->used, len);
	else if (!check_sums(&r, bytes))
		return head;
	return NULL;
}

static int read_records(struct reader *r, const char *bytes)
{
	int error = 0;
	r->at = RECORD_HEAD;
	while (!error && r->at < r->head->used) {
		const struct record *rec = recording_at(bytes, r->head->used, r->at);
		r->number++;
		if (!rec)
			return wrong(r, "the record at byte %llu is not whole",
				     (unsigned long long)r->at);
		error = take_record(r, rec);
		r->at += rec->bytes;
	}
	return error ? error : place_answers(r);
}

int recording_read_pm(struct pm_log *log, const char *bytes, size_t len, struct input_error *error)
{
	struct reader r = {.log = log, .error = error, .head = find_head(bytes, len, error)};
	int failed = 0;
	if (!r.head)
		return -EINVAL;
	r.where = where_new_files();
	if (!r.where)
		failed = -ENOMEM;
	char why[200];
	if (!failed && r.head->ack[0] && memchr(r.head->ack, 0, sizeof(r.head->ack)))
		failed = printed_open(&r.printed, r.head->ack, why, sizeof(why));
	if (failed == -EINVAL)
		wrong(&r, "--ack: %s", why);
	if (!failed)
		failed = read_records(&r, bytes);
	if (!failed && log->printed)
		failed = spread_calls(log);
	if (!failed && !pm_log_fits(log))
		failed = wrong(&r, "its PM does not fit into this machine's memory");
	if (!failed && !log->files)
		failed = wrong(&r, "no PM is in it: the program mapped no file that --pm named, "
				   "shared and to write");
	log->threads = true;
	log->knows_nt = !r.head->told;
	for (unsigned i = 0; i < log->files; i++)
		log->file[i].unseen = r.head->unseen[i];
	log->full = r.head->full;
	log->stopped = r.head->ended && !log->full;
	where_free(r.where);
	printed_close(&r.printed);
	free(r.source);
	free(r.lines);
	free(r.answer);
	free(r.printer);
	return failed;
}
