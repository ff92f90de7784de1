/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading scenarios/taxonomy/taxonomy.txt, which the assembler puts into the program, and looking
 * things up in it. A line is a word that says what it is, names, a colon, and a word for each
 * column; names point into a copy of the text. The last of all rows that are in force decides.
 */
#include "scenarios/taxonomy/taxonomy.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/array.h"
#include "core/embed.h"

EMBED(tm_taxonomy_text, TM_TAXONOMY_FILE);

const char *const taxonomy_primitive_name[TAXONOMY_PRIMITIVES] = {"write", "writeimm", "send",
								  "commit"};
static const char *const transport_name[TAXONOMY_TRANSPORTS] = {
	[TRANSPORT_IB] = "ib", [TRANSPORT_IWARP] = "iwarp"};

struct taxonomy_reader {
	struct taxonomy_table *t;
	struct text text;
	const char *with; /* the knob of the latest "with" line; "": none */
};

static int read_transports(struct taxonomy_reader *r, char *list, unsigned *out)
{
	char *save = NULL;
	*out = 0;
	for (char *one = strtok_r(list, ",", &save); one; one = strtok_r(NULL, ",", &save)) {
		unsigned t = 0;
		while (t < TAXONOMY_TRANSPORTS && strcmp(transport_name[t], one))
			t++;
		if (t == TAXONOMY_TRANSPORTS || *out & 1u << t)
			return text_wrong(&r->text,
					  "\"%.20s\": expected ib, iwarp, or both with a comma",
					  one);
		*out |= 1u << t;
	}
	return *out ? 0
		    : text_wrong(&r->text, "expected transports: ib, iwarp, or both with a comma");
}

/* The colon, and a word for each column. */
static int read_columns(struct taxonomy_reader *r, char *rest, char *out[TAXONOMY_COLUMNS])
{
	if (strcmp(text_word(&rest), ":"))
		return text_wrong(&r->text, "expected \" : \" and %d words after it",
				  TAXONOMY_COLUMNS);
	for (unsigned c = 0; c < TAXONOMY_COLUMNS; c++) {
		out[c] = text_word(&rest);
		if (!*out[c])
			return text_wrong(&r->text, "%u words after the colon; expected %d", c,
					  TAXONOMY_COLUMNS);
		if (!strcmp(out[c], ".") && !*r->with)
			return text_wrong(
				&r->text,
				"\".\" stands after a \"with\" only; expected a word of its own");
	}
	return *text_word(&rest) ? text_wrong(&r->text, "more than %d words after the colon",
					      TAXONOMY_COLUMNS)
				 : 0;
}

static int read_verdict(struct taxonomy_reader *r, const char *text, uint8_t *out)
{
	static const struct {
		const char *word;
		uint8_t verdict;
	} words[] = {{"ok", 0},
		     {"L", TAXONOMY_LOST},
		     {"O", TAXONOMY_DISORDERED},
		     {"LO", TAXONOMY_LOST | TAXONOMY_DISORDERED},
		     {".", TAXONOMY_AS_ABOVE}};
	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!strcmp(words[i].word, text)) {
			*out = words[i].verdict;
			return 0;
		}
	}
	return text_wrong(&r->text, "\"%.20s\": expected ok, L, O or LO", text);
}

/* row METHOD TRANSPORTS : VERDICT x 12 */
static int read_row(struct taxonomy_reader *r, char *rest)
{
	struct taxonomy_table *t = r->t;
	char *words[TAXONOMY_COLUMNS];
	if (!ARRAY_ROOM_FOR_ONE(t->row, t->rows))
		return -ENOMEM;
	struct taxonomy_row *row = &t->row[t->rows];
	*row = (struct taxonomy_row){
		.method = text_word(&rest), .with = r->with, .line = r->text.line};
	int error = *row->method ? read_transports(r, text_word(&rest), &row->transports)
				 : text_wrong(&r->text, "expected \"row METHOD TRANSPORTS : ...\"");
	for (unsigned i = 0; i < t->rows && !error; i++)
		if (!strcmp(t->row[i].method, row->method) && !strcmp(t->row[i].with, row->with) &&
		    t->row[i].transports & row->transports)
			error = text_wrong(&r->text, "%.20s twice; the other row is on line %u",
					   row->method, t->row[i].line);
	if (!error)
		error = read_columns(r, rest, words);
	for (unsigned c = 0; c < TAXONOMY_COLUMNS && !error; c++)
		error = read_verdict(r, words[c], &row->verdict[c]);
	t->rows += !error;
	return error;
}

