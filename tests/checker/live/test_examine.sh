#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# test_examine.sh PROGRAM WRITER
#
# The command `tidemark examine`, what it writes down, and `tidemark replay` of that: words, JSON, exit status,
# one line for bad input. WRITER makes a pool, a cache image and a recording.
tidemark=$(realpath "$1")
writer=$(realpath "$2")
prefix=$tidemark
. "$(dirname "$0")/../../shell.sh"

# word OFFSET BYTES FILE: overwrite bytes of a file; BYTES as for printf's %b
word() {
	printf '%b' "$2" | dd of="$3" bs=1 seek="$1" conv=notrunc status=none
}

# --- a store that keeps its promises, and one that is known not to ---

mkdir erda efactory
"$writer" --write erda erda || exit 70
"$writer" --write efactory efactory || exit 70

run 0 examine --pm efactory/media --cache efactory/cache --history efactory/history --seed 3 --out artefacts
says '^store efactory, variant default, boot 1, cut while it was running$'
says '^12 keys, 53 operations of boot 1, 1 recording$'
says '^[0-9]+ lines? in flight, [0-9]+ of them survived; 11 subsets tried$'
says '^values in the pool: [0-9]+ whole, [0-9]+ torn$'
says '^  MONO  holds$'
says '^  BUF   not judged'
says '^As promised\.$'
[ ! -e artefacts ] || wrong "nothing is broken, and there is an artefact"

run 0 examine --pm erda/media --cache erda/cache --history erda/history --json all.json --save-recovered stands
says '^  DUR   broken, which is known of this store$'
says '^As expected: what breaks is known of this store\.$'
says 'it has happened, [0-9]+ keys: user[0-9]+: PUT [0-9.]+ \(client [0-9], boot 1, .* was acknowledged; then recovery shows'
head -3 stands >out
says '^tidemark-recovered 1$'
says '^keys 12$'
cp all.json out
says '"contract": "DUR"'
says '"verdict": "broken"'
says '"lines_in_flight": [1-9]'
says '"status": 0'
# All lines survived: nothing has happened, but could have.
run 0 examine --pm erda/media --cache erda/cache --history erda/history --seed 1
says '^  DUR   can break, which is known of this store$'
says 'with other lines, [0-9]+ keys? \((--seed [0-9]+|line [0-9]+ (alone|missing))\): user'
# The media alone, with and without the subset that `tidemark cut` applies: the same verdicts.
cp erda/media cut.media
cp erda/cache cut.cache
run 0 cut --pm cut.media --cache cut.cache --seed 7
run 0 examine --pm cut.media --history erda/history --cuts 0
grep -E '^  [A-Z]+ +(broken|holds)' out >after
run 0 examine --pm erda/media --cache erda/cache --history erda/history --seed 7 --cuts 0
sed 's/can break/holds/' out | grep -E '^  [A-Z]+ +(broken|holds)' | sed 's/holds, which.*/holds/' | cmp -s - after ||
	wrong "examine --seed 7 and cut --seed 7 do not agree"
# An NVDIMM's backing file: the data are 2 MiB in, found or said.
for file in media history; do
	truncate -s 2M nvdimm.$file
	cat erda/$file >>nvdimm.$file
done
run 0 examine --pm nvdimm.media --history nvdimm.history
cp out found
run 0 examine --pm nvdimm.media --offset 2097152 --history nvdimm.history
cmp -s out found || wrong "the offset that is found is another one than the one that is said"

# --- a promise that is broken ---

