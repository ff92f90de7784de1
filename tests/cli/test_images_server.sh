#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_images_server.sh TIDEMARK SOURCES
#
# However a checker gets at the image, and whatever it does to it, the verdicts are those that a start for each image gives,
# with no library in front and with each image put right by comparing it: for that, tidemark stands in a folder by itself.
# shellcheck source=tests/cli/own.sh
. "$(dirname "$0")/own.sh"
mkdir alone
cp "$tidemark" alone/tidemark
cc=${CC:-cc}
checker=$sources/tests/cli/images_checker.c

# log FILE ROUNDS: each round stores data, then its number, which tells of the data, and more lines; a fence follows.
log() {
	local r n
	{
		printf 'START|REGISTER_FILE;%s/my.pool;0x10000000;0x1000;0x0' "$here"
		for ((r = 1; r <= $2; r++)); do
			((r == 4)) && printf '|LATE.BEGIN'
			printf '|STORE;0x%x;0x%x;0x8;data (store.c:%d)' $((0x10000000 + 64 * (1 + r % 5))) "$r" 10
			printf '|STORE;0x10000800;0x%x;0x8;flag (store.c:20)' "$r"
			for ((n = 0; n < ${3:-3}; n++)); do
				printf '|STORE;0x%x;0x%x;0x8;more (store.c:30)' $((0x10000400 + 64 * n)) "$r"
			done
			printf '|FLUSH;0x10000000;0x1000|FENCE'
		done
		printf '|STOP'
	} >"$1"
}
log small 1 0
log store.log 5
truncate -s 4096 my.pool

"$cc" -O1 -g -pthread -o checker "$checker"
"$cc" -O1 -g -pthread -static -o static "$checker"
"$cc" -O1 -g -pthread -shared -fPIC -o checker.so "$checker"
cat >script <<'END'
#!/bin/sh
# Its programs read and write the image.
set -- "$1" $(od -An -td8 -j 3840 -N 8 "$1")
[ "$2" = 0 ] || exit 9
"${0%/*}/checker" write "$1"
END
chmod +x script

# judged STATUS NAME ARGUMENT...: the same results in each way.
judged() {
	local status=$1 name=$2
	shift 2
	run "$status" alone/tidemark images -q --log "${log:-store.log}" --pool zero --json alone.json "$@"
	run "$status" tidemark images -q --log "${log:-store.log}" --pool zero --json each.json --no-server "$@"
	run "$status" tidemark images -q --log "${log:-store.log}" --pool zero --json served.json "$@"
	sed -i 's|alone/tidemark images|tidemark images|g; s/ --no-server//g' alone.json each.json # in commands that they name
	cmp -s alone.json served.json || fail "$name: the server changes results: $(diff alone.json served.json)"
	cmp -s alone.json each.json || fail "$name: the library changes results: $(diff alone.json each.json)"
}
# served NAME ...: and it was served. `compared` is why each image was compared.
compared=
served() {
	judged 1 "$@"
	! grep -q 'was started for each' out || fail "$1: it is not served"
	if [ -n "$compared" ]; then
		says "$compared"
	else
		! grep -q 'was compared' out || fail "$1: what it did was not seen"
	fi
}

run 1 alone/tidemark images -q --log store.log --pool zero --recover './checker map'
says 'data (store.c:10)' 'exit status 1'
images=$(sed -n 's/.*places: \([0-9]*\) different images, of which \([0-9]*\) .*/\1 \2/p' out)
read -r images bad <<<"$images"
[ "$images" -gt 128 ] && [ "$bad" -gt 10 ] && [ "$bad" -lt $((images / 2)) ] || fail "$images images, $bad bad: not what is tested here"

# --- how it gets at the image ---

for way in map write turns stdio rename crashes reads again reread rereads parts moved twice restream stream child heir unseen; do
	case $way in
	moved | restream | stream | child | heir) compared='looks at what it has written' ;;
	unseen) compared='system calls that are not' ;;
	*) compared= ;;
	esac
	served $way --recover "./checker $way {}"
done
says 'exit status 1'
compared=
served quotes --recover "./checker 'map' 'an argument' \"{}\""
served shebang --recover "/usr/bin/env A=b ./checker map"
# The power failed with status 1 and not with another one.
! grep -q 'exit status [23456789]' out || fail "another verdict"
if "$cc" -O1 -DWITH_PMEM -pthread -o pmem "$checker" -lpmem 2>/dev/null; then
	served pmem --recover './pmem pmem'
	PMEM_IS_PMEM_FORCE=1 served 'pmem, forced' --recover './pmem pmem'
