/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_REPORT_TEXT_H
#define TM_REPORT_TEXT_H
/*
 * The terminal's text as a function of a tree of results (tree.h). Texts stand in report/text/,
 * each below a line "@NAME". What is in braces there is taken from the tree:
 *
 *   {name}           a field of the object that is looked at, or of one around it; {a.b}: of an
 *                    object in it; {.}: the element itself
 *   {name:-8}        the same as printf() has it; {seconds:.1f} is a real,
 *                    {offset:x} an integer in base 16
 *   {name thing}     "1 thing", "2 things"
 *   {name?A|B}       A if there is such a field that is not "", 0, false or empty, else B
 *   {name=word?A|B}  A if the field is this word or number
 *   {name*A|B}       A for the object, or for each element of the array, with B between them
 *   {!red}           a colour, where the terminal has them
 *   {>}              the rest of the line is wrapped, and goes on below this column, or {>9}
 *   {$name}          a word of a command, quoted for a shell if it must be; {$program}: this one
 *   {+name}          another text
 *
 * "\\n" is the end of a line. At a line's end a backslash joins the next line, without the tabs
 * that this one begins with; it takes the meaning from any other character.
 */
#include <jansson.h>

/* Print this text of the tree. A field that is printed must be there. */
void text_print(const json_t *tree, const char *name);
/* The same as a string, without colours, to be freed; NULL without memory. Frees the tree. */
char *text_made(json_t *tree, const char *name);

#endif
