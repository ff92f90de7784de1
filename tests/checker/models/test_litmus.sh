#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# test_litmus.sh PROGRAM MANUAL
#
# tidemark litmus as docs/litmus.md says: what it prints, its exit status, bad files among good
# ones, and that neither the number of processes nor the order of their answers shows. And the
# tests in the manual say of themselves what is true.
tidemark=$1 manual=$2
[ -x "$tidemark" ] && [ -r "$manual" ] || { echo "usage: test_litmus.sh PROGRAM MANUAL" >&2; exit 2; }
prefix="$tidemark litmus"
. "$(dirname "$0")/../../shell.sh"

# line LINE: a whole one of the output
line() { grep -qxF -e "$1" out || wrong "no line '$1': $called"; }

# --- tests to run ---

cat >mp.litmus <<'END'
litmus MP "Message   passing."
{ x@A; y@A }
P0@A  | P1@A   ;
x = 1 | r0 = y ;
y = 5 | r1 = x ;
never (P1:r0=5 /\ P1:r1=0)
exists (P1:r0=5 /\ P1:r1=1)
END
cat >order.litmus <<'END'
litmus order
{ x@A; y@A }
P0@A  | P1@A  ;
x = 7 | x = 1 ;
y = 1 | y = 7 ;
observe y
forall (x=7)
END
cat >nobody.litmus <<'END'
litmus nobody
{ x@A }
P0@A   | P1@A  ;
r0 = x | x = 3 ;
exists (P0:r0=4)
END
cat >waits.litmus <<'END'
litmus waits
{ x@A; dram y@A = 0xfedcba9876543210 }
P0@A        | P1@A   ;
await x = 1 | r0 = y ;
forall (P1:r0=2)
END
cat >lost.litmus <<'END'
litmus lost
"A store that nobody flushes is durable where caches survive."
config store_buffer=0
{ x@A }
P0@A  ;
x = 1 ;
r0 = 1 ;
forall (P0:r0=1 -> crash:x=1)
END

# --- one test ---

run 0 mp.litmus
line 'MP'
line '  Message passing.'
line '  holds          never (P1:r0=5 /\ P1:r1=0)'
line '  holds          exists (P1:r0=5 /\ P1:r1=1)'
line '1 test, 2 conditions hold, 0 do not'
grep -q '^       runs  P1:r0  P1:r1$' out || wrong 'no table'
[ "$(grep -cE '^ +[0-9]+ +[05] +[01]$' out)" -eq 3 ] || wrong 'not the three outcomes of MP'
grep -q 'runs, all there are$' out || wrong 'not complete'
has_not hardware
has_not blocked

run 1 order.litmus
line '  does not hold  forall (x=7)'
line '1 test, 0 conditions hold, 1 does not'
line '       runs  y  x'
grep -qE '^! +[0-9]+  7  1$' out || wrong 'the outcome that breaks it is not marked'
grep -qE '^  +[0-9]+  1  7$' out || wrong 'an outcome that does not break it is marked'
# The command that is printed shows a run.
command=$(grep '^  .*--witness' out)
[ -n "$command" ] || wrong 'no command'
sh -c "$command" >shown 2>err
[ $? -eq 1 ] || wrong 'the command shows something else'
says_witness=$(sed -n '/a run that decides forall (x=7)/,$p' shown | grep -c 'x = 1')
[ "$says_witness" -ge 1 ] || wrong 'the run is not shown'
grep -q 'a run that' out && wrong 'a run is shown unasked'

run 1 nobody.litmus
line '  does not hold  exists (P0:r0=4)'
line "  no run satisfies it: $tidemark litmus nobody.litmus"
has_not '!'
run 0 waits.litmus
grep -qE '[0-9]+ of them blocked$' out || wrong 'nobody waits'
line '  holds          forall (P1:r0=2)'
run 0 --witness mp.litmus
line '  a run that decides exists (P1:r0=5 /\ P1:r1=1)'
has_not 'decides never'

# A name for the shell.
mkdir "it's"
cp order.litmus "it's/a b.litmus"
run 1 "it's/a b.litmus"
sh -c "$(grep '^  .*--witness' out)" >shown 2>err
grep -q 'a run that decides' shown || wrong 'the command is not quoted'

# --- several; bad ones among them ---

