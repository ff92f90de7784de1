/* SPDX-License-Identifier: BSD-3-Clause */
/* What stores expect of themselves. */
#include "checker/judge/expect.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checker/judge/names.h"
#include "checker/judge/rows.h"
#include "core/hardware/hardware.h"

#define MAX_ROWS     640
#define MAX_CANARIES 64

static struct expectation row[MAX_ROWS];
static struct expect_control control[EXPECT_CONTROLS];
static struct expect_canary canary[MAX_CANARIES];
static unsigned rows, controls, canaries;

static int read_line(struct text *t, char *line, void *arg);
static struct row_table table = {.text = STORE_EXPECTED, .row = read_line};

/* --- reading --- */

static int read_control(struct text *t, const char *store, char *rest)
{
	char *config = text_word(&rest), *slash = strchr(config, '/');
	if (controls == EXPECT_CONTROLS)
		return text_wrong(t, "too many controls");
	if (slash)
		*slash = '\0';
	struct expect_control *c = &control[controls++];
	c->store = store;
	c->variant = slash ? config : "default";
	c->hardware = slash ? slash + 1 : config;
	if ((strcmp(c->hardware, "default") && strcmp(c->hardware, "ack_early=off")) ||
	    *text_word(&rest))
		return text_wrong(t, "expected \"control [VARIANT/]HARDWARE\", \"default\" or "
				     "\"ack_early=off\"");
	return 0;
}

static int read_canary(struct text *t, const char *store, char *rest)
{
	if (canaries == MAX_CANARIES)
		return text_wrong(t, "too many canaries");
	struct expect_canary *c = &canary[canaries++];
	c->store = store;
	c->mutant = text_word(&rest);
	c->variant = text_word(&rest);
	c->workload = text_word(&rest);
	c->knob = text_word(&rest);
	if (!*c->workload || *text_word(&rest))
		return text_wrong(t, "expected \"canary MUTANT VARIANT WORKLOAD|* [NAME=VALUE]\"");
	if (!strcmp(c->workload, "*"))
		c->workload = NULL;
	if (!*c->knob)
		c->knob = NULL;
	return 0;
}

/* Is `part` one of the parts of a column's name, "PART+PART"? */
static bool has_part(const char *column, const char *part, size_t len)
{
	for (;; column++) {
		size_t n = strcspn(column, "+");
		if (n == len && !strncmp(column, part, len))
			return true;
		column += n;
		if (!*column)
			return false;
	}
}

static bool any_shape_has(const struct tm_store *store, const char *part)
{
	for (const struct tm_shape *shape = store->shapes; shape && shape->name; shape++)
		if (has_part(shape->name, part, strlen(part)))
			return true;
	return false;
}

bool expect_configs_are(const char *store, const char *list)
{
	const struct tm_store *s = store_find(store);
	char word[96];
	for (size_t len; len = strcspn(list, ","), len < sizeof(word); list += len + 1) {
		struct hardware hw = hardware_default;
		const char *expected, *slash;
		snprintf(word, sizeof(word), "%.*s", (int)len, list);
		slash = strchr(word, '/');
		slash = slash ? slash + 1 : word;
		const struct tm_variant *v = variant_find(s, word);
		if (*slash == '!') {
			if (!any_shape_has(s, slash + 1))
				return false;
		} else if (strcmp(slash, "*") && strcmp(slash, "default") &&
			   strcmp(slash, "shapes") && !store_has_column(s, slash) &&
			   !(v && !v->breaks) && hardware_switch(&hw, slash, &expected))
			return false;
		if (!list[len])
			return true;
	}
	return false;
}

/* That of a configuration: "VARIANT/ddio=off mtu=256", "tight+ddio=off". */
static struct hardware hardware_of(const char *config)
{
	struct hardware hw = hardware_default;
	const char *slash = strchr(config, '/'), *expected;
	char parts[96], *save = NULL;
	snprintf(parts, sizeof(parts), "%s", slash ? slash + 1 : config);
	for (char *part = strtok_r(parts, " +", &save); part; part = strtok_r(NULL, " +", &save)) {
		struct hardware with = hw;
		if (strchr(part, '=') && !hardware_switch(&with, part, &expected))
			hw = with;
	}
	return hw;
}

/* Does the hardware have all of one of the list's, "ddio=on+domain=dmp,line_torn=any"? *bad: the
 * list has other words. */
static bool is_one_of(const char *list, const struct hardware *hw, bool *bad)
{
	bool any = false, all = true;
	for (size_t len;; list += len + 1) {
		struct hardware with = *hw;
		const char *expected;
		char part[64];
		len = strcspn(list, "+,");
		snprintf(part, sizeof(part), "%.*s", (int)len, list);
		*bad |= len >= sizeof(part) || hardware_switch(&with, part, &expected);
		all &= !memcmp(&with, hw, sizeof(with));
		if (list[len] == '+')
			continue;
		any |= all;
		all = true;
		if (!list[len])
			return any;
	}
}

static int read_contract(struct text *t, const struct expectation *like, const char *name,
			 const char *reason)
{
	const struct expectation *above = rows ? &row[rows - 1] : NULL;
	struct expectation *e = &row[rows];
	if (rows == MAX_ROWS)
		return text_wrong(t, "too many rows");
	*e = *like;
	e->contract = contract_parse(name);
	e->why = reason;
	if (!*e->why && above && above->store == e->store && above->contract == e->contract)
		e->why = above->why;
	rows++;
	if (e->contract < 0)
		return text_wrong(t, "the second field is not a contract");
	return *e->why ? 0 : text_wrong(t, "no reason is given, and none is above");
}

