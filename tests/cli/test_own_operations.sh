#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_own_operations.sh TIDEMARK SOURCES
#
# Stores with operations of their own, examples/queue and bank: they hold what they promise; each seeded bug is found, as the
# contract that it breaks, and its trace replays; so do traces that a fuzzer or a systematic search finds. A judge that crashes
# or never ends is told as such. Commands that need put, get and del say so. Wrong lists of operations, models and workloads are
# one line.
# shellcheck source=tests/cli/own.sh
. "$(dirname "$0")/own.sh"
few=(--runs 12 --states 600)

# wrong TEXT SED-EXPRESSION: the store, so changed, is refused in one line.
wrong() {
	local text=$1
	shift
	sed "$@" queue.c >wrong.c
	! cmp -s queue.c wrong.c || fail "nothing was changed: $*"
	run 0 tidemark cc -g -o wrong.so wrong.c
	bad "$text" tidemark crashtest ./wrong.so
}

cp "$sources"/examples/queue/queue.c .
run 0 tidemark cc -g -Wall -Wextra -Werror -o queue.so queue.c

# --- it holds ---

run 0 tidemark crashtest ./queue.so "${few[@]}" --no-traces --json right.json
says 'Everything that was tried is as expected'
grep -q '"contract": "OWN"' right.json || fail 'no cell for OWN'
! grep -q '"contract": "KEEP"' right.json || fail 'a cell for KEEP, which is of keys and values'
run 0 tidemark crashtest ./queue.so --workload drain --runs 40 --states 2000 --no-traces --doublecheck
run 0 tidemark crashtest ./queue.so --workload enqueue --exhaustive --preemptions 1 --no-traces
run 0 tidemark list workloads ./queue.so
says 'enqueue.dequeue-enqueue' 'two-consumers'
run 0 tidemark list operations ./queue.so
says 'enqueue LENGTH' 'after recovery, too'

# A call that was made to fail costs a client its connection when the server dies as well: no break.
cat >failed.trace <<'EOF'
tidemark-trace 1
store queue ./queue.so
variant default
config domain=dmp ddio=on rqwrb=dram transport=ib mtu=1024 dma_order=left read_order=left line_torn=off iio_in_mhp=on ack_early=on rkey_reuse=off flush_covers_send=on store_buffer=0 calls=fail
client 1: enqueue 8
deviate server/server c1.call1 before completion 1: server dies
deviate c2 c2.call1 call verbs/post_recv 1: fails
broken LIVE: after recovery, enqueue fails: run() returns EIO
EOF
run 4 tidemark replay failed.trace

# --- its bugs are found ---

run 0 tidemark mutants ./queue.so
says 'found 4 of 4'
# found VARIANT CONTRACT WORKLOAD
found() {
	run 1 tidemark crashtest ./queue.so --variant "$1" --workload "$3" --runs 60 --states 4000 --knob domain=dmp
	run 1 tidemark replay "traces/queue-$1-$2.trace"
	says "broken $2"
	cp "traces/queue-$1-$2.trace" .
}
found stack LIN enqueue.enqueue.dequeue
says 'no order of the operations explains that.' "client 1's dequeue read, at"
found no_sum DUR enqueue
found mark_never OWN drain
says 'so the failure took it back: client 2 and client 3 were given the same value.'
grep -q '^client 1: enqueue' queue-mark_never-OWN.trace || fail 'not a word of the client in the trace'
! grep -q '^keys' queue-mark_never-OWN.trace || fail 'keys, though there are none'
# Some break only if life goes on after recovery; and then the trace names the operation.
grep -q 'life 1: call' queue-mark_never-OWN.trace || fail 'no life with an operation of the store'
sed "s/^variant .*/variant default/" queue-stack-LIN.trace >right.trace
run 4 tidemark replay right.trace
run 1 tidemark fuzz ./queue.so --variant stack --runs 400 --corpus corpus --out fuzzed
says 'answered 9 bytes' 'no order of the'
run 1 tidemark replay "$(ls fuzzed/*LIN*.trace | head -1)"
run 0 tidemark ablate ./queue.so --runs 12
says 'Every place that breaks nothing is explained'

