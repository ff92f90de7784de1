/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Workloads: the data structure, the bytes of each value, and the textual form.
 *
 * A workload is a list of keys and, per client, a list of operations. Both only
 * ever grow at the end or lose one operation to the shrinker; an array's capacity
 * is the next power of two of its length, so it needs no field.
 *
 * A value has to tell three things when it is met again in a crash image: which
 * PUT wrote it, whether all of it is there, and whether a byte was written at all.
 *
 *	byte 0..7	identity: a one-to-one mix of (client, nth, key); of a shorter value
 *			its first bytes, which may be those of another
 *	byte 8..	splitmix64 stream seeded with the identity
 *
 * The identities of two PUTs always differ. Later 8-byte words of two PUTs, at
 * equal or at different places, are equal with a chance of about 2^-64 a pair. No
 * byte is zero, so a byte of a value is never a byte of fresh memory.
 *
 * The textual form is for people: "put k1 96, get k1". The parser accepts any
 * number of blanks, and nothing else that the printer would not write.
 */
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "core/array.h"
#include "scenarios/workload/workload.h"

void workload_free(struct workload *w)
{
	free(w->key);
	for (unsigned c = 0; c < WORKLOAD_MAX_CLIENTS; c++)
		free(w->client[c].op);
	memset(w, 0, sizeof(*w));
}

static size_t capacity(unsigned length)
{
	size_t cap = 1;

	while (cap < length)
		cap *= 2;
	return cap;
}

int workload_copy(struct workload *to, const struct workload *from)
{
	assert(to != from);
	assert(from->clients <= WORKLOAD_MAX_CLIENTS);
	memset(to, 0, sizeof(*to));
	if (from->keys) {
		to->key = calloc(capacity(from->keys), sizeof(*to->key));
		if (!to->key)
			goto err;
		memcpy(to->key, from->key, from->keys * sizeof(*to->key));
	}
	for (unsigned c = 0; c < from->clients; c++) {
		unsigned ops = from->client[c].ops;

		if (!ops)
			continue;
		to->client[c].op = calloc(capacity(ops), sizeof(*to->client[c].op));
		if (!to->client[c].op)
			goto err;
		memcpy(to->client[c].op, from->client[c].op, ops * sizeof(*to->client[c].op));
		to->client[c].ops = ops;
	}
	to->calls = from->calls;
	to->keys = from->keys;
	to->clients = from->clients;
	memcpy(to->name, from->name, sizeof(to->name));
	return 0;
err:
	workload_free(to);
	return -ENOMEM;
}

unsigned workload_ops(const struct workload *w)
{
	unsigned n = 0;

	for (unsigned c = 0; c < w->clients; c++)
		n += w->client[c].ops;
	return n;
}

unsigned workload_updates(const struct workload *w)
{
	unsigned n = 0;

	for (unsigned k = 0; k < w->keys; k++)
		n += w->key[k].loaded >= 0;
	for (unsigned c = 0; c < w->clients; c++)
		for (unsigned i = 0; i < w->client[c].ops; i++)
			n += w->client[c].op[i].kind == OP_PUT ||
			     w->client[c].op[i].kind == OP_DEL ||
			     w->client[c].op[i].kind == OP_CALL;
	return n;
}

static bool has_kind(const struct workload *w, enum op_kind kind)
{
	for (unsigned c = 0; c < w->clients; c++)
		for (unsigned i = 0; i < w->client[c].ops; i++)
			if (w->client[c].op[i].kind == kind)
				return true;
	return false;
}

bool workload_cleans(const struct workload *w)
{
	return has_kind(w, OP_CLEAN);
}

bool workload_transacts(const struct workload *w)
{
	for (unsigned c = 0; c < w->clients; c++)
		for (unsigned i = 0; i < w->client[c].ops; i++)
			if (w->client[c].op[i].txn == TXN_NEXT)
				return true;
	return false;
}

bool workload_has_calls(const struct workload *w)
{
	return has_kind(w, OP_CALL);
}

unsigned workload_looks(const struct workload *w)
{
	unsigned n = 0;

	for (const struct tm_call_type *t = w->calls; t && t->name; t++)
		n += !t->looks ? 0 : t->keys ? w->keys : 1;
	return n;
}

unsigned workload_max_vlen(const struct workload *w)
{
	unsigned max = 0;

	for (unsigned k = 0; k < w->keys; k++)
		if (w->key[k].loaded > (int32_t)max)
			max = (unsigned)w->key[k].loaded;
	for (unsigned c = 0; c < w->clients; c++)
		for (unsigned i = 0; i < w->client[c].ops; i++)
			if (w->client[c].op[i].vlen > max)
				max = w->client[c].op[i].vlen;
	return max;
}

