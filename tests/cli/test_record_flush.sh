#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_record_flush.sh TIDEMARK SOURCES
#
# What RDMA FLUSH, RDMA Commit and READ make durable of a recording is what they do in the simulation: of a program with one of
# each, by the rules of docs/model.md; and of the methods of the taxonomy, by what the simulation says of each on each hardware.
# shellcheck source=tests/cli/record_server.sh
. "$(dirname "$0")/record_server.sh"

# --- a program ---

# shellcheck disable=SC2046 # one word or none
run 0 gcc -g -O1 -Wall -Wextra -Werror $(verbs_flags) -I"$sources" -o flush "$sources/tests/cli/record_flush.c" -libverbs -lpmem
# way WAY HARDWARE...: it counts on that. The words say of which hardware that is right; of all others it is wrong.
way() {
	local way=$1 right=" ${*:2} " hardware status
	rm -f pool
	run 0 tidemark record -q --pm pool --out flush.rec -- ./flush pool "$way"
	for hardware in ddio=on ddio=any ddio=off ddio=off,flush_covers_send=off domain=mhp \
		domain=mhp,iio_in_mhp=off,ddio=any domain=mhp,iio_in_mhp=off,ddio=any,flush_covers_send=off; do
		status=1
		[[ $right != *" $hardware "* ]] || status=0
		# shellcheck disable=SC2046 # words
		run $status tidemark images flush.rec --recover './flush {} check' $(printf ' --knob %s' ${hardware//,/ })
		[ $status -eq 0 ] || says 'of 1 cause' 'lost: the landing of 8 bytes'
	done
}
caches='domain=mhp'
any="$caches domain=mhp,iio_in_mhp=off,ddio=any domain=mhp,iio_in_mhp=off,ddio=any,flush_covers_send=off"
past="ddio=off ddio=off,flush_covers_send=off $any"
# shellcheck disable=SC2086 # words
{
	way write-flush $past
	way write-read $past
	way write-commit ddio=on ddio=any $past
	way word-commit ddio=on ddio=any $past
	way write-elsewhere $caches
	way write-outside $caches
	way send-flush ddio=off $caches domain=mhp,iio_in_mhp=off,ddio=any
	way send-outside ddio=off $caches domain=mhp,iio_in_mhp=off,ddio=any
	way send-read $past
	way send-commit $caches
}

# The payload of a Commit is durable as it becomes visible, or afterwards: then the power may fail between the two.
rm -f pool
run 0 tidemark record -q --pm pool --out word.rec -- ./flush pool word-commit
run 0 tidemark images word.rec --recover './flush {} check' --image 3: # after the acknowledgement, a Commit and its payload
says 'before the RDMA Commit, event 3' 'nothing was in flight'
run 0 tidemark images word.rec --recover './flush {} check' --image 3: --knob commit_word=visible
says 'before the RDMA Commit, event 3' 'the line in flight is left'

# --- the taxonomy's methods ---

# Whatever a variant promises or not: does the contract hold?
cat >judge.sh <<'END'
tidemark examine --pm "$1" --history history --until "${TIDEMARK_CUT_NS:-0}" >"$1.verdict" 2>&1
if grep -q "^  $2  *holds" "$1.verdict"; then exit 0; fi
grep -q "^  $2  *broken" "$1.verdict" && exit 1
exit 3
END
# agrees CONTRACT VARIANT KNOB HARDWARE:VERDICT...: with that knob of the store the contract holds or is broken on each hardware; in
# the simulation, and of the recording.
agrees() {
	local contract=$1 variant=$2 knob=$3 row hardware verdict knobs status
	shift 3
	record remotelog "$variant" 4 --knob "$knob"
	for row; do
		hardware=${row%:*} verdict=${row#*:} status=1
		[ "$verdict" != holds ] || status=0
		mapfile -t knobs < <(printf -- '--knob\n%s\n' ${hardware//,/ })
		tidemark crashtest remotelog --variant "$variant" --knob "$knob" --workload ww --runs 40 --states 2000 --no-traces \
			"${knobs[@]}" >out 2>&1 || true
		grep -q "^  $contract  *[a-z-]*  *$verdict" out ||
			fail "the simulation does not say that $contract of $variant $verdict with $hardware"
		run $status tidemark images pool.rec --history history --most 3 "${knobs[@]}" --recover "sh judge.sh {} $contract"
		! grep -q 'exit status 3' out || fail 'there is no verdict'
	done
}
caches=domain=mhp,ack_early=off
buffers=$caches,iio_in_mhp=off,ddio=any
agrees DUR w2 get=client ddio=on:broken ddio=any:broken ddio=off:holds $buffers:holds
agrees DUR w3 get=client ddio=on:broken ddio=off:broken $caches:holds $buffers:broken
agrees DUR wc get=client ddio=on:holds ddio=any:holds ddio=off:holds $buffers:holds
agrees DUR cw2 get=client ddio=on:broken ddio=off:holds $buffers:holds
agrees DUR cwc get=client ddio=on:holds ddio=off:holds $buffers:holds
agrees DUR s1 get=client ddio=on:holds ddio=off:holds
# Non-temporal stores of the server, which fences no more than it has to where caches survive.
agrees FSCK cs2 copy=nt $caches:holds $caches,nt_stores=buffered:broken
agrees FSCK cs1 copy=nt $caches:holds $caches,nt_stores=buffered:holds