# --- recorded operations ---

printf '1 enqueue 40\n1 enqueue 8\n2 dequeue\n' >list.ops
run 0 tidemark crashtest ./queue.so --ops list.ops --runs 20 --states 500 --no-traces
printf '1 enqueue\n' >bad.ops
run 2 tidemark crashtest ./queue.so --ops bad.ops
says 'bad.ops:1:' 'expected client, enqueue, 0 keys, length'
printf '1 equeue 3\n' >bad.ops
run 2 tidemark crashtest ./queue.so --ops bad.ops
says "bad.ops:1:" "one of the store's own"
bad 'operations of its own only' tidemark crashtest ./queue.so --workload w

# --- a judge and a model that do not work ---

sed 's|^\tfor (unsigned i = 0; i < h->events; i++) {|\t*(volatile int *)8 = 1;\n&|' queue.c >crashes.c
run 0 tidemark cc -g -o crashes.so crashes.c
run 1 tidemark crashtest ./crashes.so --workload enqueue --runs 2 --states 20 --no-traces
says "the store's judge or model fails: segmentation fault"
sed 's|^\tfor (unsigned i = 0; i < h->events; i++) {|\tfor (volatile int forever = 1; forever;)\n\t\t;\n&|' queue.c >loops.c
run 0 tidemark cc -g -o loops.so loops.c
run 1 tidemark crashtest ./loops.so --workload enqueue --runs 1 --states 1 --no-traces --knob domain=dmp
says "the store's judge or model fails: an endless loop"

# --- what needs put, get and del ---

for command in count cut examine serve; do
	bad 'operations of its own only' tidemark $command ./queue.so
done

# --- mistakes ---

wrong 'means something else' 's/\.name = "list"/.name = "get"/'
wrong 'small letters' 's/\.name = "list"/.name = "List"/'
wrong 'two of .calls have one name' 's/\.name = "list"/.name = "dequeue"/'
wrong 'no .run or no .what' 's/, .run = run_list//'
wrong 'too many keys' 's/\.name = "dequeue",/& .keys = 4,/'
wrong 'expected one that takes no value' 's/\.looks = true/& , .value = true/'
wrong 'the model' 's/\.bytes = sizeof(struct state)/.bytes = 5000/'
wrong 'expected .calls, too' 's/^\t\.calls = calls,/\t.put = (void *)run_list, .get = (void *)run_list, .del = (void *)run_list,/'
wrong 'or .calls' '/^\t\.calls = calls,/d'
wrong 'workload drain: expected' 's/"dequeue, dequeue, dequeue"/"dequeue, steal"/'
wrong 'workload two-consumers: expected a value length' 's/enqueue 1000/enqueue x/'
wrong 'expected a .judge, too' -e '/^\t\.judge = judge,/d' -e '/^\t\.model = &model,/d'
sed 's/^store queue .*/store efactory/; s/^variant .*/variant default/' queue-stack-LIN.trace >other.trace
run 2 tidemark replay other.trace
says 'other.trace:6:' 'an operation'
sed 's/enqueue 8/enqueue/' queue-stack-LIN.trace >other.trace
run 2 tidemark replay other.trace
says 'expected the operation and a LENGTH'

# --- a bank in C++, with threads and locks ---

