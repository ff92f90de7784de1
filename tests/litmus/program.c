/* SPDX-License-Identifier: BSD-3-Clause */
/* A litmus program as text. */
#include "tests/litmus/program.h"
#include <assert.h>

static const char location_name[] = "xyz", qp_name[] = "qp", host_name[] = "ABC";

bool statement_is_request(const struct statement *s)
{
	return s->op >= OP_PUT && s->op <= OP_FLUSH_GLOBAL;
}

bool statement_is_posted(const struct statement *s)
{
	return s->op == OP_PUT || s->op == OP_PUTIMM || s->op == OP_SEND;
}

bool statement_is_message(const struct statement *s)
{
	return s->op == OP_PUTIMM || s->op == OP_SEND || s->op == OP_COMMITIMM;
}

bool statement_sets_register(const struct statement *s)
{
	switch (s->op) {
	case OP_LOAD:
	case OP_SET:
	case OP_XCHG:
	case OP_FAA:
	case OP_CAS:
	case OP_POLL:
	case OP_RECV:
		return true;
	default:
		return false;
	}
}

static bool has_two_cells(const struct program *p)
{
	return p->shape == SHAPE_LONG || p->shape == SHAPE_WIDE;
}

unsigned program_cells(const struct program *p)
{
	return has_two_cells(p) ? 2u * p->locations : p->locations;
}

unsigned operand_cells(const struct program *p, uint8_t operand, uint8_t cells[2])
{
	if (operand == NOWHERE)
		return 0;
	cells[0] = operand;
	if (!(operand & WHOLE))
		return 1;
	assert(has_two_cells(p));
	cells[0] = (uint8_t)(2 * (operand & ~WHOLE));
	cells[1] = cells[0] + 1;
	return 2;
}

unsigned cell_line(const struct program *p, unsigned cell)
{
	if (p->shape == SHAPE_SAME_LINE && cell == 1)
		return 0;
	return p->shape == SHAPE_WIDE ? cell / 2 : cell;
}

uint8_t cell_initial(const struct program *p, unsigned cell)
{
	return has_two_cells(p) && cell >= 2 ? LONG_INITIAL : 0;
}

unsigned program_places(const struct program *p, struct place places[PROGRAM_PLACES])
{
	unsigned n = 0;
	for (uint8_t t = 0; t < p->threads; t++)
		for (unsigned i = 0; i < p->length[t]; i++)
			if (statement_sets_register(&p->statement[t][i]))
				places[n++] = (struct place){PLACE_REGISTER, t,
							     p->statement[t][i].reg};
	for (uint8_t c = 0; c < program_cells(p); c++)
		places[n++] = (struct place){PLACE_MEMORY, 0, c};
	for (uint8_t c = 0; c < program_cells(p); c++)
		places[n++] = (struct place){PLACE_CRASH, 0, c};
	return n;
}

/* An operand's name; `value` where there is none. */
struct name {
	char text[8];
};

static struct name operand_name(const struct program *p, uint8_t operand, unsigned value)
{
	struct name name;
	if (operand == NOWHERE)
		snprintf(name.text, sizeof(name.text), "%u", value & 0xff);
	else if (operand & WHOLE)
		snprintf(name.text, sizeof(name.text), "%c", location_name[operand & ~WHOLE]);
	else if (has_two_cells(p))
		snprintf(name.text, sizeof(name.text), "%c[%d]", location_name[operand / 2],
			 operand % 2 == 0	  ? 0
			 : p->shape == SHAPE_LONG ? 8
						  : 1);
	else
		snprintf(name.text, sizeof(name.text), "%c", location_name[operand]);
	return name;
}

int place_print(const struct program *p, const struct place *place, char *buf, size_t n)
{
	if (place->kind == PLACE_REGISTER)
		return snprintf(buf, n, "P%u:r%u", place->thread, place->number);
	return snprintf(buf, n, "%s%s", place->kind == PLACE_CRASH ? "crash:" : "",
			operand_name(p, place->number, 0).text);
}

static int print_request(const struct program *p, const struct statement *s, char *buf, size_t n)
{
	char before[24], q = qp_name[s->qp];
	struct name from = operand_name(p, s->from, s->value), to = operand_name(p, s->to, 0);
	snprintf(before, sizeof(before), "%s%s", s->fenced ? "fenced " : "",
		 s->unsignaled ? "unsignaled " : "");
	switch (s->op) {
	case OP_PUT:
		return snprintf(buf, n, "%sput %c %s <- %s", before, q, to.text, from.text);
	case OP_PUTIMM:
		return snprintf(buf, n, "%sputimm %c %s <- %s 7", before, q, to.text, from.text);
	case OP_SEND:
		return snprintf(buf, n, "%ssend %c %s", before, q, from.text);
	case OP_GET:
		return snprintf(buf, n, "%sget %c %s <- %s", before, q, to.text, from.text);
	case OP_REMOTE_CAS:
		return snprintf(buf, n, "%scas %c %s <- %s 0 %u", before, q, to.text, from.text,
				s->value);
	case OP_REMOTE_FAA:
		return snprintf(buf, n, "%sfaa %c %s <- %s %u", before, q, to.text, from.text,
				s->value);
	case OP_AWRITE:
		return snprintf(buf, n, "%sawrite %c %s <- %s", before, q, to.text, from.text);
	case OP_COMMIT:
		return snprintf(buf, n, "%scommit %c %s", before, q, to.text);
	case OP_COMMITIMM:
		return snprintf(buf, n, "%scommitimm %c %s 7", before, q, to.text);
	case OP_COMMITPUT:
		return snprintf(buf, n, "%scommitput %c %s <- %s", before, q, to.text, from.text);
	default:
		return snprintf(buf, n, "%sflush %c %s%s", before, q, to.text,
				s->op == OP_FLUSH_GLOBAL ? " global" : "");
	}
}

