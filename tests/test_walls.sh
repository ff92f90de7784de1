#!/usr/bin/env bash
# The walls between the rooms (tests/walls.txt): what a source includes and what its object calls belongs to a room
# that its own may use; no header includes itself through others; no two rooms define one name. Then each kind of
# fault is seeded into a scratch copy, and must be found.
#
# test_walls.sh SOURCE_DIR BUILD_DIR; environment: NM, CC
set -u
source=$1 build=$2
nm=${NM:-nm} cc=${CC:-cc}
rooms='core faultinject scenarios checker report cli fuzz'
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# includes TREE: a line "FILE includes HEADER" for each header of the tree
includes()
{
	(cd "$1" && find $rooms -name '*.[ch]' -print0 | xargs -0 grep -H '^#include "') | awk -v tree="$1" '
		{
			colon = index($0, ":")
			file = substr($0, 1, colon - 1)
			split($0, quoted, "\"")
			folder = file
			sub("/[^/]*$", "/", folder)
			if ((getline line < (tree "/" quoted[2])) >= 0)
				print file, "includes", quoted[2]
			else if ((getline line < (tree "/" folder quoted[2])) >= 0)
				print file, "includes", folder quoted[2]
			close(tree "/" quoted[2])
			close(tree "/" folder quoted[2])
		}'
}

# objects TREE BUILD: the objects that the build makes of the tree's sources, but for tests, and those that have no machine
# code yet (cmake/Whole.cmake)
objects()
{
	grep -o ' -o [^ ]*\.c\.o ' "$2/compile_commands.json" | sed 's/ -o //; s/ $//' | grep -v -e '\.dir/tests/' -e '_lto\.dir/' |
		sort -u | sed "s|^|$2/|" | while read -r object; do [ -f "$object" ] && echo "$object"; done
}

# What system libraries define. The provider defines some of it, too, for programs that it is loaded into; no other
# room means that.
for library in libc.so.6 libibverbs.so libibverbs.so.1 librdmacm.so librdmacm.so.1 libpmem.so; do
	"$nm" -D -P --defined-only "$("$cc" -print-file-name=$library)" 2>/dev/null
done | sed 's/[@ ].*//' | sort -u >"$scratch/system"
grep -qx ibv_poll_cq "$scratch/system" || grep -qx ibv_create_qp "$scratch/system" ||
	{ echo "the names of libibverbs are not known" >&2; exit 1; }

