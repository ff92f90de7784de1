#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_install.sh BUILD SOURCE: `cmake --install` into an empty folder: each file is there and no other, the program says its
# version, headers compile by themselves in C and C++, and `make uninstall` leaves nothing.
set -u
build=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
wrong() {
	echo "$*" >&2
	failed=1
}
stage=$work/stage prefix=$work/stage/usr
DESTDIR=$stage cmake --install "$build" --prefix /usr >"$work/log" 2>&1 || {
	cat "$work/log" >&2
	exit 1
}
tidemark=$prefix/bin/tidemark

# --- what is there

mapfile -t commands < <("$tidemark" --help | awk '/^  [a-z]/ { print $1 }')
[ ${#commands[@]} -gt 15 ] || wrong "tidemark --help names hardly any command: is the pattern right?"
{
	printf '%s\n' bin/tidemark{,-pmreorder} include/tidemark/{tidemark,calls,rt,config,serve,record,rdma_commit,verbs_compat}.h \
		lib/tidemark/libtidemark-{verbs,images,record}.so lib/tidemark/tidemark-images-caller \
		lib/tidemark/record/libtsan.so.2 lib/tidemark/lib/{libibverbs,librdmacm}.so.1 \
		share/bash-completion/completions/tidemark share/zsh/site-functions/_tidemark \
		share/doc/tidemark/{README.md,LICENSE} share/man/man{1/tidemark.1,3/tidemark-store.3} share/pkgconfig/tidemark.pc
	printf 'share/man/man1/tidemark-%s.1\n' "${commands[@]}" pmreorder
	(cd "$source" && find docs -type f) | sed 's|^|share/doc/tidemark/|'
	{ (cd "$source/scenarios" && find litmus -type f) && (cd "$source/examples" && find . -type f | sed 's|^./||'); } | sed 's|^|share/doc/tidemark/examples/|'
	# What `tidemark cc` needs is what the build has.
	(cd "$build" && find sdk -type f) | sed 's|^|lib/tidemark/|'
	# Where there is a Valgrind.
	if [ -x "$build/tidemark-valgrind" ]; then
		printf '%s\n' bin/tidemark-valgrind lib/tidemark/valgrind/{default.supp,vgpreload_core-amd64-linux.so,tidepm-amd64-linux}
	fi
} | LC_ALL=C sort -u >"$work/expected"
(cd "$prefix" && find . ! -type d) | sed 's|^\./||' | LC_ALL=C sort >"$work/found"
diff "$work/expected" "$work/found" >"$work/diff" || wrong "expected < and installed > differ: $(cat "$work/diff")"
[ -x "$tidemark" ] || wrong "the program cannot be executed"
if [ -x "$build/tidemark-valgrind" ]; then
	"$prefix/bin/tidemark-valgrind" --help 2>&1 | grep -q -- --pm-log || wrong "tidemark-valgrind has no tool"
fi
while read -r program; do
	! readelf -d "$program" | grep -E 'R(UN)?PATH' >&2 || wrong "$program looks for libraries at a fixed path"
done < <(find "$prefix/bin" "$prefix/lib" -type f \( -name tidemark -o -name '*.so*' \))

# --- its version, from one place

version=$(sed -nE 's/^project\(tidemark VERSION ([0-9.]+).*/\1/p' "$source/CMakeLists.txt")
[ -n "$version" ] || wrong "CMakeLists.txt has no version: is the pattern right?"
[ "$("$tidemark" --version)" = "tidemark $version" ] || wrong "tidemark --version: $("$tidemark" --version), not $version"
export PKG_CONFIG_PATH=$prefix/share/pkgconfig
[ "$(pkg-config --modversion tidemark)" = "$version" ] || wrong "tidemark.pc has another version"

# --- the headers

# compiles COMPILER STANDARD LANGUAGE
compiles() {
	local header
	command -v "$1" >/dev/null || return 0
	for header in "$prefix"/include/tidemark/*.h; do
		# shellcheck disable=SC2046 # options are several words
		echo "#include <tidemark/$(basename "$header")>" |
			"$1" "-std=$2" -fsyntax-only -Wall -Wextra -Werror $(pkg-config --cflags tidemark) -x "$3" - 2>"$work/errors" ||
			wrong "$1: $(basename "$header"): $(head -n 3 "$work/errors")"
	done
}
compiles gcc gnu17 c
compiles g++ gnu++17 c++
! grep -n '"core/' "$prefix"/include/tidemark/*.h | grep '#include' || wrong "a header includes one that is not installed"

# --- nothing is left

touch "$prefix/include/other.h"
DESTDIR=$stage "$source/scripts/uninstall" "$build" /usr
[ "$(cd "$prefix" && find . ! -type d)" = ./include/other.h ] || wrong "make uninstall leaves $(cd "$prefix" && find . ! -type d)"
[ -z "$(find "$prefix" -path '*/tidemark*')" ] || wrong "make uninstall leaves folders: $(find "$prefix" -path '*/tidemark*')"
exit $failed