run 0 tidemark c++ -std=gnu++20 -g -Wall -Wextra -Werror -o bank.so "$sources"/examples/bank/bank.cc -lrdmacm
run 0 tidemark crashtest ./bank.so --runs 4 --states 200 --no-traces
says 'Everything that was tried is as expected'
printf '1 audit\n' >audit.ops # names no key
run 0 tidemark crashtest ./bank.so --ops audit.ops --runs 5 --states 200 --no-traces
run 0 tidemark mutants ./bank.so
says 'found 8 of 8'
run 1 tidemark crashtest ./bank.so --variant deadlock --workload crossing --runs 60 --states 10 --knob domain=dmp
run 1 tidemark replay traces/bank-deadlock-LIVE.trace
says 'broken LIVE: deadlock:'

# --- put, get and del, and one more ---

run 0 tidemark new-store log
cat >more.c <<'END'
/* Not in one piece: another client may be in between. */
static int run_exchange(void *client, const struct tm_call *call, struct tm_answer *answer)
{
	int rc = get(client, call->key[0].name, call->key[0].len, answer->bytes, TM_MAX_ANSWER, &answer->len);
	if (rc == -ENOENT)
		rc = 0;
	return rc ? rc : put(client, call->key[0].name, call->key[0].len, call->value, call->vlen);
}

static const struct tm_call_type calls[] = {
	{.name = "exchange", .what = "put a value, and say what was there", .keys = 1, .value = true, .run = run_exchange},
	{.name = NULL},
};

struct state {
	uint8_t len[4];
	uint8_t value[4][250];
};

static bool apply(void *at, const struct tm_event *e)
{
	struct state *s = at;
	unsigned k = e->call.key[0].name[1] - '1';
	if (k >= 4 || e->call.vlen > sizeof(s->value[k]))
		return false;
	bool same = e->len == s->len[k] && !memcmp(e->answer, s->value[k], e->len);
	if (e->operation == TM_GET)
		return !e->answered || (e->error == -ENOENT ? !s->len[k] : same);
	if (e->operation == TM_CALL && e->answered && !same)
		return false;
	if (e->operation == TM_DEL && e->answered && (e->error == -ENOENT) != !s->len[k])
		return false;
	memset(s->value[k], 0, sizeof(s->value[k]));
	s->len[k] = e->operation == TM_DEL ? 0 : e->call.vlen;
	if (s->len[k])
		memcpy(s->value[k], e->call.value, s->len[k]);
	return true;
}

static const struct tm_model model = {.bytes = sizeof(struct state), .apply = apply};

END
awk '/^const struct tm_store log_store/ {
		while ((getline line < "more.c") > 0)
			print line
		print $0 "\n\t.calls = calls,\n\t.model = &model,"
		next
	}
	{ print }' log/log.c >log/more.c
run 0 tidemark cc -g -Wall -Wextra -Werror -o log.so log/more.c
run 0 tidemark list workloads ./log.so
says 'exchange-put' 'exchange-exchange' 'w-w-r'
run 0 tidemark crashtest ./log.so --workload ww --runs 20 --states 500 --no-traces
# After recovery there are two clients.
run 1 tidemark crashtest ./log.so --workload put.exchange --runs 200 --states 2000 --no-traces --knob domain=dmp
says 'DUR    promised  broken' "answered"
run 1 tidemark crashtest ./log.so --workload exchange-exchange --runs 200 --states 500 --knob domain=dmp
says 'LIN    promised  broken'
run 1 tidemark replay traces/log-LIN.trace
says 'exchange k1'

# --- the other compiler ---

if command -v clang >/dev/null; then
	run 0 env TIDEMARK_CC=clang tidemark cc -g -o queue.so queue.c
	run 0 tidemark crashtest ./queue.so "${few[@]}" --no-traces --json clang.json
	same right.json clang.json || fail "gcc's and clang's results differ"
	run 1 tidemark replay queue-mark_never-OWN.trace
	run 0 env TIDEMARK_CC=clang tidemark c++ -std=gnu++20 -g -o bank.so "$sources"/examples/bank/bank.cc -lrdmacm
	readelf -p .comment bank.so | grep -q clang || fail 'another compiler'
	run 1 tidemark replay traces/bank-deadlock-LIVE.trace
fi