# symbols TREE OBJECT...: "TARGET.dir/FILE calls SYMBOL FILE" and "FILE defines SYMBOL"
symbols()
{
	local tree=$1
	shift
	"$nm" -A -P -g "$@" 2>/dev/null | awk -v names="$scratch/system" -v syms="$tree/core/stores/sim.syms" '
		BEGIN {
			while ((getline < names) > 0)
				elsewhere[$1]
			while ((getline < syms) > 0)
				renamed[$1] = $2
			elsewhere["main"]
		}
		{
			object = $1
			sub(/:$/, "", object)
			match(object, /[^\/]*\.dir\//)
			target = substr(object, RSTART)
			sub(/\.o$/, "", target)
			file = target
			sub(/^[^\/]*\.dir\//, "", file)
			name = $2
			if (target ~ /^(stores_raw|verbs_raw)\.dir/ && $3 ~ /[Uwv]/ && name in renamed)
				name = renamed[name]
			if (name in elsewhere || name ~ /^__+(odr_)?asan|^__ubsan/)
				next
			# The hooks of the compiler, for two worlds that never meet in a program.
			if (file ~ /^core\/record\/exact\// && name ~ /^__tsan_/)
				next
			if ($3 ~ /[Uwv]/) {
				called[target " " name]
			} else if (!((name " " file) in seen)) {
				seen[name " " file]
				print file, "defines", name
				by[name] = by[name] " " file
			}
		}
		END {
			for (c in called) {
				split(c, part, " ")
				n = split(by[part[2]], files, " ")
				for (i = 1; i <= n; i++)
					print part[1], "calls", part[2], files[i]
			}
		}'
}

# check TREE OBJECT...: what breaks a rule, a line each
check()
{
	{
		includes "$1"
		symbols "$@"
		(cd "$1" && find $rooms -name '*.[ch]') | sed 's/$/ exists/'
	} | sort -u | awk -v table="$source/tests/walls.txt" '
		function trim(s) { gsub(/^[ \t]+|[ \t]+$/, "", s); return s }
		function wrong(text) { print text; bad = 1 }
		BEGIN {
			while ((getline line < table) > 0) {
				if (line ~ /^[ \t]*(#|$)/)
					continue
				if (split(line, field, "|") != 3)
					wrong("walls.txt: \"" line "\": expected ROOM | FILES | ROOMS")
				room = trim(field[1])
				n = split(field[2], prefix, " ")
				for (i = 1; i <= n; i++)
					room_of_prefix[prefix[i]] = room
				uses[room] = trim(field[3])
				may[room, room]
				n = split(field[3], lower, " ")
				for (i = 1; i <= n; i++) {
					if (!(lower[i] in known))
						wrong("walls.txt: " room " uses " lower[i] ", which is in no row above")
					for (r in known)
						if ((lower[i], r) in may)
							may[room, r]
				}
				known[room]
			}
		}
		function room_of(path,   p, best) {
			if (path in cached)
				return cached[path]
			best = ""
			for (p in room_of_prefix)
				if (index(path, p) == 1 && length(p) > length(best))
					best = p
			return cached[path] = best == "" ? "" : room_of_prefix[best]
		}
		# The room of an object: of its target, or else of its source.
		function room_of_object(path,   room) {
			room = room_of(path)
			if (room != "")
				return room
			sub(/^[^\/]*\.dir\//, "", path)
			return room_of(path)
		}
		function rule(room) {
			return "tests/walls.txt: " room " may use " (uses[room] == "" ? "nothing" : uses[room])
		}
		$2 == "exists" && room_of($1) == "" { wrong($1 ": in no room of tests/walls.txt") }
		$2 == "includes" {
			from = room_of($1)
			to = room_of($3)
			if (!((from, to) in may))
				wrong($1 ": includes " $3 " of " to "; " rule(from))
			included[$1] = included[$1] " " $3
		}
		$2 == "calls" {
			from = room_of_object($1)
			to = room_of($4)
			file = $1
			sub(/^[^\/]*\.dir\//, "", file)
			if (!((from, to) in may))
				calls[file ": uses " $3 " of " $4 " (" to "); " rule(from)] = $3
		}
		$2 == "defines" {
			if ($3 in owner && room_of(owner[$3]) != room_of($1) && !(doubled[$3]++))
				wrong($3 ": defined in " owner[$3] " (" room_of(owner[$3]) ") and in " $1 " (" \
				      room_of($1) "); a name belongs to one room")
			owner[$3] = $1
		}
		function visit(file,   n, i, next_file) {
			state[file] = 1
			n = split(included[file], next_file, " ")
			for (i = 1; i <= n; i++) {
				if (state[next_file[i]] == 1)
					wrong(file ": includes " next_file[i] ", which includes it, too")
				else if (!state[next_file[i]])
					visit(next_file[i])
			}
			state[file] = 2
		}
		END {
			for (text in calls) # which of two definitions is meant is not known
				if (!(calls[text] in doubled))
					wrong(text)
			for (file in included)
				if (!state[file])
					visit(file)
			exit bad
		}'
}

mapfile -t objects < <(objects "$source" "$build")
missing=$(
	printf '%s\n' "${objects[@]}" | sed 's/.*\.dir\///; s/\.o$//' | sort -u >"$scratch/compiled"
	cd "$source" && find core faultinject scenarios checker report cli -name '*.c' | sort | comm -23 - "$scratch/compiled"
)
[ -z "$missing" ] || { echo "not compiled, so it is not known what these use: $missing" >&2; exit 1; }
check "$source" "${objects[@]}" >&2 || exit 1

# --- what is seeded is found ---

# seeded WHAT PATTERN OBJECT...: check must fail on the scratch tree, with a line like this
seeded()
{
	local what=$1 pattern=$2 out
	shift 2
	if out=$(check "$scratch/tree" "${objects[@]}" "$@"); then
		echo "a seeded $what is not found" >&2
		exit 1
	fi
	if [ "$(grep -c . <<<"$out")" -ne 1 ] || ! grep -qE "$pattern" <<<"$out"; then
		printf 'a seeded %s is reported as:\n%s\n' "$what" "$out" >&2
		exit 1
	fi
}

# compile FILE: an object of a source of the scratch tree, in a build folder like the real one
compile()
{
	local object=$scratch/seeded.dir/$1.o
	mkdir -p "$(dirname "$object")"
	"$cc" -c -o "$object" "$scratch/tree/$1" || exit 1
	echo "$object"
}

mkdir "$scratch/tree"
(cd "$source" && cp -r $rooms "$scratch/tree") || exit 1

echo '#include "checker/explore/explore.h"' >"$scratch/tree/core/rt/seeded.c"
seeded include 'core/rt/seeded.c: includes checker/explore/explore.h of checker/explore; tests/walls.txt: core/rt may use'
rm "$scratch/tree/core/rt/seeded.c"

printf '%s\n' '#include "core/rt/seeded_b.h"' >"$scratch/tree/core/rt/seeded_a.h"
printf '%s\n' '#include "core/rt/seeded_a.h"' >"$scratch/tree/core/rt/seeded_b.h"
seeded 'circle of includes' 'core/rt/seeded_.\.h: includes core/rt/seeded_.\.h, which includes it, too'
rm "$scratch"/tree/core/rt/seeded_?.h

echo 'int explore_open(void); int seeded(void); int seeded(void) { return explore_open(); }' \
	>"$scratch/tree/core/rt/seeded.c"
seeded symbol 'core/rt/seeded.c: uses explore_open of checker/explore/explore.c \(checker/explore\); tests/walls.txt: core/rt may use' \
	"$(compile core/rt/seeded.c)"
rm "$scratch/tree/core/rt/seeded.c"

echo 'int explore_open(void); int explore_open(void) { return 0; }' >"$scratch/tree/checker/hunt/seeded.c"
seeded 'double definition' 'explore_open: defined in .*explore/explore.c.* and in .*hunt/seeded.c|explore_open: defined in .*hunt/seeded.c.* and in .*explore/explore.c' \
	"$(compile checker/hunt/seeded.c)"
