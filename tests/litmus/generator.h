/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_TESTS_LITMUS_GENERATOR_H
#define TM_TESTS_LITMUS_GENERATOR_H
/*
 * All small litmus programs, numbered. generator.c opens with how.
 */
#include "tests/litmus/program.h"

#define GENERATOR_BOUND 6 /* statements of a program at most */

struct generator;

/* Ends the process when memory is out. */
struct generator *generator_new(void);
void generator_free(struct generator *g);
/* So many numbers have programs of at most `statements` statements; most of them name none. */
uint64_t generator_numbers(const struct generator *g, unsigned statements);
/* The program of this number. False: the number names none: the program is the same as another one
 * but for names, or some statement of it cannot matter. */
bool generator_program(const struct generator *g, uint64_t number, struct program *p);
/*
 * A number that names a program of at most so many statements, drawn with *seed, which changes.
 * First a class is drawn (hardware, hosts and their connections, lengths of the threads), each
 * alike, then one of its programs: else nearly all would be of the largest class. Any program may
 * be drawn; those whose statements have to do with each other are drawn more often.
 */
uint64_t generator_draw(const struct generator *g, uint64_t *seed, unsigned statements);

#endif
