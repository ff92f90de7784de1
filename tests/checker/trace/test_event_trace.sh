#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# test_event_trace.sh PROGRAM FOLDER...
#
# The cause that an event trace names is the right one: for each trace in the folders, these words stand below
# "== why". The traces of tests/causes are of seeded bugs. Each trace must be in the table.
tidemark=$(realpath "$1")
shift
. "$(dirname "$0")/../../shell.sh"
traces=0

# TRACE | words ; words ; !words that must not be there
cat >"$here/table" <<'TABLE'
efactory-BUF | lost: log+0x180..0x187 ; client 1's PUT k1 ; no flush covers it before the power fails ; !2nd PUT k2 ; client 1's PUT k2
efactory-DUR | lost: log+0x100..0x107 ; no flush covers it before the power fails ; by server/verifier (core/stores/efactory/ ; kept: table+0x20 ; Client 1's PUT k1 was acknowledged while what client 1's PUT k1 wrote by RDMA at log+0x100..0x107 was still in the cache ; so the power failure took it back ; !the switch
efactory-LIN | Client 1's PUT k1 was acknowledged at ; became visible only at ; log+0x180..0x1bf ; delay 8us ; client 2's 2nd GET k1 came in between ; !power failure
efactory-ddio=off-DUR | lost: log+0x200..0x21f ; still on its way from the NIC to PM ; no flush covers it ; delay 100ns ; !in the cache
efactory-recover_copy_cached-KEEP | it does not break if every line is kept ; lost: log+0x180..0x187 ; no flush covers it, and none would have come ; early: log+0x40..0x43 ; (core/stores/efactory/layout.c: ; delay 8us ; server dies ; which persist_accepted() asks for at core/stores/efactory/recover.c: ; with bug=none this trace does not break
efactory-recover_clears-KEEP | the power failed between two steps ; table+0x20..0x27 ; written by server (core/stores/efactory/recover.c: ; which server (core/stores/efactory/ ; was not written yet ; found nothing at k1 ; !lost:
erda-BUF | lost: log+0x400..0x413 ; none would have come had the power held ; log+0x440..0x453, written later by the RDMA write of client 1's PUT k2, survived
erda-DUR | lost: log+0x300..0x313 ; no flush covers it, and none would have come had the power held ; kept: table+0x
erda-KEEP-two-writers | lost: log+0x3c0..0x3d3 ; lost: log+0x380..0x393 ; what client 1's PUT k1 wrote ; what client 2's PUT k1 wrote ; kept: table+0x2c8 ; (core/stores/erda/server.c: ; and that was durable, but a reader after recovery found nothing at k1
erda-LIN-two-dead-writers | unfinished: server/server for client 1's PUT k1 ; unfinished: server/server for client 2's PUT k1 ; table+0x2c8..0x2cf ; operations that were not finished ; before completion 1: delay for ever ; before post 3: delay for ever ; !power failed
erda-LIN | became visible only at ; log+0x500..0x50b ; acknowledged is not yet visible ; delay 8us
erda-MONO | Client 1 read c1.put1 while what client 1's PUT k1 wrote by RDMA at log+0x300..0x313 ; no flush covers it
erda-NORES | what client 1's DELETE k1 wrote by RDMA at log+0x300..0x30b ; no flush covers it ; read load k1
erda-domain=wsp-KEEP | the power failed between two steps ; table+0x2c8..0x2cf ; (core/stores/erda/server.c: ; log+0x380..0x393 ; was not written yet ; !lost:
erda-line_torn=on-DUR | lost: log+0x300..0x313 ; no flush covers it
erda-ack_aside-transport=iwarp-OK | client 1's PUT k1 failed with EIO ; delay 2us ; failed: server/qp1 of client 1's 1st PUT k1, at 5.646 us: NAK, remote access error ; What client 1's 1st PUT k1 asked for failed at 5.646 us (server/qp1: NAK, remote access error ; so client 1's PUT k1 failed with EIO ; It takes the switch bug=ack_aside, which acknowledge_idle() asks for at core/stores/erda/notices.c: ; with bug=none this trace does not break
erda-drop_late-OK | client 1's PUT k2 failed with EIO ; delay 200us ; It takes the switch bug=drop_late, which inform() asks for at core/stores/erda/clean.c: ; with bug=none this trace does not break ; !power failed
efactory-get_no_flush-MONO | lost: log+0x100..0x107 ; no flush covers it, and none would have come ; early: log+0xd8..0xd9, written after that by server/server for client 2's GET k1 ; Client 2 read c1.put1 while ; !not fenced
efactory-get_no_flush-FSCK | lost: log+0x100..0x107 ; no flush covers it, and none would have come ; early: log+0xd8..0xd9 ; server/server for client 2's GET k1
efactory-get_no_fence-MONO | lost: log+0x100..0x107 ; it was flushed but not fenced: flushed by server/server for client 2's GET k1 (core/stores/efactory/verifier.c: ; early: log+0xd8..0xd9 ; !no flush covers ; It takes the switch bug=get_no_fence, which persist_value() asks for at core/stores/efactory/verifier.c: ; with bug=none this trace does not break
efactory-get_flush_header-MONO | lost: log+0x100..0x107 ; no flush covers it ; early: log+0xd8..0xd9 ; server/server for client 2's GET k1
efactory-flag_visible_first-FSCK | lost: log+0x100..0x107 ; early: log+0xd8..0xd9, written after that by server/verifier ; no flush covers it before the power fails ; us later, by server/verifier ; !0.0 us later
efactory-bg_no_flush-MONO | lost: log+0x100..0x107 ; no flush covers it, and none would have come ; early: log+0xd8..0xd9 ; server/verifier
efactory-one_flush-KEEP | lost: log+0xc8..0xcf ; it was flushed but not fenced ; the next fence of that task had not come yet ; found nothing at k1
efactory-header_unflushed-MONO | lost: log+0xc8..0xcf, written by server/server for client 1's PUT k1 ; no flush covers it before the power fails ; lost: log+0x100..0x107
efactory-entry_unflushed-MONO | lost: table+0x20..0x27, written by server/server for client 1's PUT k1 ; written after its line was last flushed, and no other would have come ; early: log+0xd8..0xd9
efactory-born_durable-RDA | It breaks without any power failure: client 2's GET k1 met table+0x20..0x27, written by server/server for client 1's PUT k1 (core/stores/efactory/server.c: ; too early: the RDMA write of client 1's PUT k1 ; and read log+0x100..0x107 at ; before the RDMA write of client 1's PUT k1 came there ; foreign bytes at k1 ; !unfinished ; it takes the switch bug=born_durable, which write_header() asks for ; !ef_timeout_ns()
efactory-get_head_only-LIN | window: started anew when the operation returned, the store answers otherwise ; Look first at newest_durable() ; unfinished: the RDMA write of client 1's PUT k1 ; delay 2us ; client 2 found nothing at k1 ; !ef_mark()
efactory-get_waits-LIVE | does not terminate: client 2's GET k1 reads log+0x180..0x187 again and again, which the RDMA write of client 1's PUT k1 has not written ; it waits for c1, which is dead ; before post 3: delay for ever
efactory-recover_head_only-KEEP | between two steps ; table+0x20..0x27 ; log+0x100..0x107 ; was not written yet ; recovery (core/stores/efactory/recover.c: ; then wrote table+0x20..0x27 ; the value that was expected is still at log+0x80..0x87, but it is not read there ; refused: recovery looked at log+0x100..0x107, and then the check at core/stores/efactory/recover.c: ; did not go back to the value before ; !flush
efactory-short_timeout-LIN | overwritten: server/verifier (core/stores/efactory/verifier.c: ; log+0xd8..0xd9 ; delay 5ms ; Client 1's PUT k1 was acknowledged, but what
erda-no_flip-LIN | then at look() ; unfinished: server/server for client 1's PUT k1 (core/stores/erda/server.c: ; table+0x2c8..0x2cf ; found nothing at k1
erda-reply_first-LIN | is acknowledged at ; table+0x2c8..0x2cf is written by server/server for client 1's PUT k1 (core/stores/erda/server.c: ; became visible only at ; reply_first=on ; handle_update()
efactory-recover_no_crc-RDA | !flush ; it does not break if every line is kept ; was cut by the power failure, as may happen, and must not be taken; but no check of recovery looked at it ; acceptable() asks for at core/stores/efactory/recover.c:
efactory-recover_head_only-lost-KEEP | !flush ; lost, as may happen: log+0x100..0x107 ; and recovery refused it, as it must: the check at core/stores/efactory/recover.c: ; in acceptable(), did not hold; the version before it is whole at log+0x80..0x87, but recovery did not go back to it
erda-crc_no_value-RDA | !flush ; as may happen, and must not be taken ; for the reader's GET k1 the check at core/stores/erda/object.c: ; in erda_object_check(), held; the version before it is whole at log+0xc..0x4b
erda-tag_ignored-RDA | It breaks without any power failure ; read_versions() asks for at core/stores/erda/client.c: ; !recovery
erda-crc_unchecked-RDA | It breaks without any power failure: client 2's GET k1 met table+0x2c8..0x2cf, written by server/server for client 1's PUT k1 (core/stores/erda/server.c: ; and read log+0x340..0x34b at ; before the RDMA write of client 1's PUT k1 came there ; foreign bytes at k1 ; which read_object() asks for
remotelog-restart_reuse-LIN | read, at ; log+0x80..0xbf as the RDMA write of client 1's 1st PUT k1 had left it at 100004. ; it takes this to happen: c1 c1.put1 before post 6: server dies ; message 3 packet 1 try 1: delay 100ms ; switch qps=two
rdmp_kv-free_early-KEEP | the power failed between two steps ; objects+0xa..0xb ; (core/stores/rdmp_kv/server.c: ; was not written yet ; It takes the switch free=early ; with free=never this trace does not break
rdmp_kv-no_log_cc_adp-DUR | objects+0x90..0x97, which the RDMA Commit of client 2's PUT k1 writes next, was not written yet ; window: it is so until the RDMA Commit of client 2's PUT k1 writes objects+0x90..0x97, posted in end_by_payload() ; recovery (core/stores/rdmp_kv/table.c: ; the value that was expected is still at objects+0x42..0x49, but it is not read there ; It takes the switch method=cc_adp ; It takes the switch backend=none ; !kv_format()
rdmp_kv-log_in_pm_literal-RDA | Client 2's GET k1 met what the RDMA Commit of client 1's PUT k1 at objects+0x50..0x57 had written for an operation that was not finished ; It takes the switch copy=late, which write_value() asks for ; with copy_flags=on this trace does not break ; !power failed
rdmp_kv-cc_adp-commit_word=visible-MONO | Client 2 read c1.put1 while what client 1's PUT k1 wrote by RDMA Commit at objects+0x50..0x57 was still in the cache ; it was written after its line was last flushed ; the next one would have come 21.747 us later, by the RDMA Commit of client 1's PUT k1 ; It takes the switch method=cc_adp
erda-create_unordered-FSCK | No cause could be named; the structural check after recovery says: entries in use ; It takes the switch create=unordered, which create()
erda-create_unordered-OK | so the failure took them back: after recovery, ; !back: .
erda-old_unread-KEEP | and no fence of that task had come yet ; !no fence of that task ever follows
erda-old_unread-LIVE | at table+0x2c8..0x2cf ; !table+0x2c8..0x2cf and table+0x2c8..0x2cf
rdmp_kv-lines_forgotten-RDA | Client 2's GET k1 read objects+0xb as server/server for client 1's PUT k3 ; !came too early
rdmp_kv-get_newest-LIVE | reads objects+0x40..0x4b again and again ; which the RDMA write of client 1's PUT k1 has not written ; it waits for c1, which is dead ; It takes the switch get_prev=off
remotelog-w2-DUR | the RDMA FLUSH of client 1's PUT k1 at ; does not reach the cache (ddio=on); no flush of the CPU covers it, and none would have come had the power held
remotelog-s3-send-DUR | what client 1's PUT k1 wrote by SEND at buffers+0xc0..0xe7 was still on its way from the NIC to PM: the RDMA FLUSH of client 1's PUT k1 at 4.160 us does not cover what a SEND leaves (flush_covers_send=off); no flush of the CPU covers it ; !another range
remotelog-read_other_qp-DUR | the RDMA READ of client 1's PUT k1 at ; is of another connection, and covers only what that one writes; no flush of the CPU covers it
remotelog-read_other_qp-ddio=off-DUR | still on its way from the NIC to PM: the RDMA READ of client 1's PUT k1 at ; is of another connection ; by itself it would have come to PM 0.397 us later
remotelog-repost_early-DUR | the RDMA FLUSH of client 1's 2nd PUT k1, at the moment when the power failed, covers only what its own connection writes ; no flush of the CPU covers it ; !0.000 us
remotelog-repost_early-LIVE | After the run, GET k1 does not return what was just put ; !After recovery
remotelog-imm_truncated-LIVE | No cause could be named; client 1's operation does not terminate ; It takes the switch bug=imm_truncated, which whole_number() asks for
saw_imm-commit_first-NORES | between two steps ; it takes more than the first power failure ; !the second power failure
efactory-empty_absent-KEEP | No cause could be named ; what differs is only that a reader after recovery found nothing ; It takes the switch bug=empty_absent ; !too early
efactory-receive_assumed-LIVE | What client 1's 1st PUT k1 asked for failed at ; (c1: ibv_post_recv fails: ENOMEM); so client 1's operation does not terminate: the same steps repeat, with no chosen delay that will end ; It takes the switch bug=receive_assumed
pilaf-rooms_forgotten-LIVE | After recovery, an operation does not terminate: the reader's GET reads table+0x180..0x1bf again and again ; !between two steps ; !nothing was lost
rdmp_kv-undo_unflushed-RDA | what server wrote (core/stores/rdmp_kv/layout.c: ; at log+0xb8..0xbf was still in the cache: it was written after its line was last flushed ; !as may happen ; It takes the switch bug=undo_unflushed
redo_log-raw-DUR | lost: ring+0x140..0x147, written by the RDMA write of client 1's PUT k1 ; the RDMA READ of client 1's PUT k1 at 2.939 us does not reach the cache (ddio=on) ; no flush of the CPU covers it before the power fails ; by server/applier ; It takes the switch method=raw
redo_log-raw_small-LIVE | the server itself reads ring+0x120..0x127 again and again ; which the RDMA write of client 3's PUT k1 has not written ; it waits for c3, which is dead ; with ring=large this trace does not break ; !kv_format()
pilaf-no_crc2-KEEP | lost, as may happen: table+0x98..0x9f, written by server/server for client 1's PUT k1 (core/stores/pilaf/server.c: ; lost, as may happen: table+0xa0..0xa7 ; !table+0x98..0xa7 ; recovery refused it ; in pair_whole(), did not hold ; the version before it is whole at pairs+0x2..0x9, but recovery did not go back to it ; It takes the switch no_crc2=on
pilaf-literal-KEEP | lost: pairs+0x8..0x9, written by server/server for client 1's PUT k1 ; no flush covers it ; early: table+0x80..0x87 ; It takes the switch place=in_place ; It takes the switch flush=none
pilaf-unbounded-LIVE | client 1's GET k1 reads table+0x80..0xbf again and again ; which look() asks for at core/stores/pilaf/client.c: ; with probe_unbounded=off this trace does not break
pilaf-undo_late-KEEP | lost: table+0xa0..0xa7, written by server (core/stores/pilaf/recover.c: ; flushed but not fenced ; it takes the second power failure ; It takes the switch delete=key_first ; It takes the switch bug=undo_late, which pilaf_recover() asks for
rfp-cleared_hybrid-RDA | c1.get1 landing message 3 packet 1 line 1: delay 200us ; No cause could be named ; It takes the switch fresh=clear ; with fresh=number the run goes another way, and this trace does not break ; !power failed
octopus-persistent-RDA | lost, as may happen: blocks+0x40..0x47, written by the RDMA write of client 1's PUT k1 ; no check of recovery looked at blocks+0x40..0x47 ; It takes the switch persist=cpu ; with persist=none the run goes another way
octopus-literal-RDA | client 2's GET k1 read ; blocks+0x80..0x9f as the RDMA write of client 1's PUT k1 had left it ; It takes the switch lock=early, which begin_put() asks for ; with lock=held this trace does not break ; !power failed
forca-public-reader-RDA | client 1's GET k1 reads log+0x180..0x1bf ; too early: the RDMA write of client 2's 1st PUT k1 comes only at ; it takes the switch collect=sixth ; with collect=never this trace does not break ; !power failed
forca-public_each-MONO | Client 2 read c1.put1 while what client 1's PUT k1 wrote by RDMA at log+0x0..0x7 was still in the cache ; so the power failure took it back ; with collect=never this trace does not break
saw_imm-recycled-RDA | Client 2's GET k1 read log+0x40..0x47 as the RDMA write of client 1's PUT k2 left it ; It takes the switch reuse=at_once, which reuse() asks for at core/stores/saw_imm/saw_imm.c: ; with reuse=off this trace does not break ; !power failed
saw_imm-grace-RDA | Client 2's GET k1 read log+0x0..0x7 as the RDMA write of client 1's PUT k2 left it ; It takes the switch reuse=grace ; !power failed
saw_imm-imm_bytes8-RDA | the reader's GET read ; as server/server for the reader's PUT (core/stores/kv_place.c: ; !between two steps ; life 1: put key 1 ; it takes the switch imm_offset=bytes8, which commit_at() asks for
octopus-lease-NORES | Client 1's PUT k1 was reported as failed ; so a reader after recovery read c1.put1 ; it takes the switch lease=on, which expire() asks for
herd-undo_assumed-DUR | lost: undo+0x0..0x7 ; it was written after its line was last flushed ; server dies ; It takes the switch bug=undo_assumed, which undo() asks for
herd-numbers_one-RDA | server/qp1 - message 1 packet 1 try 1: delay 5ms ; No cause could be named ; It takes the switch numbers=one ; with numbers=on this trace does not break ; !power failed
hydradb-dma_any-RDA | c1.put1 order message 1 packet 1 landed 2: 1 ahead ; c1.put1 landing message 1 packet 1 line 3: delay 100ns ; The power failed, and nothing was lost: table+0x20..0x27 ; !between two steps
hydradb-free_now-RDA | client 2's 2nd GET k1 ; items+0x98..0x9f as server/server ; checks, in hydradb_fits() at core/stores/hydradb/item.c: ; it holds ; reading message 1 packet 1 line 3: delay 500ns ; It takes the switch bug=free_now, which evict_later() asks for ; !power failed
hydradb-early_check-RDA | Client 2's 2nd GET k1 ; reading message 1 packet 1 line 2: delay 100ms ; It takes the switch check=before, which is_current() asks for ; with check=after this trace does not break ; !power failed
hydradb-unnoted-RDA | Client 2's 3rd GET k1 ; reading message 1 packet 1 line 3: delay 5ms ; It takes the switch renewal=unnoted, which lease() asks for ; with renewal=noted this trace does not break ; !power failed
nessie-visible-DUR | lost: index+0x50..0x57, written by the compare-and-swap of client 1's 2nd PUT k1 ; data+0x40..0x51, written by the RDMA write of client 1's 3rd PUT k1 ; the first one would have come at the same moment, by the RDMA Commit of client 1's 3rd PUT k1 ; !none would have come ; When the power failed, what client 1's 2nd PUT k1 wrote by compare-and-swap at ; !acknowledged while ; it was written after its line was last flushed ; early: data+0x0..0x3f, written after index+0x50..0x57 by the RDMA write of client 1's 3rd PUT k1 ; process dies ; it takes the switch reads=visible
nessie-reuse_blind-RDA | foreign bytes at k1 ; with reuse_now=off this trace does not break ; !power failed
nessie-zero-LIN | Client 2's DELETE k2 was acknowledged, but client 2's GET k2 read index+0x0..0x7 as the compare-and-swap of client 2's DELETE k2 left it ; It takes the switch delete=zero ; !power failed
nessie-clock-LIN | overwritten: the RDMA write of client 1's 2nd PUT k2 wrote over it ; It takes the switch clock=off, which too_slow() asks for ; It takes the switch share=tight ; !kv_format() ; !power failed
nessie-literal-LIN | c1.put4 landing message 1 packet 1 line 1: delay 5ms ; It takes the switch flush=none ; with delete=mark this trace does not break ; !power failed
hydradb-delete_stays-DUR | Client 3's DELETE k1 after recovery was acknowledged, but the reader's GET read items+0x8..0xf as server/server ; so a reader after recovery read load k1 ; !recovery (core ; !but the power failed ; it takes the switch bug=delete_stays
rdmp_kv-undo_forgotten-BUF | The power failed between two steps ; so a reader after recovery found nothing at k1, and a reader after recovery read load k2 ; !but the power failed
redo_log-oldest_first-ack_early=off-MONO | window: it is wrong wherever the power fails after server/server for client 3's DELETE writes ring+0x1b0..0x1b3, in redo_fill() ; written by server/server for client 3's DELETE (core/stores/redo_log/record.c: ; !reader's DELETE
hydradb-guardian_late-LIN | client 2's 3rd GET k1 read items+0x8..0xf as server/server ; server dies ; !came too early ; !missed: ; it takes the switch bug=guardian_late
hydradb-reply_front-RDA | the reader's GET k1 is not known to have read in PM what another operation wrote ; a reader after the run found foreign bytes at k1 ; !after recovery ; !read nothing
saw_imm-first_line-RDA | lost: log+0xc0..0xc7
nessie-cas_early-DUR | does not reach the cache (ddio=on); no other request covers it before the power fails: the first one would have come 2.956 us later, by the RDMA Commit of client 1's PUT k1 ; !no flush of the CPU
octopus-hold_shared-LIN | overwritten: server/server for client 1's PUT k1 (core/stores/octopus/lock.c: ; so client 2 found nothing at k2 ; It takes the switch bug=hold_shared, which handle_request() asks for ; !overwritten: server/server for client 2's GET
octopus-read_unlocked-RDA | read blocks+0x80..0x9f as the RDMA write of client 1's PUT k1 left it, and came too early for the RDMA write of client 1's PUT k1 at blocks+0x0..0x3f ; !(core/stores/octopus/server.c:1
octopus-hold_shared-OK | No cause could be named; what differs is that client 1's PUT k1 failed with EPROTO ; It takes the switch bug=hold_shared ; !left it ; !too early
pilaf-first_free-FSCK | Server/server for the reader's PUT writes table+0x60..0x67, in change() at ; called by handle_put() at ; a store that is started anew after that answers wrongly ; so the structural check after a life says: ; life 2: put key 2 ; It takes the switch bug=first_free, which find() asks for ; !survived ; !The power failed
pilaf-crc2_first-LIVE | Nothing went differently: the store does not get through the load phase. It takes the switch bug=crc2_first, which change() asks for at core/stores/pilaf/server.c: ; !does not start
nessie-pending_early-MONO | lost: index+0x50..0x57, last written by the compare-and-swap of client 1's PUT k1 ; It takes the switch bug=pending_early, which replace() asks for
rfp-number_unchecked-DUR | No cause could be named ; the reader's GET is not known to have read in PM ; !as server/server ; it takes the switch bug=number_unchecked
redo_log-applied_first-DUR | between two steps ; which server/applier (core/stores/redo_log/record.c: ; ) writes next, was not written yet ; !the check at ; it takes the second power failure ; it takes the switch bug=applied_first
hydradb_pair-own_end-LIN | client 2's 2nd GET k1 read s1/items+0x8..0xf as s1/server (core/stores/hydradb/server.c: ; left it ; It takes the switch pointers_end=own ; server 1 is cut off for ever
TABLE

for trace in $(find "$@" -name '*.trace' | sort); do
	name=$(basename "$trace" .trace)
	traces=$((traces + 1))
	"$tidemark" replay "$trace" >"$here/replayed" 2>&1
	status=$?
	# One line, so that words are found wherever lines are wrapped; either of eFactory's logs is "log".
	sed -n '/^== why/,$p' "$here/replayed" >"$here/words"
	tr '\n' ' ' <"$here/words" | tr -s ' ' | sed 's/log-[ab]+/log+/g' >"$here/why"
	[ $status -eq 1 ] || wrong "$name: exit status $status"
	row=$(awk -v name="$name |" 'index($0, name) == 1 { print; exit }' "$here/table"); [ -n "$row" ] || { wrong "$name: not in the table"; continue; }
	echo "${row#*|}" | tr ';' '\n' | sed 's/^ *//; s/ *$//' >"$here/expected"
	while read -r words; do
		case $words in
		!*) ! grep -qF -e "${words#!}" "$here/why" || wrong "$name: says '${words#!}'" ;;
		*) grep -qF -e "$words" "$here/why" || wrong "$name: does not say '$words'" ;;
		esac
	done <"$here/expected"
	# What no power failure has broken speaks of none, and of no recovery if the server lived.
	grep -qE ' power |: server dies' "$trace" || ! grep -qE 'power fail|recovery|no flush' "$here/why" ||
		wrong "$name: speaks of a power failure where there is none"
	# The last paragraph is one sentence that ends as sentences do.
	tail -n 2 "$here/words" | head -n 1 | grep -q '\.$' || wrong "$name: no sentence at the end"
done

# What repeats is told once, with its source line; --all tells every event.
folded() { # TRACE MOST WORDS: so many lines at most, among them these words
	"$tidemark" replay "$top/tests/traces/$1.trace" >"$here/words" 2>&1
	[ "$(wc -l <"$here/words")" -le "$2" ] || wrong "$1: more than $2 lines"
	tr -s ' ' <"$here/words" | grep -qF -e "$3" || wrong "$1: does not fold to '$3'"
}
top=$(realpath "$(dirname "$0")/../../..")
folded nessie-visible-DUR 170 'stores 80 bytes at index+0x0..0x4f, each 0000000000000000, in 10 pieces core/stores/nessie/recover.c:'
folded pilaf-unbounded-LIVE 80 '... the 8 lines above again, 264 more times, until 56192576.251 us'
"$tidemark" replay --all "$top/tests/traces/pilaf-unbounded-LIVE.trace" >"$here/words" 2>&1
[ "$(grep -c 'reads 64 bytes at table+0xc0$' "$here/words")" -gt 250 ] && ! grep -q 'lines above again, ' "$here/words" ||
	wrong 'replay --all leaves something out'

# docs/replay.md shows the program's own words. Source lines move with every edit of a store, so their
# numbers are not compared.
doc=$(dirname "$0")/../../../docs/replay.md
cd "$(dirname "$0")/../../.." || exit 70
"$tidemark" replay --brief tests/causes/efactory-get_no_fence-MONO.trace >"$here/words" 2>&1
sed -n '/^<!-- story -->/,/^<!-- end -->/p' "$doc" | sed -n 's/^    //p' |
	sed 's/\.c:[0-9]*/.c:LINE/g' >"$here/shown"
grep -v '^$' "$here/words" | sed 's/\.c:[0-9]*/.c:LINE/g' >"$here/printed"
[ -s "$here/shown" ] && cmp -s "$here/shown" "$here/printed" ||
	{ diff "$here/shown" "$here/printed" >&2; wrong "docs/replay.md does not show what the program says"; }
echo "$traces traces, $failures failures"
[ $traces -gt 0 ] && [ $failures -eq 0 ]
