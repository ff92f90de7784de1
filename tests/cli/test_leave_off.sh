#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# test_leave_off.sh PROGRAM ROOT [PART...]: all parts, or these; `interrupted` needs `matrix` before it
#
# The matrix of a campaign, and leaving it off: at a signal, after --time, at the first surprise, and with a full disk, what
# is finished is printed, and traces and files are written; and nothing says that all is as expected.
tidemark=$1 root=$2
[ -x "$tidemark" ] && [ -f "$root/docs/contracts.md" ] || { echo "usage: test_leave_off.sh PROGRAM ROOT" >&2; exit 2; }
prefix=$tidemark
. "$(dirname "$0")/../shell.sh"
unset NO_COLOR

# python FILE...: the program on standard input ends well with these.
python() {
	command -v python3 >/dev/null || return 0
	python3 - "$@" 2>>err || wrong "the program that checks $*"
}

# -q: in a campaign of half a minute or more there would be a line on stderr.
campaign='crashtest efactory erda --runs 8 --states 80 -q'

matrix() {
	run 0 $campaign --out whole --json whole.json
	cp out whole.out
	[ ! -s err ] || wrong 'stderr is no terminal, and has something'
	has 'Everything that was tried is as expected'
	# Text that is read by one who sees it for the first time: marks, contracts, where to read more.
	has '!  surprise: see below'
	has 'docs/contracts.md'
	"$tidemark" list contracts | sed -n 's/^\([A-Z]*\) .*/\1/p' | grep -vE 'OWN|ATOM|SSER|DURN|FENCE|AGREE' >contracts
	[ -s contracts ] || wrong 'no contracts'
	while read -r contract; do
		grep -q "^  $contract  *[a-z]" out || wrong "no line of $contract below the matrix"
		grep -q "^## $contract: " "$root/docs/contracts.md" || wrong "docs/contracts.md has no $contract"
	done <contracts
	[ "$(wc -l <out)" -le 50 ] || wrong "$(wc -l <out) lines"
	[ "$(sed '/docs.contracts.md/q' out | awk 'length > 80')" = '' ] || wrong 'a row of more than 80 columns'
	has_not 'breaks as expected'
	# One command shows what a trace is; the others are in the folder.
	[ "$(grep -c ' replay ' out)" -eq 1 ] || wrong 'not one command'
	trace=$(sed -n 's/^  .* replay //p' out)
	"$tidemark" replay -q "$trace" >replayed 2>&1
	[ $? -eq 1 ] || wrong "$trace does not replay"
	run 0 $campaign --no-traces -v
	has 'broken'
	has_not '  .  holds'
}