fi
served marker --recover './checker marker'
says 'exit status 3'
! grep -q '"marker": ""' served.json || fail "the environment is that of another image"
served 'a second command' --recover './checker map' --check "./checker map"
grep -q 'exit status 9' served.json || fail "the second command does not see what the first has done"
judged 0 kill --model kill --recover './checker map'
log=small judged 1 hangs --timeout 3 --recover './checker hangs'
says 'it did not end'
log=small judged 1 'a library crashes' --timeout 3 -c lib -p ./checker.so -n check_crashes
says 'signal 6'

# Among images that are asked about at once, which the others of them do not notice.
log two 2 0
log=two judged 1 'some hang' --timeout 3 --recover './checker hangs'
# Of many that hang each cause is waited for, and not each image.
log hanging 3 4
SECONDS=0
run 1 tidemark images -q --jobs 1 --log hanging --pool zero --timeout 8 --recover './checker hangs'
bad=$(sed -n 's/.*of which \([0-9]*\) are bad, of 1 cause.*/\1/p' out)
[ "${bad:-0}" -gt 15 ] && [ $SECONDS -lt $((4 * bad)) ] || fail "$bad images that hang took $SECONDS s"
log=two judged 1 'a library hangs' --timeout 3 -c lib -p ./checker.so -n check_hangs
says 'it did not end'
# More lines differ from one image to the next than the board has room for.
{
	printf 'START|REGISTER_FILE;%s/wide.pool;0x10000000;0x40000;0x0' "$here"
	for ((r = 1; r <= 3; r++)); do
		printf '|STORE;0x%x;0x%x;0x8|STORE;0x10000800;0x%x;0x8' $((0x10000000 + 64 * (1 + r % 5))) $r $r
		for ((n = 0; n < 1500; n++)); do printf '|STORE;0x%x;0x%x;0x8' $((0x10002000 + 64 * n)) $r; done
		printf '|FLUSH;0x10000000;0x40000|FENCE'
	done
	printf '|STOP'
} >wide
log=wide judged 1 'many lines' --most 60 --recover './checker turns'
log=wide judged 1 'many lines, a library' --most 60 -c lib -p ./checker.so -n check_turns

# --- what is not served, and why ---

# alone NAME WHY COMMAND
not_served() {
	judged 1 "$1" --recover "$3"
	says "the program was started for each image: $2"
}
not_served threads 'it had 2 threads when it first opened the image' './checker threads'
not_served children 'it had started other processes' './checker children'
not_served shares 'it shared memory' './checker shares'
not_served writes 'it had a file to write to' './checker writes'
not_served static 'it is not dynamically linked' './static write'
not_served 'static, by a mapping' 'it is not dynamically linked' './static map'
not_served script 'it did not open the image itself' ./script
not_served shell 'it is a line for a shell' 'A=b ./checker map {} || exit 1'

# --- several at once ---

cat >server.c <<'END'
#include <netinet/in.h>
#include <sys/socket.h>
int main(int argc, char **argv)
{
	char own[4200];
	const char *port = getenv("TIDEMARK_PORT"), *dir = getenv("TIDEMARK_DIR");
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
	if (argc < 2 || !strstr(getenv("TIDEMARK_FABRIC"), dir) || open(argv[1], O_RDONLY) < 0)
		return 2;
	snprintf(own, sizeof(own), "%s/lock", dir);
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) || open(own, O_CREAT | O_EXCL, 0600) < 0)
		return 3;
	fprintf(stderr, "judged by %s\n", port);
	usleep(20000);
	return unlink(own) ? 4 : 0;
}
END
compile server
run 0 tidemark images -q --jobs 6 --no-server --show --log store.log --pool zero --recover ./server
says 'none of them bad'
[ "$(grep '^judged by' out | sort -u | wc -l)" -gt 2 ] || fail 'few at once'

# --- a library ---

for function in map turns leaks crashes kept rereads; do
	compared=
	[[ $function = kept ]] && compared='looks at what it has written'
	served "library, $function" -c lib -p ./checker.so -n check_$function
done
(
	ulimit -n 1024
	log many.log 8 7
	log=many.log judged 1 'many files left open' -c lib -p ./checker.so -n check_leaks
	! grep -q 'exit status 20' served.json || fail "no file is left"
)

# --- what it prints ---

# Once for each image; what comes before the image is opened, once for each start.
for option in --no-server --jobs=1; do
	run 1 tidemark images -q --jobs 1 --show --log store.log --pool zero --recover './checker prints' $option
	echo "$option $(grep -o 'before;' out | wc -l) $(grep -c 'after$' out)"
done >counts
{ read -r _ before after && read -r _ once same; } <counts
[ "$after" -ge "$images" ] && [ "$after" -eq "$same" ] || fail "it is not printed once for each image: $(cat counts)"
[ "$before" -eq "$after" ] && [ "$once" -lt 20 ] || fail "what was printed first is printed again: $(cat counts)"
exit 0