int statement_print(const struct program *p, const struct statement *s, char *buf, size_t n)
{
	struct name to = operand_name(p, s->to, 0);
	if (statement_is_request(s))
		return print_request(p, s, buf, n);
	switch (s->op) {
	case OP_STORE:
		return snprintf(buf, n, "%s = %u", to.text, s->value);
	case OP_LOAD:
		return snprintf(buf, n, "r%u = %s", s->reg, operand_name(p, s->from, 0).text);
	case OP_SET:
		return snprintf(buf, n, "r%u = 1", s->reg);
	case OP_XCHG:
		return snprintf(buf, n, "r%u = xchg %s %u", s->reg, to.text, s->value);
	case OP_FAA:
		return snprintf(buf, n, "r%u = faa %s %u", s->reg, to.text, s->value);
	case OP_CAS:
		return snprintf(buf, n, "r%u = cas %s 0 %u", s->reg, to.text, s->value);
	case OP_MFENCE:
		return snprintf(buf, n, "mfence");
	case OP_SFENCE:
		return snprintf(buf, n, "sfence");
	case OP_CLWB:
		return snprintf(buf, n, "clwb %s", to.text);
	case OP_CLFLUSH:
		return snprintf(buf, n, "clflush %s", to.text);
	case OP_POLL:
		return snprintf(buf, n, "r%u = poll %c", s->reg, qp_name[s->qp]);
	default:
		return snprintf(buf, n, "r%u = recv %c %s", s->reg, qp_name[s->qp],
				s->to == NOWHERE ? "" : to.text);
	}
}

static void print_machine(FILE *out, const struct machine *m, const char *knobs)
{
	static const char *const domain[] = {"dmp", "mhp", "wsp"};
	static const char *const torn[] = {"", " line_torn=prefix", " line_torn=any"};
	fprintf(out, "config domain=%s ddio=%s ack_early=%s store_buffer=%u", domain[m->domain],
		m->ddio_any   ? "any"
		: m->ddio_off ? "off"
			      : "on",
		m->ack_late ? "off" : "on", m->store_buffer);
	fprintf(out, "%s%s%s%s%s%s%s%s%s%s%s\n", m->iio_outside ? " iio_in_mhp=off" : "",
		m->iwarp ? " transport=iwarp" : "",
		m->sends_uncovered ? " flush_covers_send=off" : "",
		m->relaxed     ? " dma_order=relaxed"
		: m->lines_any ? " dma_order=any"
			       : "",
		m->read_right ? " read_order=right" : "", m->read_words ? " read_unit=word" : "",
		m->atomics_hca ? " atomics=hca" : "",
		m->commit_visible ? " commit_word=visible" : "", torn[m->torn], knobs[0] ? " " : "",
		knobs);
}

static void print_init(FILE *out, const struct program *p)
{
	static const char *const length[] = {[SHAPE_WORDS] = "",
					     [SHAPE_SAME_LINE] = "",
					     [SHAPE_LONG] = "[9]",
					     [SHAPE_WIDE] = "[2]"};
	fprintf(out, "{");
	for (unsigned l = 0; l < p->locations; l++) {
		fprintf(out, " %c%s@%c", location_name[l], length[p->shape],
			host_name[p->location_host[l]]);
		if (l == 1 && has_two_cells(p))
			fprintf(out, " = %u", LONG_INITIAL);
		fprintf(out, "%s;", l == 1 && p->shape == SHAPE_SAME_LINE ? " after x" : "");
	}
	for (unsigned q = 0; q < p->qps; q++)
		fprintf(out, " qp %c %c %c;", qp_name[q], host_name[p->qp_host[q][0]],
			host_name[p->qp_host[q][1]]);
	fprintf(out, " }\n");
}

static void print_table(FILE *out, const struct program *p)
{
	char text[64];
	unsigned rows = 0;
	for (unsigned t = 0; t < p->threads; t++) {
		snprintf(text, sizeof(text), "P%u@%c", t, host_name[p->thread_host[t]]);
		fprintf(out, "%s%-24s", t ? "| " : " ", text);
		rows = p->length[t] > rows ? p->length[t] : rows;
	}
	fprintf(out, ";\n");
	for (unsigned i = 0; i < rows; i++) {
		for (unsigned t = 0; t < p->threads; t++) {
			text[0] = '\0';
			if (i < p->length[t])
				statement_print(p, &p->statement[t][i], text, sizeof(text));
			fprintf(out, "%s%-24s", t ? "| " : " ", text);
		}
		fprintf(out, ";\n");
	}
}

void program_print(FILE *out, const struct program *p, const char *name, const char *knobs,
		   const char *condition)
{
	struct place places[PROGRAM_PLACES];
	unsigned n = program_places(p, places);
	char text[32];
	fprintf(out, "litmus %s\n", name);
	print_machine(out, &p->machine, knobs);
	print_init(out, p);
	print_table(out, p);
	fprintf(out, "observe ");
	for (unsigned i = 0; i < n; i++) {
		place_print(p, &places[i], text, sizeof(text));
		fprintf(out, "%s%s", i ? ", " : "", text);
	}
	fprintf(out, "\n%s\n", condition[0] ? condition : "exists (true)");
}
