#!/usr/bin/env bash
# test_cut.sh TIDEMARK TEST_LIVE_PM: tidemark cut on the files that a killed server leaves; what it says of bad ones.
set -eu
tidemark=$1
leave_behind=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

die() {
	echo "test_cut: $*" >&2
	exit 1
}

# bytes FILE: how many bytes of the pool reached the media
bytes() {
	tr -dc a <"$1" | wc -c
}

# refused WORD OPTION...: it ends with status 2 and one line that has WORD
refused() {
	local word=$1 status=0
	shift
	"$tidemark" cut "$@" >out 2>err || status=$?
	[ "$status" = 2 ] || die "cut $*: status $status"
	[ "$(wc -l <err)" = 1 ] && grep -q -- "$word" err || die "cut $*: $(cat err)"
}

for seed in 0 1 5; do
	rm -f media cache
	"$leave_behind" media cache
	[ "$(bytes media)" = 64 ] || die "the shadow let $(bytes media) bytes through"
	said=$("$tidemark" cut --pm media --cache cache --seed $seed)
	survived=$(($(bytes media) / 64 - 1))
	[ "$said" = "1023 lines were in flight, $survived of them survived" ] || die "seed $seed: $said"
	case $seed in
	0) [ "$survived" = 0 ] ;;
	1) [ "$survived" = 1023 ] ;;
	*) [ "$survived" -gt 400 ] && [ "$survived" -lt 623 ] ;;
	esac || die "seed $seed: $survived lines survived"
	cp media before
	"$tidemark" cut --pm media --cache cache --seed 1 | grep -q '^0 lines' || die "a second cut found lines"
	cmp -s media before || die "a second cut changed the media"
done

# The same lines for the same number, also where an NVDIMM's backing file has them.
rm media cache
"$leave_behind" media cache
for file in media cache; do
	truncate -s 2M "$file.nvdimm"
	cat "$file" >>"$file.nvdimm"
done
"$tidemark" cut --pm media.nvdimm --cache cache.nvdimm --seed 5 --offset 2097152 >/dev/null
tail -c +2097153 media.nvdimm | cmp -s - before || die "an offset makes another cut"

refused 'No such file' --pm nothing --cache cache
refused 'cache' --pm media
refused 'whole number' --pm media --cache cache --seed x
refused 'no option' --pm media --cache cache media
refused 'none' --pm cache --cache media
refused 'multiple of 4096' --pm media --cache cache --offset 5
echo "Dear diary" >diary
truncate -s 1M diary
refused 'neither a pool nor' --pm diary --cache cache
refused 'too small' --pm out --cache cache
