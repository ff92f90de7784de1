/* SPDX-License-Identifier: BSD-3-Clause */
/* See ablate_list.h. */
#include "checker/hunt/ablate_list.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/array.h"
#include "checker/judge/names.h"
#include "scenarios/stores.h"

const char ablate_verdicts[] = "elsewhere redundant blind unreached rare";

const char *ablate_verdict_name(enum ablate_verdict v)
{
	static const char *const name[] = {"elsewhere", "redundant", "blind", "unreached", "rare"};
	return name[v];
}

/* What follows "rare". */
static int read_campaign(struct text *t, struct ablate_row *row, char **rest)
{
	const char *config = text_word(rest), *workload = text_word(rest);
	int contract = contract_parse(text_word(rest));
	row->contract = (unsigned)contract;
	if (contract < 0 || strlen(config) >= ABLATE_WORD || strlen(workload) >= ABLATE_WORD)
		return text_wrong(t, "rare: expected a configuration, a workload and a contract");
	snprintf(row->config, sizeof(row->config), "%s", config);
	snprintf(row->workload, sizeof(row->workload), "%s", workload);
	return 0;
}

static int read_row(struct text *t, char *rest, void *arg)
{
	struct ablate_list *list = arg;
	const char *place = text_word(&rest);
	if (!ARRAY_ROOM_FOR_ONE(list->row, list->n))
		return -ENOMEM;
	struct ablate_row *row = &list->row[list->n];
	int verdict = word_list_find(ablate_verdicts, text_word(&rest));
	if (verdict < 0)
		return text_wrong(t, "the second field is none of: %s", ablate_verdicts);
	if (strlen(place) >= sizeof(row->place))
		return text_wrong(t, "%s: too long for a place", text_show(place).text);
	if (ablate_list_find(list, place))
		return text_wrong(t, "%s twice", place);
	row->verdict = (enum ablate_verdict)verdict;
	int error = verdict == ABLATE_RARE ? read_campaign(t, row, &rest) : 0;
	if (error)
		return error;
	row->why = text_skip_blanks(rest);
	if (!*row->why && !list->n)
		return text_wrong(t, "no reason is given, and none is above");
	if (!*row->why)
		row->why = row[-1].why;
	snprintf(row->place, sizeof(row->place), "%s", place);
	list->n++;
	return 0;
}

int ablate_list_parse(struct ablate_list *list, const char *text, struct input_error *error)
{
	struct text t;
	memset(list, 0, sizeof(*list));
	memset(error, 0, sizeof(*error));
	list->text = strdup(text);
	if (!list->text)
		return -ENOMEM;
	text_start(&t, list->text, strlen(list->text), error);
	return text_rows(&t, read_row, list);
}

int ablate_list_read(struct ablate_list *list, const struct tm_store *store, char *mistake,
		     size_t n)
{
	struct store_file file = store_file(store, STORE_ABLATION);
	struct input_error error;
	int rc = ablate_list_parse(list, file.text, &error);
	if (rc != -EINVAL)
		return rc;
	snprintf(mistake, n, "%s%s: %s", file.path, input_place(&error).text, error.message);
	return -EILSEQ;
}

void ablate_list_free(struct ablate_list *list)
{
	free(list->row);
	free(list->text);
	memset(list, 0, sizeof(*list));
}

const struct ablate_row *ablate_list_find(const struct ablate_list *list, const char *place)
{
	for (unsigned i = 0; i < list->n; i++)
		if (!strcmp(list->row[i].place, place))
			return &list->row[i];
	return NULL;
}