static bool key_char(unsigned char c)
{
	return c > ' ' && c < 0x7f && c != ',' && c != '#';
}

static bool key_name_ok(const char *name, size_t len)
{
	if (len < 1 || len > TM_MAX_KEY)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!key_char((unsigned char)name[i]))
			return false;
	return true;
}

int workload_key_find(const struct workload *w, const char *name, size_t len)
{
	for (unsigned k = 0; k < w->keys; k++)
		if (w->key[k].klen == len && !memcmp(w->key[k].name, name, len))
			return (int)k;
	return -ENOENT;
}

int workload_key_add(struct workload *w, const char *name, size_t len, int32_t loaded)
{
	if (!key_name_ok(name, len) || loaded < -1 || loaded > TM_MAX_VALUE)
		return -EINVAL;
	int found = workload_key_find(w, name, len);
	if (found >= 0) {
		if (loaded >= 0)
			w->key[found].loaded = loaded;
		return found;
	}
	if (w->keys >= WORKLOAD_MAX_KEYS)
		return -ENOSPC;
	if (!ARRAY_ROOM_FOR_ONE(w->key, w->keys))
		return -ENOMEM;
	struct workload_key *key = &w->key[w->keys];
	memset(key, 0, sizeof(*key));
	memcpy(key->name, name, len);
	key->klen = (uint8_t)len;
	key->loaded = loaded;
	return (int)w->keys++;
}

/* Number of the client's first `n` operations that are of this kind. */
static unsigned count_kind(const struct workload *w, unsigned client, unsigned n, unsigned kind)
{
	unsigned count = 0;

	assert(n <= w->client[client - 1].ops);
	for (unsigned i = 0; i < n; i++)
		count += w->client[client - 1].op[i].kind == kind;
	return count;
}

int workload_op_add(struct workload *w, unsigned client, enum op_kind kind, unsigned key,
		    uint32_t vlen)
{
	struct workload_op op = {.kind = (uint8_t)kind};

	if (vlen > TM_MAX_VALUE || (workload_op_keyed(kind) && key >= w->keys) || kind == OP_CALL)
		return -EINVAL;
	if (workload_op_keyed(kind))
		op.key = (uint16_t)key;
	if (kind == OP_PUT)
		op.vlen = vlen;
	return workload_op_append(w, client, &op);
}

int workload_op_append(struct workload *w, unsigned client, const struct workload_op *op)
{
	if (client < 1 || client > WORKLOAD_MAX_CLIENTS || op->vlen > TM_MAX_VALUE)
		return -EINVAL;
	if (op->kind == OP_NONE || op->kind == OP_OPEN || op->kind >= OP_KINDS)
		return -EINVAL;
	for (unsigned k = 0; k < workload_op_keys(w, op); k++)
		if (op->keys[k] >= w->keys)
			return -EINVAL;
	if (workload_ops(w) >= WORKLOAD_MAX_OPS)
		return -ENOSPC;
	unsigned ops = w->client[client - 1].ops;
	if (!ARRAY_ROOM_FOR_ONE(w->client[client - 1].op, ops))
		return -ENOMEM;
	w->client[client - 1].op[ops] = *op;
	w->client[client - 1].op[ops].nth = (uint16_t)(count_kind(w, client, ops, op->kind) + 1);
	w->client[client - 1].ops = ops + 1;
	if (w->clients < client)
		w->clients = client;
	return 0;
}

/* Can a transaction have it? */
static bool of_transactions(unsigned kind)
{
	return kind == OP_PUT || kind == OP_GET || kind == OP_DEL;
}

unsigned workload_txn_size(const struct workload *w, unsigned client, unsigned index)
{
	const struct workload_op *op = &w->client[client - 1].op[index];
	unsigned n = 1, left = w->client[client - 1].ops - index;

	if (op->txn != TXN_FIRST)
		return 0;
	while (n < left && op[n].txn == TXN_NEXT)
		n++;
	return n;
}

bool workload_op_join(struct workload *w, unsigned client)
{
	unsigned last = w->client[client - 1].ops - 1, first = last;
	struct workload_op *op = w->client[client - 1].op;

	while (first && op[first - 1].txn == TXN_NEXT)
		first--;
	first -= first && op[first - 1].txn == TXN_FIRST;
	first -= first == last && last &&
		 (op[last - 1].kind == OP_PUT || op[last - 1].kind == OP_GET);
	if (first == last || last - first >= TM_TXN_OPS || !of_transactions(op[last].kind))
		return false;
	op[first].txn = TXN_FIRST;
	op[last].txn = TXN_NEXT;
	return true;
}