static int read_row(struct text *t, const char *store, const char *first, char *rest)
{
	struct expectation like = {.store = store, .conditional = !strcmp(first, "if")};
	bool bad = false;
	like.configs = like.conditional ? text_word(&rest) : first;
	char *contracts = text_word(&rest), *save = NULL;
	const char *verdict = text_word(&rest), *reason = text_skip_blanks(rest);
	like.open = !strcmp(verdict, "may-break");
	like.broken = like.open || !strcmp(verdict, "broken");
	if (like.conditional)
		is_one_of(like.configs, &hardware_default, &bad);
	else
		bad = !expect_configs_are(store, like.configs);
	if (bad)
		return text_wrong(t, "%s: no such hardware%s", text_show(like.configs).text,
				  like.conditional ? "" : ", shape or variant");
	if (!like.broken && strcmp(verdict, "holds"))
		return text_wrong(
			t, "the third field is none of \"holds\", \"broken\", \"may-break\"");
	char *name = strtok_r(contracts, ",", &save);
	int rc = name ? 0 : read_contract(t, &like, contracts, reason);
	for (; name && !rc; name = strtok_r(NULL, ",", &save))
		rc = read_contract(t, &like, name, reason);
	return rc;
}

static int read_line(struct text *t, char *line, void *arg)
{
	const char *store = ((const struct tm_store *)arg)->name, *first = text_word(&line);
	if (!strcmp(first, "control"))
		return read_control(t, store, line);
	if (!strcmp(first, "canary"))
		return read_canary(t, store, line);
	return read_row(t, store, first, line);
}

bool expect_names(const char *store, const char *list, const char *config)
{
	bool shape = store_has_column(store_find(store), config), named = false;
	size_t len;
	for (;; list += len + 1) {
		len = strcspn(list, ",");
		if (*list == '!' && shape && has_part(config, list + 1, len - 1))
			return false;
		named |= len == strlen(config) && !strncmp(list, config, len);
		named |= len == 1 && *list == '*' && (shape || is_default_config(config));
		named |= shape && len == strlen("shapes") && !strncmp(list, "shapes", len);
		if (!list[len])
			return named;
	}
}

/* A variant is no hardware. */
static bool is_met(const struct expectation *e, const char *config)
{
	const struct tm_store *store = store_find(e->store);
	struct hardware hw = hardware_of(config);
	bool bad;
	return (!variant_find(store, config) || store_has_column(store, config)) &&
	       is_one_of(e->configs, &hw, &bad);
}

static const struct expectation *find(const char *store, const char *config, int contract)
{
	for (unsigned i = rows; i-- > 0;)
		if (row[i].contract == contract && !strcmp(row[i].store, store) &&
		    (row[i].conditional ? is_met(&row[i], config)
					: expect_names(store, row[i].configs, config)))
			return &row[i];
	return NULL;
}

/* What breaks too rarely to be found each time counts as kept: the control's own runs decide. */
static bool keeps(const struct tm_store *store, const struct expect_control *control, int c)
{
	char config[96];
	snprintf(config, sizeof(config), "%s/%s", control->variant, control->hardware);
	const struct expectation *e = find(store->name, config, c);
	if (!e)
		e = find(store->name, control->hardware, c);
	return e ? !e->broken || e->open : store->promises & TM_BIT(c);
}

/* --- asking --- */

const char *expect_mistake(void)
{
	return rows_read(&table);
}

const struct expectation *expect_find(const char *store, const char *config, int contract)
{
	rows_read(&table);
	return find(store, config, contract);
}

unsigned expect_watched(const struct tm_store *store, const char *config)
{
	unsigned set = 0;
	for (unsigned c = 0; c < TM_CONTRACTS; c++) {
		const struct expectation *e = expect_find(store->name, config, (int)c);
		if (e ? !e->broken : store->promises & TM_BIT(c))
			set |= TM_BIT(c);
	}
	return set;
}

bool expect_holds(const char *store, int contract)
{
	bool any = false;
	for (unsigned i = 0; default_configs[i]; i++) {
		const struct expectation *e = expect_find(store, default_configs[i], contract);
		if (e && e->broken)
			return false;
		any |= e != NULL;
	}
	return any;
}

bool expect_switch_breaks(const char *store, const char *knob)
{
	for (int c = 0; c < TM_CONTRACTS; c++) {
		const struct expectation *e = expect_find(store, knob, c);
		if (e && e->broken && expect_holds(store, c))
			return true;
	}
	return false;
}

const struct expect_control *expect_controls(unsigned *n)
{
	rows_read(&table);
	*n = controls;
	return control;
}

unsigned expect_keeps(const struct expect_control *c)
{
	unsigned set = 0;
	for (int k = 0; k < TM_CONTRACTS; k++)
		if (keeps(store_find(c->store), c, k))
			set |= TM_BIT(k);
	return set;
}

const struct expect_canary *expect_canary(const char *mutant)
{
	rows_read(&table);
	for (unsigned i = 0; i < canaries; i++)
		if (!strcmp(canary[i].mutant, mutant))
			return &canary[i];
	return NULL;
}