# As soon as the first row is there: others have not ended.
interrupted() {
	called="SIGINT at the first row"
	mkfifo rows
	env --default-signal=INT "$tidemark" $campaign --out cut --json cut.json --junit cut.xml >rows 2>err &
	pid=$!
	while IFS= read -r line; do
		echo "$line"
		case $line in '  efactory '*) kill -INT $pid ;; esac
	done <rows >out
	wait $pid
	[ $? -eq 130 ] || wrong 'SIGINT is not status 130'
	[ ! -s err ] || wrong 'something on stderr'
	has 'Left off at SIGINT: '
	has "All of it: $tidemark $campaign --out cut"
	has 'nothing broken until now'
	has_not 'Everything is as expected'
	has_not 'Nothing needs attention'
	# What is finished is what it is in the whole campaign.
	sed '/^  [.]  holds/,$d' out | grep -v 'workloads$' | grep '^ *[a-z].* [.x] ' >finished
	[ -s finished ] || wrong 'no row'
	grep -vxF -f whole.out finished && wrong 'a row that the whole campaign does not have'
	python whole.json cut.json <<-'END'
		import json, sys
		whole, cut = (json.load(open(name)) for name in sys.argv[1:])
		assert whole["complete"] and not cut["complete"]
		shrunk = "trace", "how", "takes", "others", "shown"
		finished = 0
		for a, b in zip(whole["cells"], cut["cells"], strict=True):
		    if not b["complete"]:
		        assert b["verdict"] != "holds" and b["as_expected"], b
		        continue
		    finished += 1
		    for name in shrunk:
		        a.pop(name), b.pop(name)
		    assert a == b, (a, b)
		assert 0 < finished < len(cut["cells"])
	END
	python cut.xml <<-'END'
		import sys, xml.etree.ElementTree as t
		r = t.parse(sys.argv[1]).getroot()
		assert r.findall(".//skipped") and not r.findall(".//failure")
		assert sum(int(s.get("skipped")) for s in r) == len(r.findall(".//skipped"))
	END
	for trace in cut/*.trace; do
		"$tidemark" replay -q "$trace" >replayed 2>&1
		[ $? -eq 1 ] || wrong "$trace does not replay"
	done
	[ -e cut/efactory-LIN.trace ] || wrong 'no trace of what was found'
	one_word 130 error "$(sed -n 's/^ "verdict": "\(.*\)",$/\1/p' cut.json)"
	ls cut | grep -v '\.trace$' && wrong 'something else is left'
}

# one_word STATUS ANNOTATION SENTENCE: the text, cut.json, cut.xml, and if they are there cut.sarif, the annotation and
# the page say what it comes to, alike.
one_word() {
	python "$@" <<-'END'
		import json, os, sys, xml.etree.ElementTree as t
		status, annotation, sentence = sys.argv[1:]
		text = open("out").read()
		assert sentence in " ".join(text.split()), text
		results = json.load(open("cut.json"))
		assert (results["status"], results["verdict"]) == (int(status), sentence), results["verdict"]
		suite = t.parse("cut.xml").getroot()[0]
		assert [p.get("value") for p in suite.find("properties")] == [sentence]
		of_all = [c[0].tag for c in suite.iter("testcase") if c.get("name") == "verdict"]
		assert of_all == {"0": [], "1": [], "3": ["skipped"]}.get(status, ["error"]), of_all
		if os.path.exists("cut.sarif"):
		    end, = json.load(open("cut.sarif"))["runs"][0]["invocations"]
		    assert (end["exitCode"], end["exitCodeDescription"]) == (int(status), sentence), end
		    assert end["executionSuccessful"] == (status in "01")
		    assert f"::{annotation} title=tidemark::{sentence}\n" in text
		    page = json.loads(open("pages/index.html").read().split("id=results>")[1].split("</script>")[0])
		    assert (page["status"], page["verdict"]) == (int(status), sentence), page["verdict"]
	END
	rm -rf cut.json cut.xml cut.sarif pages
}

# The processes that work.
workers() { cat "/proc/$1/task/$1/children" 2>/dev/null; }

# terminated COMMAND...: SIGTERM as soon as there are workers.
terminated() {
	called="SIGTERM: $*"
	[ -r "/proc/$$/task/$$/children" ] || return 0
	rm -f cut.json
	"$tidemark" "$@" --jobs 2 --json cut.json -q >out 2>err </dev/null &
	pid=$!
	while [ -z "$(workers $pid)" ] && kill -0 $pid 2>/dev/null; do
		:
	done
	kill -TERM $pid
	wait $pid
	status=$?
	[ $status -eq 143 ] || wrong "status $status"
	has 'Left off at SIGTERM: '
	has 'All of it: '
	has_not 'Everything is as expected'
	[ ! -s err ] || wrong 'something on stderr'
	python cut.json <<-'END'
		import json, sys
		r = json.load(open(sys.argv[1]))
		parts = r.get("bugs", r.get("places"))
		assert not (r["complete"] if parts is None else parts and all(one.get("complete") for one in parts))
	END
}

timed() {
	builtin=$("$tidemark" list workloads | awk 'substr($0, 17, 16) !~ /^ +$/' | wc -l) # those of a store's own are indented
	run 3 crashtest erda --workload w-r --runs 100000000 --states 1000000000 --time 1s --out none --json cut.json --junit cut.xml \
		--sarif cut.sarif --annotations --html pages
	has 'Left off after --time: 0 of 1 workloads'
	python cut.xml <<-'END'
		import sys, xml.etree.ElementTree as t
		cases = list(t.parse(sys.argv[1]).getroot().iter("testcase"))
		assert cases and all(case.find("skipped") is not None for case in cases)
	END
	has "All of it: $tidemark crashtest erda --workload w-r --runs"
	sed -n '/^All of it/p' out | grep -q -e --time && wrong 'the command that does all is not that'
	has '"verdict": "could not tell"' cut.json
	has_not '"verdict": "holds"' cut.json
	one_word 3 warning 'Left off after --time: 0 of 1 workloads are done, 0 of 1 configurations are finished; what was done is as expected.'
	all='--out none --json cut.json --junit cut.xml --sarif cut.sarif --annotations --html pages'
	run 0 crashtest rdmp_kv --workload w --workload wr --runs 60 $all
	one_word 0 notice "Everything that was tried is as expected: 60 of the usual 450 runs of a workload, 2 workloads instead of the usual $builtin, 1 configuration instead of the usual 15."
	run 0 crashtest rdmp_kv --workload w --exhaustive --preemptions 0 $all
	one_word 0 notice 'Everything within the bounds of --exhaustive is as expected.'
	run 3 crashtest rdmp_kv --workload w --exhaustive --preemptions 0 --states 3 $all
	grep -q '"verdict": "holds"' cut.json && grep -q '"states": [^0]' cut.json && wrong 'it was not looked at, and holds'
	one_word 3 warning 'Not everything within the bounds of --exhaustive was looked at, under 1 of 1 configurations; what was looked at is as expected.'
	run 1 crashtest efactory --variant get_no_fence --workload w-r --runs 100 --states 800 $all
	one_word 1 error 'Not everything is as it should be: efactory get_no_fence LIN, efactory get_no_fence MONO.'
	# Each of these takes a single process much more than a second, however fast it is.
	run 3 mutants --tim=1s --jobs 1 --json cut.json
	has 'Left off after --time: '
	has '"status": 3' cut.json
	grep '^All of it: ' out | grep -q -e --time && wrong 'the command that does all is not that'
	run 3 taxonomy --time 1s --no-traces --jobs 1 --preemptions 3 --json cut.json --junit cut.xml
	one_word 3 '' "$(sed -n 's/^ "verdict": "\(.*\)",$/\1/p' cut.json)"
	has 'Left off after --time: '
	run 3 claims --time 1s --no-traces --jobs 1
	has 'Left off after --time: '
	run 3 ablate erda --time 1s --no-traces --jobs 1 --runs 100000 --states 100000000
	has 'Left off after --time: '
	# Time enough changes nothing.
	run 0 litmus "$root/scenarios/litmus/rdma_sb_cpu.litmus" --time 8h --fail-fast
	has_not 'Left off'
}

fail_fast() {
	bug='crashtest efactory --variant born_durable --variant default --runs 20 --states 300'
	run 1 $bug --fail-fast --out fast --json fast.json
	has 'Left off at the first surprise (--fail-fast): '
	has "All of it: $tidemark $bug --out fast --json fast.json"
	has 'A PROMISE IS BROKEN'
	has '"complete": false' fast.json
	trace=$(sed -n 's/^  .* replay \([^ ]*\) .*/\1/p' out | head -n 1)
	grep -q 'not shrunk' out && wrong 'the trace was not shrunk'
	"$tidemark" replay -q "$trace" >replayed 2>&1
	[ $? -eq 1 ] || wrong "$trace does not replay"
	# A workload of each configuration comes first, so that a later one's surprise does not wait for the whole of others.
	run 1 crashtest efactory --variant default --variant born_durable --runs 20 --states 300 --jobs 1 --fail-fast \
		--no-traces --json spread.json
	has_not '"complete": true' spread.json
	run 0 crashtest erda --workload w-r --runs 20 --fail-fast --no-traces
	has 'Everything that was tried is as expected'
	run 1 mutants erda --states 10 --fail-fast
	has 'Left off at the first surprise'
	sed 's/\bok\b/L/' "$root/scenarios/taxonomy/taxonomy.txt" >table
	run 1 taxonomy --table table --fail-fast --no-traces --jobs 1
	has 'Left off at the first surprise'
	mkdir tests
	cp "$root/scenarios/litmus/rdma_sb_cpu.litmus" tests/one.litmus
	sed 's/^never/exists/; t; s/^exists/never/' tests/one.litmus >tests/bad.litmus
	for i in 1 2 3 4 5 6 7 8 9; do
		cp tests/one.litmus tests/one$i.litmus
	done
	run 1 litmus tests --fail-fast --jobs 1
	has 'Left off at the first surprise'
}