void workload_renumber(struct workload *w)
{
	for (unsigned c = 0; c < w->clients; c++) {
		uint16_t count[OP_KINDS] = {0};

		for (unsigned i = 0; i < w->client[c].ops; i++) {
			struct workload_op *op = &w->client[c].op[i];

			assert(op->kind < OP_KINDS);
			op->nth = ++count[op->kind];
		}
	}
}

void workload_op_remove(struct workload *w, unsigned client, unsigned index)
{
	assert(client >= 1 && client <= w->clients);
	unsigned ops = w->client[client - 1].ops;
	struct workload_op *op = w->client[client - 1].op;
	assert(index < ops);
	if (workload_txn_size(w, client, index) > 1)
		op[index + 1].txn = TXN_FIRST;
	memmove(&op[index], &op[index + 1], (ops - index - 1) * sizeof(*op));
	w->client[client - 1].ops = ops - 1;
	workload_renumber(w);
}

/* The finalizer of splitmix64 (Steele, Lea, Flood, OOPSLA 2014): one to one on 64 bits. */
static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static bool has_zero_byte(uint64_t x)
{
	return (x - 0x0101010101010101u) & ~x & 0x8080808080808080u;
}

/*
 * Mix until no byte is zero. Still one to one for inputs without a zero byte: the
 * steps walk along the cycles of mix(), and stop at the next such number on each.
 */
static uint64_t mix_nonzero(uint64_t x)
{
	do
		x = mix(x);
	while (has_zero_byte(x));
	return x;
}

static void put_word(uint8_t *out, uint64_t word, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		out[i] = (uint8_t)(word >> 8 * i);
}

void workload_value(unsigned client, unsigned nth, unsigned key, uint8_t *out, uint32_t vlen)
{
	uint64_t id = 0x54;

	assert(client <= 0x7f && nth <= UINT16_MAX && key <= UINT16_MAX);
	assert(vlen <= TM_MAX_VALUE);
	/* Eight bytes, none of them zero: seven bits of a number each, and a mark. */
	id = id << 8 | 0x80 | client;
	for (int shift = 14; shift >= 0; shift -= 7)
		id = id << 8 | 0x80 | (nth >> shift & 0x7f);
	for (int shift = 14; shift >= 0; shift -= 7)
		id = id << 8 | 0x80 | (key >> shift & 0x7f);
	assert(!has_zero_byte(id));
	id = mix_nonzero(id);
	put_word(out, id, vlen < 8 ? vlen : 8);
	for (uint32_t at = 8; at < vlen; at += 8) {
		uint64_t word = mix_nonzero(id + at / 8 * 0x9e3779b97f4a7c15u);

		put_word(out + at, word, vlen - at < 8 ? vlen - at : 8);
	}
}

void workload_value_same(unsigned same, unsigned key, uint8_t *out, uint32_t vlen)
{
	/* The load phase has one PUT a key, numbered by the key. */
	workload_value(0, WORKLOAD_MAX_KEYS + same, key, out, vlen);
}

static const char *const op_word[OP_KINDS] = {
	[OP_PUT] = "put",     [OP_GET] = "get", [OP_DEL] = "del",    [OP_CLEAN] = "clean",
	[OP_LEAVE] = "leave", [OP_DIE] = "die", [OP_PAUSE] = "pause"};

void workload_print_client(const struct workload *w, unsigned client, FILE *out)
{
	assert(client >= 1 && client <= w->clients);
	for (unsigned i = 0; i < w->client[client - 1].ops; i++) {
		const struct workload_op *op = &w->client[client - 1].op[i];

		assert(op->kind == OP_CALL || (op->kind < OP_KINDS && op_word[op->kind]));
		fprintf(out, "%s%s%s", i ? ", " : "", op->txn == TXN_FIRST ? "T{" : "",
			op->kind == OP_CALL ? w->calls[op->call].name : op_word[op->kind]);
		for (unsigned k = 0; k < workload_op_keys(w, op); k++)
			fprintf(out, " %s", w->key[op->keys[k]].name);
		if (workload_op_valued(w, op))
			fprintf(out, " %u", (unsigned)op->vlen);
		if (op->same)
			fprintf(out, " same %u", op->same);
		if (op->txn && (i + 1 == w->client[client - 1].ops || op[1].txn != TXN_NEXT))
			fputc('}', out);
	}
}

