/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The findings of a tree of results as SARIF 2.1.0: a rule for each contract that is judged, a
 * result for each finding. The fingerprint is of what stays the same while the bug does: the store,
 * its variant, the configuration, the contract and what it is blamed on. So an edit that moves a
 * line, another seed or another trace make no new alert of it.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <xxhash.h>
#include "report/findings.h"
#include "report/output.h"
#include "report/tree.h"

#define SCHEMA	    "https://json.schemastore.org/sarif-2.1.0.json"
#define FINGERPRINT "tidemarkCause/v1"
#define URI	    (3 * FINDING_FILE + 16)

static json_t *rules_json(const json_t *contracts)
{
	json_t *rules = json_array(), *contract;
	size_t i;
	json_array_foreach((json_t *)contracts, i, contract)
	{
		const char *name = tree_text(contract, "name");
		json_array_append_new(rules, json_pack("{s:s, s:s, s:{s:s}, s:{s:s}}", "id", name,
						       "name", name, "shortDescription", "text",
						       tree_text(contract, "what"),
						       "defaultConfiguration", "level", "error"));
	}
	return rules;
}

static int rule_of(const json_t *contracts, const char *name)
{
	const json_t *contract;
	size_t i;
	json_array_foreach((json_t *)contracts, i, contract)
	{
		if (!strcmp(tree_text(contract, "name"), name))
			return (int)i;
	}
	return -1;
}

/* What is no letter of a path is escaped. */
static void put_uri(const char *file, char uri[URI])
{
	size_t n = (size_t)snprintf(uri, URI, "%s", *file == '/' ? "file://" : "");
	for (; *file && n + 4 < URI; file++) {
		unsigned char c = (unsigned char)*file;
		n += (size_t)snprintf(uri + n, URI - n,
				      isalnum(c) || strchr("-._~/+=@", c) ? "%c" : "%%%02X", c);
	}
}

static json_t *locations_json(const json_t *one)
{
	char uri[URI];
	const char *path = tree_text(one, "file");
	const json_int_t line = json_integer_value(json_object_get(one, "line"));
	if (!line)
		return json_array();
	put_uri(path, uri);
	json_t *file = json_pack("{s:s}", "uri", uri);
	if (*path != '/')
		json_object_set_new(file, "uriBaseId", json_string("%SRCROOT%"));
	return json_pack("[{s:{s:o, s:{s:I}}}]", "physicalLocation", "artifactLocation", file,
			 "region", "startLine", line);
}

/* What stays the same. */
static void identity(const json_t *one, char text[FINDING_TEXT])
{
	snprintf(text, FINDING_TEXT, "%s\n%s\n%s\n%s", tree_text(one, "store"),
		 tree_text(one, "variant"), tree_text(one, "config"), tree_text(one, "cause"));
}

/* Which one of those of its contract that have the same identity? From 1. */
static unsigned occurrence(const json_t *findings, const json_t *one)
{
	char text[FINDING_TEXT], other[FINDING_TEXT];
	const json_t *before;
	unsigned n = 1;
	size_t i;
	identity(one, text);
	json_array_foreach((json_t *)findings, i, before)
	{
		if (before == one)
			break;
		identity(before, other);
		n += !strcmp(tree_text(before, "contract"), tree_text(one, "contract")) &&
		     !strcmp(text, other);
	}
	return n;
}

static json_t *result_json(const json_t *tree, const json_t *one)
{
	const char *contract = tree_text(one, "contract");
	char print[40], text[FINDING_TEXT];
	identity(one, text);
	snprintf(print, sizeof(print), "%016" PRIx64 ":%u", XXH3_64bits(text, strlen(text)),
		 occurrence(json_object_get(tree, "findings"), one));
	return json_pack("{s:s, s:i, s:s, s:{s:s}, s:o, s:{s:s}, s:{s:s, s:s, s:s, s:s, s:s}}",
			 "ruleId", contract, "ruleIndex",
			 rule_of(json_object_get(tree, "contracts"), contract), "level", "error",
			 "message", "text", tree_text(one, "message"), "locations",
			 locations_json(one), "partialFingerprints", FINGERPRINT, print,
			 "properties", "store", tree_text(one, "store"), "variant",
			 tree_text(one, "variant"), "config", tree_text(one, "config"), "cause",
			 tree_text(one, "cause"), "trace", tree_text(one, "trace"));
}

int tree_write_sarif(FILE *out, const void *results_tree)
{
	json_t *tree = tree_for_file(results_tree);
	const json_int_t status = json_integer_value(json_object_get(tree, "status"));
	json_t *results = json_array(), *one;
	size_t i;
	json_array_foreach(json_object_get(tree, "findings"), i, one)
	{
		json_array_append_new(results, result_json(tree, one));
	}
	json_t *all = json_pack(
		"{s:s, s:s, s:[{s:{s:{s:s, s:s, s:o}}, s:s, s:[{s:b, s:I, s:s}], s:o}]}", "$schema",
		SCHEMA, "version", "2.1.0", "runs", "tool", "driver", "name", "tidemark", "version",
		tidemark_version, "rules", rules_json(json_object_get(tree, "contracts")),
		"columnKind", "utf16CodeUnits", "invocations", "executionSuccessful",
		status == EXIT_HELD || status == EXIT_BROKEN, "exitCode", status,
		"exitCodeDescription", tree_text(tree, "verdict"), "results", results);
	int error = all ? tree_write_json(out, all) : -ENOMEM;
	json_decref(all);
	json_decref(tree);
	return error;
}

/* --- annotations --- */

/* What would end a command, or a property of it, is escaped as GitHub says. */
static void put_command(FILE *out, const char *text, bool property)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		if (c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ',')))
			fprintf(out, "%%%02X", c);
		else
			putc(c, out);
	}
}

/* The conclusion comes first: of many annotations the last ones are not shown. */
int tree_write_annotations(FILE *out, const void *tree)
{
	const json_int_t status = json_integer_value(json_object_get(tree, "status"));
	const json_t *one;
	size_t i;
	fprintf(out, "::%s title=tidemark::",
		status == EXIT_HELD	? "notice"
		: status == EXIT_UNSURE ? "warning"
					: "error");
	put_command(out, tree_text(tree, "verdict"), false);
	putc('\n', out);
	json_array_foreach(json_object_get(tree, "findings"), i, one)
	{
		const json_int_t line = json_integer_value(json_object_get(one, "line"));
		fputs("::error ", out);
		if (line) {
			fputs("file=", out);
			put_command(out, tree_text(one, "file"), true);
			fprintf(out, ",line=%" JSON_INTEGER_FORMAT ",", line);
		}
		fprintf(out, "title=%s of ", tree_text(one, "contract"));
		put_command(out, tree_text(one, "name"), true);
		fputs("::", out);
		put_command(out, tree_text(one, "message"), false);
		putc('\n', out);
	}
	return 0;
}
