#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_stores_lint.sh SIM-ARCHIVE SIM-SYMS KEPT-SYMS REFUSED-SYMS STORES-ARCHIVE
#
# Are the lists of names right: sim.syms, kept.syms, refused.syms? What a compiler does not refuse and a simulation cannot see, in the objects of the stores:
#   - writable static data: two simulated machines in one process would share it;
#   - a call of a function that is not ours: what it reads or writes is invisible to the
#     tracer, and a power failure does not take back what it allocated.
# Then the same checks on lists and small objects that break a rule each: all must be refused.
# Environment: CC, NM, OBJDUMP, OBJCOPY.
set -eu
sim=$1 syms=$2 kept=$3 refused=$4 stores=$5
NM=${NM:-nm} OBJDUMP=${OBJDUMP:-objdump} OBJCOPY=${OBJCOPY:-objcopy} CC=${CC:-cc}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# The names that an archive defines.
defined() { $NM --defined-only --extern-only "$1" 2>/dev/null | awk 'NF == 3 { print $3 }'; }

defined "$sim" | sort -u >"$tmp/sim"
for library in libc.so.6 libm.so.6; do
	$NM -D --defined-only "$($CC -print-file-name=$library)" | awk '{ sub(/@.*/, "", $3); print $3, library }' library=${library%.so.6}
done | sort -u >"$tmp/system"
[ "$(wc -l <"$tmp/system")" -gt 1000 ] || { echo "the names of libc are not known" >&2; exit 1; }