void workload_print_keys(const struct workload *w, FILE *out)
{
	for (unsigned k = 0; k < w->keys; k++) {
		fprintf(out, "%s%s ", k ? ", " : "", w->key[k].name);
		if (w->key[k].loaded >= 0)
			fprintf(out, "%d", (int)w->key[k].loaded);
		else
			fputc('-', out);
	}
}

/* A word of a line: up to a blank, a comma or the end. */
struct word {
	const char *text;
	size_t len;
};

static const char *skip_blanks(const char *p)
{
	while (*p == ' ' || *p == '\t')
		p++;
	return p;
}

/* The words up to the next comma or the end: how many, of which `max` are kept. Moves *text past
 * them. */
static unsigned split_item(const char **text, struct word *word, unsigned max)
{
	const char *p = skip_blanks(*text);
	unsigned n = 0;

	while (*p && *p != ',') {
		size_t len = strcspn(p, " \t,");

		if (n < max)
			word[n] = (struct word){p, len};
		n++;
		p = skip_blanks(p + len);
	}
	*text = p;
	return n;
}

/* A decimal number from 0 to TM_MAX_VALUE, or -1. */
static int32_t word_vlen(struct word word)
{
	int32_t n = 0;

	if (!word.len)
		return -1;
	for (size_t i = 0; i < word.len; i++) {
		if (word.text[i] < '0' || word.text[i] > '9')
			return -1;
		n = n * 10 + (word.text[i] - '0');
		if (n > TM_MAX_VALUE)
			return -1;
	}
	return n;
}

static const char expected_key[] =
	"a key of 1 to 32 printable characters without blank, comma and '#'";
static const char expected_vlen[] = "a value length from 0 to 65536 bytes";
static const char expected_keys[] = "at most 1024 keys";
static const char expected_ops[] = "at most 4096 operations of all clients together";
static const char expected_memory[] = "enough memory";
_Static_assert(TM_MAX_KEY == 32 && TM_MAX_CLIENTS == 16 && TM_MAX_VALUE == 65536, "texts above");
_Static_assert(WORKLOAD_MAX_KEYS == 1024 && WORKLOAD_MAX_OPS == 4096, "texts above");

static int bad(const char **expected, const char *what)
{
	*expected = what;
	return -EINVAL;
}

static bool is_word(const struct word *word, const char *text)
{
	return word->len == strlen(text) && !memcmp(word->text, text, word->len);
}

/* The form of an operation of the store's own. */
static const char *expected_call(const struct tm_call_type *t)
{
	static const char *const forms[2][TM_CALL_KEYS + 1] = {
		{"the operation and nothing after it", "the operation and a KEY",
		 "the operation and two KEYs", "the operation and three KEYs"},
		{"the operation and a LENGTH", "the operation, a KEY and a LENGTH",
		 "the operation, two KEYs and a LENGTH", "the operation, three KEYs and a LENGTH"}};

	return forms[t->value][t->keys];
}

/* "swap k1 k2 40" */
static int parse_call(struct workload *w, unsigned client, unsigned call, const struct word *word,
		      unsigned words, const char **expected)
{
	const struct tm_call_type *t = &w->calls[call];
	struct workload_op op = {.kind = OP_CALL, .call = (uint8_t)call};

	if (words != 1 + t->keys + t->value)
		return bad(expected, expected_call(t));
	for (unsigned k = 0; k < t->keys; k++) {
		int key = workload_key_add(w, word[1 + k].text, word[1 + k].len, -1);

		if (key < 0) {
			*expected = key == -ENOSPC ? expected_keys : expected_key;
			return key;
		}
		op.keys[k] = (uint16_t)key;
	}
	if (t->value) {
		int32_t vlen = word_vlen(word[words - 1]);

		if (vlen < 0)
			return bad(expected, expected_vlen);
		op.vlen = (uint32_t)vlen;
	}
	int rc = workload_op_append(w, client, &op);
	if (rc == -ENOSPC)
		*expected = expected_ops;
	return rc;
}

