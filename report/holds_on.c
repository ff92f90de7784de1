/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Surprises that are one: a contract that breaks on the default hardware and nearly all other, and
 * holds on the few kinds that the store needs.
 */
#include <stdio.h>
#include <string.h>
#include "checker/judge/names.h"
#include "report/report.h"
#include "scenarios/stores.h"

bool same_surprise(const struct report *r, unsigned a, unsigned b, unsigned k)
{
	const struct campaign *c = r->campaign;
	const struct report_cell *x = &r->cell[a][k], *y = &r->cell[b][k];
	return x->surprise && y->surprise && same_group(&c->config[a], &c->config[b]) &&
	       c->cell[a][k].broken == c->cell[b][k].broken && x->strange == y->strange &&
	       x->often == y->often;
}

/* The store, or variant, on the default hardware. */
static unsigned home_of(const struct campaign *c, unsigned config)
{
	for (unsigned i = 0; i < c->configs; i++)
		if (same_group(&c->config[i], &c->config[config]) &&
		    !strcmp(c->config[i].name, "default"))
			return i;
	return config;
}

/* "ddio=off, domain=mhp": of so many rows of the group; *broken: in how many others it breaks. */
static unsigned list_rows(const struct report *r, unsigned home, unsigned k, char text[REPORT_ROWS],
			  unsigned *broken)
{
	const struct campaign *c = r->campaign;
	unsigned holds = 0;
	*broken = 0;
	*text = '\0';
	for (unsigned i = 0; i < c->configs; i++) {
		const struct campaign_config *cfg = &c->config[i];
		if (!same_group(cfg, &c->config[home]) || cfg->shape ||
		    !is_default_config(cfg->name))
			continue;
		*broken += c->cell[i][k].broken;
		if (report_mark(r, i, k) != '.')
			continue;
		size_t len = strlen(text);
		snprintf(text + len, REPORT_ROWS - len, "%s%s", holds++ ? ", " : "", cfg->name);
	}
	return holds;
}

bool report_holds_on(const struct report *r, unsigned config, unsigned k, struct holds_on *out)
{
	const struct campaign *c = r->campaign;
	unsigned broken;
	out->home = home_of(c, config);
	if (!c->cell[config][k].broken || !same_surprise(r, out->home, config, k))
		return false;
	unsigned holds = list_rows(r, out->home, k, out->rows, &broken);
	if (!holds || holds >= broken)
		return false;
	out->contracts = 0;
	for (unsigned other = 0; other < TM_CONTRACTS; other++) {
		char rows[REPORT_ROWS];
		if (r->cell[out->home][other].surprise && c->cell[out->home][other].broken &&
		    report_surprise(&r->cell[out->home][other]) ==
			    report_surprise(&r->cell[out->home][k]) &&
		    list_rows(r, out->home, other, rows, &broken) == holds &&
		    !strcmp(rows, out->rows))
			out->contracts |= TM_BIT(other);
	}
	out->first = config == out->home && !(out->contracts & (TM_BIT(k) - 1));
	return true;
}

void holds_on_condition(const struct holds_on *h, char text[REPORT_ROWS])
{
	char all[256], rows[REPORT_ROWS], *save = NULL;
	size_t len = 0;
	hardware_print(&hardware_default, true, all, sizeof(all));
	memcpy(rows, h->rows, sizeof(rows));
	*text = '\0';
	for (char *row = strtok_r(rows, ", ", &save); row; row = strtok_r(NULL, ", ", &save)) {
		size_t name = strcspn(row, "=") + 1;
		for (const char *at = all; *at; at += strcspn(at, " "), at += *at == ' ') {
			char word[64];
			snprintf(word, sizeof(word), "%.*s", (int)strcspn(at, " "), at);
			if (!strncmp(at, row, name) && !strstr(text, word))
				len += (size_t)snprintf(text + len, REPORT_ROWS - len, "%s%s",
							len ? "+" : "", word);
		}
	}
}