# lists SIM-SYMS KEPT-SYMS REFUSED-SYMS: prints what is wrong with them; returns whether anything is.
lists() {
	awk -v defined="$tmp/sim" -v system_names="$tmp/system" '
		function wrong(text) { print FILENAME ": " $1 ": " text; bad = 1 }
		BEGIN {
			while ((getline name <defined) > 0) ours[name]
			while ((getline line <system_names) > 0) theirs[line]
		}
		FNR == 1 { list++ }
		/^(#|$)/ { next }
		list == 3 && !/^\t/ {
			if (NF < 3) wrong("what is to be done instead?")
			next
		}
		{
			for (i = 1; i <= (list == 3 ? NF : 1); i++) {
				if ($i in seen) wrong($i " is also in " seen[$i])
				seen[$i] = FILENAME
			}
		}
		list == 1 {
			if (NF != 2) wrong("expected NAME SIM-NAME")
			else if (!($2 in ours)) wrong("nothing defines " $2)
			if ($2 in target) wrong($2 " stands for " target[$2] ", too; objcopy refuses that")
			target[$2] = $1
		}
		list == 2 {
			if ($2 == "program") {
				if (!($1 in ours)) wrong("nothing defines it")
			} else if (NF != 2 || !(($1 " " $2) in theirs))
				wrong("it is not in " $2)
		}
		END {
			for (name in ours)
				if (name ~ /^(rt_|__tsan_)/ && !(name in seen)) {
					print name ": the program has it for stores, and no list does"
					bad = 1
				}
			exit !bad
		}' "$1" "$2" "$3"
}
if lists "$syms" "$kept" "$refused" >&2; then
	exit 1
fi

# What the sim world offers to stores: the targets of the renaming, and what is kept.
{
	awk 'NF == 2 { print $2 }' "$syms"
	awk 'NF == 2 && !/^#/ { print $1 }' "$kept"
	echo _GLOBAL_OFFSET_TABLE_
} | sort -u >"$tmp/offered"

# lint ARCHIVE: prints each violation; returns whether there was any.
lint() {
	local bad=1 text
	# Sections that a program can write to, other than pointers that are constant once relocated.
	text=$($OBJDUMP -h -t "$1" | awk '
		/file format/ { object = $1; sub(/:$/, "", object) }
		function writable(s) { return s ~ /^\.(data|bss|tdata|tbss)/ && s !~ /^\.data\.rel\.ro/ || s == "*COM*" }
		# Idx Name Size ...
		$1 ~ /^[0-9]+$/ && $3 ~ /^[0-9a-f]+$/ && writable($2) && $3 !~ /^0+$/ {
			print object ": section " $2 " holds writable static data" }
		# value flags section size name
		match($0, /(\.[a-z][^ \t]*|\*COM\*)\t/) {
			section = substr($0, RSTART, RLENGTH - 1)
			if (writable(section) && $NF != section)
				print object ": " $NF " is writable static data (" section "): simulated machines would share it"
		}')
	if [ -n "$text" ]; then
		echo "$text"
		bad=0
	fi
	text=$($NM -A --undefined-only "$1" 2>/dev/null | awk -v offered="$tmp/offered" -v own="$tmp/own" '
		BEGIN { while ((getline name <offered) > 0) known[name]; while ((getline name <own) > 0) known[name] }
		!($NF in known) {
			object = $1; sub(/:$/, "", object); sub(/.*:/, "", object)
			print object ": " $NF " is not a function of the sim world: what it does to memory would be invisible to the tracer"
		}')
	if [ -n "$text" ]; then
		echo "$text"
		bad=0
	fi
	return $bad
}

defined "$stores" | sort -u >"$tmp/own"
[ -s "$tmp/own" ] || { echo "$stores defines nothing" >&2; exit 1; }
if lint "$stores" >&2; then
	exit 1
fi

# seeded NAME SOURCE WORDS: an object that must be refused, with these words in the reason.
seeded() {
	printf '%s\n' "$2" >"$tmp/$1.c"
	$CC -fPIC -O0 -fno-builtin -w -c "$tmp/$1.c" -o "$tmp/$1.raw.o"
	$OBJCOPY --redefine-syms="$syms" "$tmp/$1.raw.o" "$tmp/$1.o"
	rm -f "$tmp/$1.a"
	ar rc "$tmp/$1.a" "$tmp/$1.o"
	defined "$tmp/$1.a" >"$tmp/own"
	if ! lint "$tmp/$1.a" >"$tmp/said"; then
		[ -z "$3" ] && return
		echo "the check did not notice: $2" >&2
		exit 1
	fi
	if [ -z "$3" ] || ! grep -qF -- "$3" "$tmp/said"; then
		echo "expected '$3' for: $2" >&2
		cat "$tmp/said" >&2
		exit 1
	fi
}
seeded good 'void *memcpy(void *, const void *, unsigned long); void f(void *a, void *b) { memcpy(a, b, 9); }' ''
seeded constant 'static const char *const names[] = {"a", "b"}; const char *f(int i) { return names[i]; }' ''
seeded bss 'static int counter; int f(void) { return counter++; }' 'counter is writable static data (.bss)'
seeded data 'int level = 3; int f(void) { return level++; }' 'level is writable static data (.data)'
seeded pointers 'static const char *names[] = {"a", "b"}; void f(int i) { names[i] = 0; }' 'names is writable static data'
seeded thread 'static __thread int mine; int f(void) { return mine++; }' 'mine is writable static data (.tbss)'
seeded common '__attribute__((common)) int shared; int f(void) { return shared++; }' 'shared is writable static data (*COM*)'
seeded libc 'char *strfry(char *); void f(char *p) { strfry(p); }' 'strfry is not a function of the sim world'
seeded pmem 'void *pmemobj_open(const char *, const char *); void *f(void) { return pmemobj_open("p", ""); }' 'pmemobj_open is not'
seeded file 'long read(int, void *, unsigned long); void f(char *p) { read(0, p, 9); }' 'read is not'
seeded verbs 'int ibv_fork_init(void); int f(void) { return ibv_fork_init(); }' 'ibv_fork_init is not'

# seeded_list WHICH LINE WORDS: with this line more in sim, kept or refused, the lists must be wrong, in these words.
seeded_list() {
	cp "$syms" "$tmp/list.sim"
	cp "$kept" "$tmp/list.kept"
	cp "$refused" "$tmp/list.refused"
	echo "$2" >>"$tmp/list.$1"
	if ! lists "$tmp/list.sim" "$tmp/list.kept" "$tmp/list.refused" >"$tmp/said" || ! grep -qF -- "$3" "$tmp/said"; then
		echo "expected '$3' for the line '$2' in $1.syms" >&2
		cat "$tmp/said" >&2
		exit 1
	fi
}
seeded_list sim 'strfry sim_strfry' 'strfry: nothing defines sim_strfry'
seeded_list sim 'strfry sim_strlen' 'sim_strlen stands for strlen, too'
seeded_list sim 'strlen sim_malloc' 'strlen is also in'
seeded_list kept 'strlen libc' 'strlen is also in'
seeded_list kept 'sqrt libc' 'sqrt: it is not in libc'
seeded_list kept 'no_such program' 'nothing defines it'
seeded_list refused $'\topen64 abs' 'abs is also in'
seeded_list refused $'no\n\tstrfry' 'what is to be done instead?'

echo "$(ar t "$stores" | wc -l) store objects checked, 11 seeded ones and 10 lists judged right"
