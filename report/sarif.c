/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Findings as SARIF 2.1.0: a rule for each contract that is judged, a result for each finding. The
 * fingerprint is of what stays the same while the bug does: the store, its variant, the
 * configuration, the contract and what it is blamed on. So an edit that moves a line, another seed
 * or another trace make no new alert of it.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include "checker/judge/names.h"
#include "report/findings.h"
#include "report/output.h"

#define SCHEMA	    "https://json.schemastore.org/sarif-2.1.0.json"
#define FINGERPRINT "tidemarkCause/v1"
#define URI	    (3 * FINDING_FILE + 16)

static json_t *rules_json(unsigned judged, unsigned index[TM_CONTRACTS])
{
	json_t *rules = json_array();
	unsigned n = 0;
	for (unsigned k = 0; k < TM_CONTRACTS; k++) {
		if (!(judged & TM_BIT(k)))
			continue;
		index[k] = n++;
		json_array_append_new(rules, json_pack("{s:s, s:s, s:{s:s}, s:{s:s}}", "id",
						       contract_name(k), "name", contract_name(k),
						       "shortDescription", "text", contract_what(k),
						       "defaultConfiguration", "level", "error"));
	}
	return rules;
}

/* What is no letter of a path is escaped. */
static void put_uri(const char *file, char uri[URI])
{
	size_t n = (size_t)snprintf(uri, URI, "%s", *file == '/' ? "file://" : "");
	for (; *file; file++) {
		unsigned char c = (unsigned char)*file;
		n += (size_t)snprintf(uri + n, URI - n,
				      isalnum(c) || strchr("-._~/+=@", c) ? "%c" : "%%%02X", c);
	}
}

static json_t *locations_json(const struct finding *one)
{
	char uri[URI];
	if (!one->line)
		return json_array();
	put_uri(one->file, uri);
	json_t *file = json_pack("{s:s}", "uri", uri);
	if (*one->file != '/')
		json_object_set_new(file, "uriBaseId", json_string("%SRCROOT%"));
	return json_pack("[{s:{s:o, s:{s:i}}}]", "physicalLocation", "artifactLocation", file,
			 "region", "startLine", one->line);
}

static uint64_t fingerprint(const struct campaign_config *cfg, const struct finding *one)
{
	char text[sizeof(cfg->variant) + CAMPAIGN_NAME + BLAME_TEXT + 64];
	int n = snprintf(text, sizeof(text), "%s\n%s\n%s\n%s", cfg->store->name, cfg->variant,
			 cfg->name, one->cause);
	return XXH3_64bits(text, (size_t)n);
}

/* Which one of those of its cell that have the same cause? From 1. */
static unsigned occurrence(const struct findings *f, unsigned number)
{
	const struct finding *one = &f->one[number];
	unsigned n = 1;
	for (unsigned i = 0; i < number; i++)
		n += f->one[i].config == one->config && f->one[i].contract == one->contract &&
		     !strcmp(f->one[i].cause, one->cause);
	return n;
}

static json_t *result_json(const struct findings *f, unsigned number, const unsigned *index)
{
	const struct finding *one = &f->one[number];
	const struct campaign_config *cfg = &f->report->campaign->config[one->config];
	const struct report_cell *cell = &f->report->cell[one->config][one->contract];
	const char *trace = one->number < cell->cases ? cell->one[one->number].trace : NULL;
	char print[40], *text = finding_message(f->report, one);
	snprintf(print, sizeof(print), "%016" PRIx64 ":%u", fingerprint(cfg, one),
		 occurrence(f, number));
	json_t *result = json_pack(
		"{s:s, s:i, s:s, s:{s:s}, s:o, s:{s:s}, s:{s:s, s:s, s:s, s:s, s:s}}", "ruleId",
		contract_name(one->contract), "ruleIndex", (int)index[one->contract], "level",
		"error", "message", "text", text ? text : "", "locations", locations_json(one),
		"partialFingerprints", FINGERPRINT, print, "properties", "store", cfg->store->name,
		"variant", cfg->variant, "config", cfg->name, "cause", one->cause, "trace",
		trace ? trace : "");
	free(text);
	return result;
}

static int write_sarif(FILE *out, const void *all)
{
	return json_dumpf(all, out, JSON_INDENT(1)) || fputc('\n', out) == EOF ? -EIO : 0;
}

/* The file: its rules and results are taken. */
static int save_sarif(json_t *rules, json_t *results, const struct conclusion *end,
		      const char *path)
{
	json_t *all = json_pack(
		"{s:s, s:s, s:[{s:{s:{s:s, s:s, s:o}}, s:s, s:[{s:b, s:i, s:o}], s:o}]}", "$schema",
		SCHEMA, "version", "2.1.0", "runs", "tool", "driver", "name", "tidemark", "version",
		tidemark_version, "rules", rules, "columnKind", "utf16CodeUnits", "invocations",
		"executionSuccessful", end->status == EXIT_HELD || end->status == EXIT_BROKEN,
		"exitCode", end->status, "exitCodeDescription", json_text(end->text), "results",
		results);
	int error = all ? save_file(path, write_sarif, all) : -ENOMEM;
	json_decref(all);
	return error;
}

int findings_sarif(const struct findings *f, const char *path)
{
	unsigned index[TM_CONTRACTS] = {0};
	json_t *rules = rules_json(report_judged(f->report->campaign), index),
	       *results = json_array();
	int error = rules && results ? 0 : -ENOMEM;
	for (unsigned i = 0; i < f->n && !error; i++)
		error = json_array_append_new(results, result_json(f, i, index)) ? -ENOMEM : 0;
	if (!error)
		return save_sarif(rules, results, &f->report->conclusion, path);
	json_decref(rules);
	json_decref(results);
	return error;
}

int conclusion_save_sarif(const struct conclusion *c, const char *path)
{
	return save_sarif(json_array(), json_array(), c, path);
}
