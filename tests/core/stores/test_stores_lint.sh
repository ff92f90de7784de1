#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_stores_lint.sh SIM-ARCHIVE SIM-SYMS STORES-ARCHIVE
#
# What a compiler does not refuse and a simulation cannot see, in the objects of the stores:
#   - writable static data: two simulated machines in one process would share it;
#   - a call of a function that is not ours: what it reads or writes is invisible to the
#     tracer, and a power failure does not take back what it allocated.
# Then the same check on small objects that break a rule each: all must be refused.
# Environment: CC, NM, OBJDUMP, OBJCOPY.
set -eu
sim=$1 syms=$2 stores=$3
NM=${NM:-nm} OBJDUMP=${OBJDUMP:-objdump} OBJCOPY=${OBJCOPY:-objcopy} CC=${CC:-cc}

# These touch no memory of the store. (strlen, strcmp and the like do; on PM that load
# would be lost, so a store compares with its own loop or memcmp.)
harmless='__errno_location _GLOBAL_OFFSET_TABLE_ htonl htons ntohl ntohs'

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# The names that an archive defines.
defined() { $NM --defined-only --extern-only "$1" 2>/dev/null | awk 'NF == 3 { print $3 }'; }

# What the sim world offers to stores: the targets of the renaming, the compiler's hooks, the runtime interface.
{
	awk 'NF == 2 { print $2 }' "$syms"
	defined "$sim" | grep -E '^(__tsan_|rt_)'
	tr " " "\n" <<<"$harmless"
} | sort -u >"$tmp/offered"

# A renamed symbol that nobody defines would fail only in the store that first uses it.
if awk 'NF == 2 { print $2 }' "$syms" | sort -u | comm -23 - <(defined "$sim" | sort -u) | grep .; then
	echo "sim.syms: nothing in $sim defines the names above" >&2
	exit 1
fi

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
seeded libc 'char *strcpy(char *, const char *); void f(char *p) { strcpy(p, "x"); }' 'strcpy is not a function of the sim world'
seeded pmem 'void pmem_deep_persist(void *, long); void f(void *p) { pmem_deep_persist(p, 8); }' 'pmem_deep_persist is not'
seeded printf 'int vsnprintf(char *, unsigned long, const char *, __builtin_va_list); void f(char *p, __builtin_va_list v) { vsnprintf(p, 9, "", v); }' 'vsnprintf is not'
seeded verbs 'int ibv_fork_init(void); int f(void) { return ibv_fork_init(); }' 'ibv_fork_init is not'

echo "$(ar t "$stores" | wc -l) store objects checked, 11 seeded ones judged right"
