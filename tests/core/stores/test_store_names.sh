#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_store_names.sh TREE
#
# A store describes itself: outside of core/stores no source, no data file and no rule of the build
# names one. Comments may, as an example; so may tests, pages and scripts.
# Then the same check on small files: those that name a store must be refused.
set -eu
CC=${CC:-cc}
cd "$1"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# "ca" is short: only as it is written in a name.
stores=$(cd core/stores && printf '%s\n' */ | tr -d / | paste -sd '|')
long=$(tr '|' '\n' <<<"$stores" | awk 'length > 3' | paste -sd '|')
[ -n "$long" ]

# A file without its comments.
strip() {
	case $1 in
	*.[ch]) "$CC" -fpreprocessed -dD -E -P -x c "$1" ;;
	*) grep -v '^[[:space:]]*#' "$1" || true ;;
	esac
}

# names FILE...: prints each that names a store; returns whether there was any.
names() {
	local file found bad=1
	for file in $(grep -Eli "\<($stores)(_store)?\>" "$@"); do
		strip "$file" >"$tmp/stripped"
		found=$(grep -Em 1 "\<($stores)(_store)?\>" "$tmp/stripped" || grep -Eim 1 "\<($long)\>" "$tmp/stripped") || continue
		printf '%s: %s\n' "$file" "$found"
		bad=0
	done
	return $bad
}

# cmake/Tests.cmake says how the tests are run, and they may name a store.
mapfile -t files < <(find core scenarios faultinject checker report cli fuzz cmake CMakeLists.txt \
	-path core/stores -prune -o -path cmake/Tests.cmake -prune -o \
	\( -name '*.[ch]' -o -name '*.txt' -o -name '*.cmake' \) -type f -print)
[ "${#files[@]}" -gt 200 ]
if names "${files[@]}"; then
	echo "the files above name a store; only its own folder may" >&2
	exit 1
fi

must() { # must refuse|accept FILE TEXT
	local said=accept
	printf '%s\n' "$3" >"$tmp/$2"
	names "$tmp/$2" >/dev/null && said=refuse
	[ "$said" = "$1" ] || { echo "$1 expected of $2: $3" >&2; exit 1; }
}
must refuse a.c 'const char *name = "erda";'
must refuse b.c 'extern const struct tm_store ca_store;'
must refuse c.h '#include "core/stores/remotelog/remotelog.h"'
must refuse d.c 'puts("RemoteLog has no method"); /* a comment */'
must refuse e.txt 'case fail DUR efactory : w'
must accept f.c '/* "erda one_flush" */ int a;'
must accept g.c 'puts("1: CA");'
must accept h.txt '# efactory, for example'