mkdir folder empty
cp mp.litmus folder/b.litmus
cp nobody.litmus folder/B.litmus
cp order.litmus folder/a.litmus
echo 'no test' >folder/README
echo 'no test' >folder/.hidden.litmus
run 1 -q folder
printf '%-40s does not hold\n' nobody >wanted
printf '  no run satisfies it: %s litmus folder/B.litmus\n' "$tidemark" >>wanted
printf '%-40s does not hold\n' order >>wanted
printf '  %s litmus --witness folder/a.litmus\n' "$tidemark" >>wanted
printf '%-40s holds\n' MP >>wanted
echo '3 tests, 2 conditions hold, 2 do not' >>wanted
echo '2 of 4 conditions do not hold.' >>wanted
cmp -s out wanted || wrong 'not the lines of -q'
printf 'litmus both\n{ x@A }\nP0@A ;\nx = 1 ;\nnever true forall true' >both.litmus
run 1 -q both.litmus
grep -q '^both  *does not hold$' out || wrong 'the verdict is not that of the worst condition'
run 3 -q --runs 1 mp.litmus
grep -q '^MP  *could not tell$' out || wrong 'the verdict is not that of the worst condition'
run 2 empty
complains 'empty: no file in this folder ends in .litmus'

printf 'litmus one\n{ x@A }\nP0@A ;\nz = 1 ;\nexists true' >folder/aa.litmus
printf 'litmus two\n{ x@A' >folder/c.litmus
run 2 folder nothing
grep -qx "tidemark: folder/aa.litmus:4:1: 'z'; expected nt, copy, .*, a request such as put, or a location: x" err || wrong 'no error in aa'
grep -qxF "tidemark: folder/c.litmus:2:6: the end of the file; expected ;" err || wrong 'no error in c'
grep -qxF "tidemark: nothing: No such file or directory" err || wrong 'no error of a file that is not there'
[ "$(wc -l <err)" -eq 3 ] || wrong 'not three lines of errors'
line '3 tests, 2 conditions hold, 2 do not; 3 files could not be read'
rm folder/aa.litmus folder/c.litmus

checks=$((checks + 2))
"$tidemark" litmus - <mp.litmus >out 2>err || wrong 'standard input'
line '1 test, 2 conditions hold, 0 do not'
"$tidemark" litmus - </dev/null >out 2>err
[ $? -eq 2 ] || wrong 'empty standard input'
complains 'tidemark: -:1:1: the end of the file; expected litmus'
head -c 1100000 /dev/zero >long.litmus
run 2 long.litmus
complains 'more than 1 MiB'

# The output is that of one process.
for n in 1 2 3 4 5 6 7 8 9; do
	for name in mp order nobody waits; do
		cp $name.litmus folder/$name$n.litmus
	done
done
run 1 --jobs 1 --json one.json --witness folder
mv out one
run 1 --jobs 7 --json many.json --witness folder
cmp -s out one || wrong '--jobs changes the output'
for file in one many; do
	sed -i '/"seconds"/d' $file.json
done
cmp -s one.json many.json || wrong '--jobs changes --json'

# --- how much ---

run 3 --runs 1 mp.litmus
grep -q 'not all there are' out || wrong 'the limit is not told'
line '  could not tell never (P1:r0=5 /\ P1:r1=0)'
run 0 --runs 100000 --whole mp.litmus
run 3 --runs 1 nobody.litmus
has_not 'no run'

# --- hardware ---

run 0 --knob domain=wsp --knob ddio=off mp.litmus
grep -q '^  hardware: domain=wsp ddio=off' out || wrong 'no hardware'
run 1 lost.litmus
line '  hardware: store_buffer=0'
run 0 --knob domain=mhp lost.litmus
run 1 --configs lost.litmus mp.litmus
line '  dmp, ddio  dmp        mhp, ddio  mhp        wsp, ddio  wsp'
line '  - *        -          holds      holds      holds      holds      forall (P0:r0=1 -> crash:x=1)'
line '  holds *    holds      holds      holds      holds      holds      never (P1:r0=5 /\ P1:r1=0)'
line "2 tests, 2 conditions hold, 1 does not (on the tests' own hardware, *)"
run 0 --configs --knob domain=wsp --knob ddio=off lost.litmus
line '  -          -          holds      holds      holds      holds *    forall (P0:r0=1 -> crash:x=1)'