full() {
	small='crashtest efactory --workload w --runs 20 --jobs 2'
	if [ -c /dev/full ]; then
		run 2 $small --no-traces --json /dev/full --junit cannot/be.xml
		has 'cannot/be.xml' err
		ln -s /dev/full full.json
		ln -s /dev/full full.xml
		run 2 $small --no-traces --json full.json --junit full.xml
		[ "$(wc -l <err)" -eq 2 ] || wrong 'not a line for each file'
		has 'full.json: No space left' err
		has 'full.xml: No space left' err
		has 'Not all results could be written.'
		has_not 'Everything is as expected'
		[ -c /dev/full ] || wrong '/dev/full was replaced'
		called='stdout is full'
		"$tidemark" $small --out whole-traces >/dev/full 2>err
		[ $? -eq 2 ] || wrong 'a full standard output'
		has 'standard output: No space left' err
		[ -e whole-traces/efactory-DUR.trace ] || wrong 'no trace with a full standard output'
	fi
	# A limit of the size of files is a full disk for files; the pipe is not one.
	called='a limit of the size of files'
	(ulimit -f 0; "$tidemark" $small --out full --json none.json 2>&1; echo "status $?") | cat >out
	has 'full/efactory-DUR.trace: File too large'
	has 'none.json: File too large'
	has 'DUR    -         broken'
	(ulimit -f 0; "$tidemark" crashtest efactory erda --workload w-r --runs 20 --out full 2>&1) | cat >more
	grep -q 'full/.*: File too large; [0-9]* traces are missing' more || wrong "not how many traces are missing: $(cat more)"
	has 'Not all results could be written.'
	has 'status 2'
	has_not 'Everything is as expected'
	[ ! -e full ] && [ ! -e none.json ] || wrong 'half a file is left'
}

terminal() {
	command -v script >/dev/null || return 0
	called='a terminal'
	escape=$(printf '\033')
	COLUMNS=80 script -qec "$tidemark crashtest rdmp_kv --runs 3 --states 30 --no-traces" /dev/null >out 2>err </dev/null
	tr '\r' '\n' <out >lines
	grep -q "^  rdmp_kv (all hardware).*${escape}\[32m[.]${escape}\[0m" lines || wrong 'no row in colours, on a line of its own'
	grep -q 'of [0-9]* workloads, [0-9]* states, [0-9]* states/s, about [0-9]* s left' out || wrong 'no progress'
	NO_COLOR=1 script -qec "$tidemark crashtest rdmp_kv --runs 3 --states 30 --no-traces -q" /dev/null >out 2>err </dev/null
	grep -q "$escape" out && wrong 'colours in spite of NO_COLOR'
	has 'rdmp_kv (all hardware)'
}

signals() {
	terminated crashtest --no-traces
	terminated claims --no-traces
	terminated mutants
	terminated taxonomy --no-traces
	terminated litmus "$root/scenarios/litmus"
	terminated ablate erda --no-traces
}

shift 2
for part in ${*:-matrix interrupted signals timed fail_fast full terminal}; do
	$part
done
ended
