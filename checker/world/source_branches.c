/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The conditional jumps of a store's functions, read from their machine code.
 *
 * Which way a jump goes shows in most cases in which lines run, and then need not be watched: where
 * the way leads to the beginning of a line, and nothing else does.
 */
#include <errno.h>
#include <stdlib.h>
#include "checker/world/source_lines.h"

/* The instructions of one function. */
struct code {
	struct {
		uintptr_t at;
		size_t bytes;
		struct instruction_flow flow;
	} * instruction;
	unsigned n, room;
	bool anywhere; /* some jump can go to any place in it */
};

/* Do all sites of the function begin where an instruction does? Then it was read rightly. */
static bool is_read(const struct source_lines *l, const struct source_function *f,
		    const struct code *code)
{
	unsigned site = f->first_site, end = site + f->sites;
	for (unsigned i = 0; i < code->n && site < end; i++)
		site += l->site[site] == code->instruction[i].at;
	return site == end;
}

/* 0; -ENOMEM; -EINVAL: it cannot be read. */
static int read_code(const struct source_lines *l, const struct source_function *f,
		     struct code *code)
{
	code->n = 0;
	code->anywhere = false;
	for (uintptr_t at = f->begin; at < f->end;) {
		size_t bytes = instruction_bytes((const uint8_t *)at, f->end - at);
		if (!bytes)
			return -EINVAL;
		if (code->n == code->room) {
			unsigned room = code->room ? 2 * code->room : 1024;
			void *more = reallocarray(code->instruction, room,
						  sizeof(*code->instruction));
			if (!more)
				return -ENOMEM;
			code->instruction = more;
			code->room = room;
		}
		code->instruction[code->n].at = at;
		code->instruction[code->n].bytes = bytes;
		code->instruction[code->n].flow = instruction_flow(at, bytes);
		code->anywhere |= code->instruction[code->n].flow.anywhere;
		code->n++;
		at += bytes;
	}
	return is_read(l, f, code) ? 0 : -EINVAL;
}

/* How many ways lead to this place of the function. */
static unsigned ways_to(const struct code *code, uintptr_t at)
{
	unsigned ways = 0;
	for (unsigned i = 0; i < code->n; i++) {
		ways += code->instruction[i].flow.target == at;
		ways += i + 1 < code->n && code->instruction[i + 1].at == at &&
			!code->instruction[i].flow.ends;
	}
	return ways;
}

static int tells(const struct source_lines *l, const struct code *code, uintptr_t to)
{
	return code->anywhere || ways_to(code, to) != 1 ? -1 : source_lines_site(l, to);
}

static bool is_branch(const struct source_lines *l, const struct source_function *f,
		      const struct code *code, unsigned i, struct conditional_jump *jump)
{
	const uintptr_t at = code->instruction[i].at;
	return instruction_is_conditional_jump(at, code->instruction[i].bytes, jump) &&
	       jump->target >= f->begin && jump->target < f->end && jump->next < f->end &&
	       at >= l->site[f->first_site];
}

static unsigned line_of(const struct source_lines *l, unsigned function, uintptr_t at,
			unsigned file)
{
	const struct source_row *row = &l->row[source_lines_row(l, function, at, true)];
	return row->file == file ? row->line : 0;
}

static int take_branches(struct source_lines *l, unsigned number, const struct code *code,
			 unsigned *room)
{
	const struct source_function *f = &l->function[number];
	for (unsigned i = 0; i < code->n; i++) {
		struct source_branch one;
		const struct conditional_jump *jump = &one.jump;
		if (!is_branch(l, f, code, i, &one.jump))
			continue;
		const struct source_row
			*row = &l->row[source_lines_row(l, number, jump->at, false)];
		one.function = number;
		one.file = row->file;
		one.line = row->line;
		one.to[0] = line_of(l, number, jump->next, row->file);
		one.to[1] = line_of(l, number, jump->target, row->file);
		one.tells[0] = tells(l, code, jump->next);
		one.tells[1] = tells(l, code, jump->target);
		if (l->branches == *room) {
			*room = *room ? 2 * *room : 256;
			void *more = reallocarray(l->branch, *room, sizeof(*l->branch));
			if (!more)
				return -ENOMEM;
			l->branch = more;
		}
		l->branch[l->branches++] = one;
	}
	return 0;
}

int source_branches_ways(const struct source_lines *l, source_way *way, void *arg)
{
	struct code code = {0};
	int error = 0;
	for (unsigned n = 0; n < l->functions && error != -ENOMEM; n++) {
		const struct source_function *f = &l->function[n];
		error = f->sites ? read_code(l, f, &code) : -EINVAL;
		for (unsigned i = 0; i < code.n && !error && !code.anywhere; i++) {
			struct conditional_jump jump;
			if (!is_branch(l, f, &code, i, &jump))
				continue;
			if (ways_to(&code, jump.next) == 1)
				way(arg, jump.next);
			if (ways_to(&code, jump.target) == 1)
				way(arg, jump.target);
		}
	}
	free(code.instruction);
	return error == -ENOMEM ? error : 0;
}

int source_branches_find(struct source_lines *l)
{
	struct code code = {0};
	unsigned room = 0;
	int error = 0;
	for (unsigned i = 0; i < l->functions && !error; i++) {
		if (!l->function[i].sites)
			continue;
		error = read_code(l, &l->function[i], &code);
		if (!error)
			error = take_branches(l, i, &code, &room);
		else if (error == -EINVAL)
			error = 0; /* nothing is said of its branches */
	}
	free(code.instruction);
	return error;
}