# Non-temporal stores are kept in order, as x86 does not keep them: that is told, with what x86 makes of it.
cat >flag.litmus <<'END'
litmus flag
{ d@B; f@B }
 P0@B     | P1@B   ;
 nt d = 1 | r0 = f ;
 f = 1    | r1 = d ;
exists (P1:r0=1 /\ P1:r1=0)
exists (P1:r0=1 /\ P1:r1=1)
END
sed 's/ f = 1    | r1 = d ;/ sfence   | r1 = d ;\n f = 1    |        ;/; s/^exists.*r1=0)/never (P1:r0=1 \/\\ P1:r1=0)/' \
	flag.litmus >fenced.litmus
# x86: what is below that line, without the verdict of all
x86() { sed '1,/stronger than x86/d; $d' out; }
run 1 --json r.json flag.litmus
line '  does not hold  exists (P1:r0=1 /\ P1:r1=0)'
[ "$(x86)" = "  with x86's own (--knob nt_stores=buffered):
  holds          exists (P1:r0=1 /\ P1:r1=0)

1 test, 1 condition holds, 1 does not" ] || wrong 'not what x86 makes of it'
[ "$(grep -c '"stronger_than_x86": true' r.json)$(grep -c 'nt_stores=buffered' r.json)" = 11 ] || wrong 'not once in the JSON file'
[ "$(grep -c '"own_hardware": false' r.json)" -eq 1 ] || wrong 'no second run in the JSON file'
run 1 -q flag.litmus mp.litmus
line "  with x86's own non-temporal stores (--knob nt_stores=buffered): holds"
run 1 --configs flag.litmus
grep -q '^  stronger than x86' out || wrong '--configs does not say so'
run 0 fenced.litmus
line '  holds          never (P1:r0=1 /\ P1:r1=0)'
line "  with x86's own (--knob nt_stores=buffered) the verdicts are the same"
run 0 --knob nt_stores=buffered --json r.json flag.litmus
has_not 'stronger than'
run 0 mp.litmus
has_not 'stronger than'

# --- for machines ---

run 0 --configs --knob domain=mhp --json r.json lost.litmus
[ "$(grep -c '"own_hardware": true' r.json)" -eq 1 ] || wrong 'not one hardware is the own one'
[ "$(grep -c '"own_hardware": false' r.json)" -eq 5 ] || wrong 'not five others'
printf 'litmus bad' >bad.litmus
run 2 --json r.json --junit r.xml order.litmus mp.litmus bad.litmus
for line in '"name": "order",' '"quantifier": "forall",' '"verdict": "does not hold",' '"verdict": "holds",' \
	'"do_not_hold": 1,' '"hold": 2,' '"complete": true' '"column": 11,' '"P1:r0": 5,'; do
	grep -qF "$line" r.json || wrong "no $line in the JSON file"
done
grep -q '<testsuites name="tidemark" tests="5" failures="1" errors="2" skipped="0" time="[0-9.]*">' r.xml || wrong 'not four cases in the JUnit file'
grep -q 'message="order.litmus:7: does not hold"' r.xml || wrong 'no failure in the JUnit file'
# Numbers that JSON has not are strings. P1 ends in no run, as P0 waits: what it read is seen in a crash.
sed 's/^forall.*/exists (P1:r0=0xfedcba9876543210 \/\\ crash:x=0)/' waits.litmus >large.litmus
run 0 --json r.json large.litmus
grep -qF '"P1:r0": "18364758544493064720"' r.json || wrong 'no large number in the JSON file'
grep -qE '  0xfedcba9876543210  +0$' out || wrong 'no large number in the table'
run 0 --list mp.litmus waits.litmus
line 'MP                           Message passing.'
has_not 'holds'

run 2 --json r.json bad.litmus
grep -qF '"tests": [],' r.json || wrong 'no empty list of tests'
line '0 tests, 0 conditions hold, 0 do not; 1 file could not be read'

# --- the manual ---

mkdir manual
awk '/^    litmus / { file = "manual/" $2 ".litmus" }
     /^[^ ]/ { file = "" }
     file { sub("^    ", ""); print >file }' "$manual"
[ -n "$(ls manual)" ] || wrong 'no tests in the manual'
run 0 manual

# --- usage: besides what test_bad_inputs.sh tries ---

bad 'the hardware has no knob "domian", did you mean "domain"?' --knob domian=dmp mp.litmus

ended