/* choice KIND PRIMITIVE TRANSPORTS : METHOD x 12 */
static int read_choice(struct taxonomy_reader *r, char *rest)
{
	struct taxonomy_table *t = r->t;
	char *words[TAXONOMY_COLUMNS];
	if (!ARRAY_ROOM_FOR_ONE(t->choice, t->choices))
		return -ENOMEM;
	struct taxonomy_choice *choice = &t->choice[t->choices];
	*choice = (struct taxonomy_choice){.with = r->with};
	const char *kind = text_word(&rest), *primitive = text_word(&rest);
	choice->compound = !strcmp(kind, "compound");
	if (!choice->compound && strcmp(kind, "singleton"))
		return text_wrong(&r->text, "\"%.20s\": expected singleton or compound", kind);
	while (choice->primitive < TAXONOMY_PRIMITIVES &&
	       strcmp(taxonomy_primitive_name[choice->primitive], primitive))
		choice->primitive++;
	if (choice->primitive == TAXONOMY_PRIMITIVES)
		return text_wrong(&r->text, "\"%.20s\": expected write, writeimm or send",
				  primitive);
	int error = read_transports(r, text_word(&rest), &choice->transports);
	if (!error)
		error = read_columns(r, rest, words);
	for (unsigned c = 0; c < TAXONOMY_COLUMNS && !error; c++)
		choice->method[c] = words[c];
	t->choices += !error;
	return error;
}

static int read_silent(struct taxonomy_reader *r, char *rest)
{
	struct taxonomy_table *t = r->t;
	const char *knob = text_word(&rest);
	if (!ARRAY_ROOM_FOR_ONE(t->silent, t->silents))
		return -ENOMEM;
	if (!strchr(knob, '=') || *text_word(&rest))
		return text_wrong(&r->text, "expected \"silent NAME=VALUE\"");
	t->silent[t->silents++] = knob;
	return 0;
}

/* like METHOD METHOD */
static int read_like(struct taxonomy_reader *r, char *rest)
{
	struct taxonomy_table *t = r->t;
	if (!ARRAY_ROOM_FOR_ONE(t->like, t->likes))
		return -ENOMEM;
	struct taxonomy_like *like = &t->like[t->likes++];
	like->method = text_word(&rest);
	like->other = text_word(&rest);
	for (unsigned i = 0; i < t->rows; i++)
		if (!strcmp(t->row[i].method, like->method))
			return text_wrong(&r->text, "%.20s has rows of its own", like->method);
	return *like->other && !*text_word(&rest)
		       ? 0
		       : text_wrong(&r->text, "expected \"like METHOD METHOD\"");
}

static int read_line(struct text *t, char *line, void *reader)
{
	struct taxonomy_reader *r = reader;
	const char *what = text_word(&line);
	if (!strcmp(what, "row"))
		return read_row(r, line);
	if (!strcmp(what, "choice"))
		return read_choice(r, line);
	if (!strcmp(what, "silent"))
		return read_silent(r, line);
	if (!strcmp(what, "like"))
		return read_like(r, line);
	if (strcmp(what, "with"))
		return text_wrong(t, "\"%.20s\": expected row, choice, like, with or silent", what);
	r->with = text_word(&line);
	return strchr(r->with, '=') && !*text_word(&line)
		       ? 0
		       : text_wrong(t, "expected \"with NAME=VALUE\"");
}

