#!/usr/bin/env bash
# test_cut.sh TIDEMARK TEST_LIVE_PM: tidemark cut on the files that a killed server leaves; what it says of bad ones.
leave_behind=$(realpath "$2")
# shellcheck source=tests/cli/own.sh
. "$(dirname "$0")/../../cli/own.sh"

# bytes FILE: how many bytes of the pool reached the media
bytes() {
	tr -dc a <"$1" | wc -c
}

for seed in 0 1 5; do
	rm -f media cache
	"$leave_behind" media cache
	[ "$(bytes media)" = 64 ] || fail "the shadow let $(bytes media) bytes through"
	said=$(tidemark cut --pm media --cache cache --seed $seed)
	survived=$(($(bytes media) / 64 - 1))
	[ "$said" = "1023 lines were in flight, $survived of them survived" ] || fail "seed $seed: $said"
	case $seed in
	0) [ "$survived" = 0 ] ;;
	1) [ "$survived" = 1023 ] ;;
	*) [ "$survived" -gt 400 ] && [ "$survived" -lt 623 ] ;;
	esac || fail "seed $seed: $survived lines survived"
	cp media before
	tidemark cut --pm media --cache cache --seed 1 | grep -q '^0 lines' || fail "a second cut found lines"
	cmp -s media before || fail "a second cut changed the media"
done

# The same lines for the same number, also where an NVDIMM's backing file has them.
rm media cache
"$leave_behind" media cache
for file in media cache; do
	truncate -s 2M "$file.nvdimm"
	cat "$file" >>"$file.nvdimm"
done
tidemark cut --pm media.nvdimm --cache cache.nvdimm --seed 5 --offset 2097152 >/dev/null
tail -c +2097153 media.nvdimm | cmp -s - before || fail "an offset makes another cut"

bad 'none' tidemark cut --pm cache --cache media
bad 'multiple of 4096' tidemark cut --pm media --cache cache --offset 5
echo "Dear diary" >diary
truncate -s 1M diary
bad 'neither a pool nor' tidemark cut --pm diary --cache cache
bad 'too small' tidemark cut --pm out --cache cache