# The last record: a GET of key 11 by client 4. Now it found bytes that no PUT wrote.
last=$((4096 + 64 * 52))
cp efactory/history changed
word $((last + 43)) '\0002' changed
run 1 examine --pm efactory/media --history changed --out artefacts
says '^  RDA   broken$'
says 'user0000000011: GET \(client 4, boot 1, .* returned bytes that no PUT of it wrote$'
says '^A promise is broken\.$'
says '^To see it again: .* replay artefacts/efactory-default-boot1-RDA\.cut$'
artefact=artefacts/efactory-default-boot1-RDA.cut
run 1 replay $artefact
says '^  RDA   broken$'
says "^$artefact: broken RDA\$"
run 1 replay -q $artefact
[ "$(wc -l <out)" -eq 1 ] || wrong "replay -q says more than the verdict"
bad 'without --pmemcheck-log and --repeat' replay --repeat 2 $artefact
bad 'a power cut of a live server; expected a trace of a run' shrink $artefact
run 1 replay -q --json again.json $artefact
grep -q '"verdict": "broken"' again.json || wrong "again.json has no verdict"
"$tidemark" replay -q - <$artefact >out
[ $? -eq 1 ] || wrong "a power cut from standard input"
# It claims that a contract breaks which holds: fixed.
sed 's/^broken RDA happened$/broken DUR happened/' $artefact >fixed.cut
run 4 replay -q fixed.cut
says 'fixed: DUR is not broken any more'
sed 's/^broken RDA happened$/broken none/' $artefact >none.cut
run 1 replay -q none.cut
# A break that is known is written when that is asked for, with where keys stood.
printf 'tidemark-recovered 1\nboot 1\nkeys 1\n3 absent\n' >stood
run 0 examine --pm erda/media --cache erda/cache --history erda/history --recovered stood --boot 2 --out known --known
run 1 replay -q known/erda-default-boot2-DUR.cut

# --- artefacts that are none ---

size=$(wc -c <$artefact)
for n in 0 5 15 20 100 200 300 $((size / 2)) $((size - 1)); do
	head -c "$n" $artefact >cut.cut
	run 2 replay cut.cut
	[ "$(wc -l <err)" -eq 1 ] || wrong "an artefact of $n bytes: expected one line"
done
head=$(LC_ALL=C sed '/^$/q' $artefact | wc -c)
n=0
while [ $n -lt 60 ]; do
	cp $artefact noise.cut
	word $((head + n * (size - head) / 60)) '\0245' noise.cut
	run 2 replay -q noise.cut
	[ "$(wc -l <err)" -eq 1 ] || wrong "a byte of an artefact is changed: expected one line"
	n=$((n + 1))
done
export LC_ALL=C
sed '2s/.*/store erda/' $artefact >bad.cut
bad 'bad.cut:2: expected the store that the media name' replay bad.cut
sed 's/^seed .*/seed x/' $artefact >bad.cut
bad 'bad.cut:5: expected seed and a number' replay bad.cut
sed 's/^cuts .*/cuts 99999/' $artefact >bad.cut
bad 'bad.cut:6: expected cuts and a number' replay bad.cut
sed 's/^broken .*/broken RDB happened/' $artefact >bad.cut
bad 'bad.cut:7: expected broken, a contract' replay bad.cut
sed 's/^operations .*/operations 9/' $artefact >bad.cut
bad 'bytes when it is unpacked' replay bad.cut
head -c 150 $artefact | sed '/^lines/,$d' >bad.cut
bad 'bad.cut:8: expected says' replay bad.cut

# --- other bad input ---

bad 'is no option' examine erda/media
bad 'erda/history: ' examine --pm erda/history --history erda/history
bad 'erda/media: line 1: expected tidemark-recording 1' examine --pm erda/media --history erda/media
bad 'is a recording given twice?' examine --pm erda/media --history erda/history erda/history
printf 'tidemark-recovered 1\nboot 1\nkeys 0\n' >stood
bad 'the keys are known after boot 1, and boot 1 was cut' examine --pm erda/media --history erda/history --recovered stood
head -c 5000 erda/history >short
bad 'short: record 15: the file ends here' examine --pm erda/media --history short
head -c 6000 erda/media >short
bad 'short: expected a pool of' examine --pm short --history erda/history

# A PUT that no recording has: that key cannot be judged.
cp efactory/history lost
word 4096 '\0\0\0\0\0\0\0\0' lost
run 3 examine --pm efactory/media --history lost
says '1 key not judged: user0000000000: PUT 1\.1\.1, whose value was read, is in no recording'
says '^Could not tell\.$'

ended