int taxonomy_read(struct taxonomy_table *t, const char *text, struct input_error *where)
{
	struct taxonomy_reader r = {.t = t, .with = ""};
	memset(t, 0, sizeof(*t));
	memset(where, 0, sizeof(*where));
	t->text = strdup(text ? text : tm_taxonomy_text);
	if (!t->text)
		return -ENOMEM;
	text_start(&r.text, t->text, strlen(t->text), where);
	int error = text_rows(&r.text, read_line, &r);
	if (!error && !t->rows) {
		r.text.line = 0; /* the table as a whole */
		error = text_wrong(&r.text, "no row; expected at least one");
	}
	if (error)
		taxonomy_free(t);
	return error;
}

void taxonomy_free(struct taxonomy_table *t)
{
	free(t->row);
	free(t->choice);
	free(t->silent);
	free(t->like);
	free(t->text);
	memset(t, 0, sizeof(*t));
}

/* --- looking up --- */

static bool is_set(const struct taxonomy_knobs *knobs, const char *with)
{
	for (unsigned i = 0; i < knobs->knobs; i++)
		if (!strcmp(knobs->knob[i], with))
			return true;
	return !*with;
}

static bool is_silent(const struct taxonomy_table *t, const struct taxonomy_knobs *knobs)
{
	for (unsigned i = 0; i < t->silents; i++)
		if (is_set(knobs, t->silent[i]))
			return true;
	return false;
}

const char *taxonomy_like(const struct taxonomy_table *t, const char *method)
{
	for (unsigned i = 0; i < t->likes; i++)
		if (!strcmp(t->like[i].method, method))
			return t->like[i].other;
	return NULL;
}

int taxonomy_says(const struct taxonomy_table *t, const char *method, unsigned column,
		  unsigned transport, const struct taxonomy_knobs *knobs, unsigned *line)
{
	const char *other = taxonomy_like(t, method);
	int verdict = -1;
	if (other)
		method = other;
	for (unsigned i = 0; i < t->rows && !is_silent(t, knobs); i++) {
		const struct taxonomy_row *row = &t->row[i];
		if (strcmp(row->method, method) || !(row->transports & 1u << transport) ||
		    !is_set(knobs, row->with) || row->verdict[column] == TAXONOMY_AS_ABOVE)
			continue;
		verdict = row->verdict[column];
		if (line)
			*line = row->line;
	}
	return verdict;
}

const char *taxonomy_gives(const struct taxonomy_table *t, bool compound,
			   enum taxonomy_primitive primitive, unsigned column, unsigned transport,
			   const struct taxonomy_knobs *knobs)
{
	const char *method = NULL;
	for (unsigned i = 0; i < t->choices && !is_silent(t, knobs); i++) {
		const struct taxonomy_choice *choice = &t->choice[i];
		if (choice->compound == compound && choice->primitive == primitive &&
		    choice->transports & 1u << transport && is_set(knobs, choice->with) &&
		    strcmp(choice->method[column], "."))
			method = choice->method[column];
	}
	return method;
}

const char *taxonomy_word(unsigned verdict)
{
	static const char *const words[8] = {"ok", "L", "O", "LO", "X", "LX", "OX", "LOX"};
	return words[verdict & 7];
}

void taxonomy_hardware(struct hardware *hw, unsigned column, unsigned transport)
{
	hw->domain = (uint8_t)(DOMAIN_DMP + column / 4);
	hw->ddio = column & 2 ? DDIO_OFF : DDIO_ON;
	hw->rqwrb_pm = column & 1;
	hw->transport = (uint8_t)transport;
}

unsigned taxonomy_column(const struct hardware *hw)
{
	return 4u * (hw->domain - DOMAIN_DMP) + 2u * (hw->ddio == DDIO_OFF) + hw->rqwrb_pm;
}