static int parse_op(struct workload *w, unsigned client, const struct word *word, unsigned words,
		    const char **expected)
{
	enum op_kind kind = OP_NONE;
	int32_t vlen = 0, same = 0;
	int key = 0;

	for (unsigned k = 0; k < OP_KINDS; k++)
		if (words && op_word[k] && is_word(&word[0], op_word[k]))
			kind = (enum op_kind)k;
	for (unsigned i = 0; words && w->calls && w->calls[i].name; i++)
		if (is_word(&word[0], w->calls[i].name))
			return parse_call(w, client, i, word, words, expected);
	if (kind == OP_NONE)
		return bad(expected, w->calls ? "an operation: one of the store's own (tidemark "
						"list), put, get, del, clean, leave, die or pause"
					      : "an operation: put, get, del, clean, leave, die or "
						"pause");
	if (kind == OP_PUT && words == 5 && is_word(&word[3], "same")) {
		same = word_vlen(word[4]);
		words = 3;
		if (same < 1 || same > WORKLOAD_MAX_SAME)
			return bad(expected, "same and a number from 1 to 99");
	}
	if (words != (kind == OP_PUT ? 3u : workload_op_keyed(kind) ? 2u : 1u))
		return bad(expected, kind == OP_PUT
					     ? "put KEY LENGTH, or put KEY LENGTH same NUMBER"
				     : workload_op_keyed(kind)
					     ? "get KEY or del KEY"
					     : "clean, leave, die or pause, and nothing after it");
	if (kind == OP_PUT)
		vlen = word_vlen(word[2]);
	if (vlen < 0)
		return bad(expected, expected_vlen);
	if (workload_op_keyed(kind))
		key = workload_key_add(w, word[1].text, word[1].len, -1);
	if (key < 0) {
		*expected = key == -ENOSPC ? expected_keys : expected_key;
		return key;
	}
	int rc = workload_op_add(w, client, kind, (unsigned)key, (uint32_t)vlen);
	if (!rc)
		w->client[client - 1].op[w->client[client - 1].ops - 1].same = (uint16_t)same;
	if (rc == -ENOSPC)
		*expected = expected_ops;
	return rc;
}

/* The client's last operation, which has just been read, is of the transaction that is `open`, or
 * begins one. */
static int join_op(struct workload *w, unsigned client, bool open, const char **expected)
{
	struct workload_op *op = &w->client[client - 1].op[w->client[client - 1].ops - 1];

	if (!of_transactions(op->kind))
		return bad(expected,
			   "put, get and del alone in a transaction: T{get KEY, put KEY LENGTH}");
	if (open && !workload_op_join(w, client))
		return bad(expected, "at most 8 operations in a transaction");
	op->txn = open ? TXN_NEXT : TXN_FIRST;
	return 0;
}

/* An item of a client's text; `*open`: within a transaction. */
static int parse_item(struct workload *w, unsigned client, struct word *word, unsigned words,
		      bool *open, const char **expected)
{
	bool first = words && word[0].len >= 2 && !memcmp(word[0].text, "T{", 2), last;
	int rc;

	if (first && *open)
		return bad(expected, "the end of the transaction, }, before the next one");
	if (first) {
		word[0].text += 2;
		word[0].len -= 2;
	}
	last = (first || *open) && words && words <= 5 && word[words - 1].len &&
	       word[words - 1].text[word[words - 1].len - 1] == '}';
	if (last)
		word[words - 1].len--;
	rc = parse_op(w, client, word, words, expected);
	if (!rc && (first || *open))
		rc = join_op(w, client, *open, expected);
	*open = (first || *open) && !last;
	return rc;
}

int workload_parse_client(struct workload *w, unsigned client, const char *text,
			  const char **expected)
{
	bool open = false;
	int rc;

	*expected = expected_memory;
	if (client < 1 || client > TM_MAX_CLIENTS)
		return bad(expected, "a client from 1 to 16");
	if (w->clients < client)
		w->clients = client;
	if (!*skip_blanks(text))
		return 0;
	for (;;) {
		struct word word[5];
		unsigned words = split_item(&text, word, 5);

		rc = parse_item(w, client, word, words, &open, expected);
		if (!rc && !*text && open)
			rc = bad(expected,
				 "the end of the transaction: T{get KEY, put KEY LENGTH}");
		if (rc || !*text)
			return rc;
		text++;
	}
}

int workload_parse_keys(struct workload *w, const char *text, const char **expected)
{
	bool named[WORKLOAD_MAX_KEYS] = {false};

	*expected = expected_memory;
	if (!*skip_blanks(text))
		return 0;
	for (;;) {
		struct word word[2];
		unsigned words = split_item(&text, word, 2);
		int32_t loaded = -1;
		int key;

		if (words != 2)
			return bad(expected, "KEY LENGTH, or KEY - for a key that is not loaded");
		if (word[1].len != 1 || *word[1].text != '-') {
			loaded = word_vlen(word[1]);
			if (loaded < 0)
				return bad(expected,
					   "the loaded value's length from 0 to 65536 bytes, or -");
		}
		key = workload_key_add(w, word[0].text, word[0].len, loaded);
		if (key < 0) {
			*expected = key == -ENOSPC ? expected_keys : expected_key;
			return key;
		}
		if (named[key])
			return bad(expected, "each key once");
		named[key] = true;
		if (!*text)
			return 0;
		text++;
	}
}
