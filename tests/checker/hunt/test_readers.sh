#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# test_readers.sh BUILD SOURCES: the readers of what others write run what once broke them, and what their corpora begin
# with (fuzz/forever); the good ones of these are good.
build=$1 sources=$2
here=$(mktemp -d) || exit 70
trap 'rm -rf "$here"' EXIT
failures=0
for reader in trace ops log recording; do
	mkdir "$here/$reader"
	case $reader in
	trace) cp "$sources"/tests/traces/*.trace "$here/trace" ;;
	recording)
		for text in "$sources"/fuzz/seeds/recording.*; do
			printf "$(cat "$text")" >"$here/recording/${text##*/}"
		done
		;;
	*) cp "$sources/fuzz/seeds/$reader".* "$here/$reader" ;;
	esac
	if ! "$build/fuzz_$reader" "$here/$reader"/* >"$here/out" 2>&1; then
		failures=$((failures + 1))
		echo "FAILED: fuzz_$reader" >&2
		tail -n 20 "$here/out" >&2
	fi
done
format=$sources/core/record/format.h
# So that the seeds are not all refused for a reason that the test does not look for.
"$build/tidemark" crashtest erda --ops "$sources/fuzz/seeds/ops.1" --runs 1 --states 1 --no-traces >"$here/out" 2>&1
[ $? -le 1 ] || { echo "FAILED: ops.1 is no good list: $(cat "$here/out")" >&2; failures=$((failures + 1)); }
"$build/tidemark" images --log "$sources/fuzz/seeds/log.1" --pool zero --pmemcheck-log "$here/log.out" >"$here/out" 2>&1
[ $? -eq 0 ] || { echo "FAILED: log.1 is no good log: $(cat "$here/out")" >&2; failures=$((failures + 1)); }
{
	printf '%s%s\n' "$(sed -n 's/^#define RECORD_NAME *"\(.*\)".*/\1/p' "$format")" \
		"$(sed -n 's/^#define RECORD_MAGIC *RECORD_NAME "\(.*\)\\n"$/\1/p' "$format")"
	printf '\0\0\0\0\0\0\0\0'
	size=$((4096 + $(wc -c <"$here/recording/recording.1")))
	printf "\\$(printf %o $((size % 256)))\\$(printf %o $((size / 256)))"
	head -c $((4096 - 34)) /dev/zero
	cat "$here/recording/recording.1"
} >"$here/good"
"$build/tidemark" images "$here/good" --pmemcheck-log "$here/recording.out" >"$here/out" 2>&1
[ $? -eq 0 ] || { echo "FAILED: recording.1 is no good recording: $(cat "$here/out")" >&2; failures=$((failures + 1)); }
[ $failures -eq 0 ]
