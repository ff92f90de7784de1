#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_installed.sh BUILD SOURCE: what `make install` has installed works after it was moved, and reads nothing of the folders
# that it was built in: a campaign, a replay, stores of your own, a verbs program on the soft RNIC that was compiled with pkg-config's help. The
# same for the Debian package, of which lintian finds no errors.
set -u
build=$(realpath "$1") source=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
wrong() {
	echo "$*" >&2
	failed=1
}
mkdir "$work/empty"
cd "$work/empty" || exit 70
export TIDEMARK_FABRIC=$work/net

# traced COMMAND...: run it; what it looks for in the source or the build goes to a file.
traced() {
	if ! strace -o /dev/null true 2>/dev/null; then
		"$@"
		return
	fi
	strace -f -qq -e trace=%file -o "$work/files" "$@"
	local status=$?
	grep -q execve "$work/files" || echo "strace saw nothing of $*" >>"$work/outside"
	grep -m 3 -F -e "\"$source/" -e "\"$build/" "$work/files" >>"$work/outside"
	return $status
}
strace -o /dev/null true 2>/dev/null || echo "strace cannot be used here: which files are read is not checked"

# works PREFIX: what is installed there does all that it should.
works() {
	local prefix=$1 tidemark=$1/bin/tidemark how
	traced "$tidemark" crashtest efactory --runs 20 --states 500 --out traces >out 2>err ||
		wrong "crashtest: status $?: $(tail -n 3 out err)"
	grep -q 'as expected' out || wrong "crashtest: $(tail -n 3 out)"
	traced "$tidemark" replay traces/efactory-DUR.trace >out 2>err
	[ $? -eq 1 ] || wrong "replay: $(tail -n 3 out err)"
	grep -q 'core/stores/efactory/[a-z_]*\.c:[0-9]' out || wrong "replay names no source lines"
	traced "$tidemark" litmus "$prefix/share/doc/tidemark/examples/litmus/px86_ack_sfence.litmus" >out 2>err ||
		wrong "litmus: $(tail -n 3 out err)"

	# A verbs program.
	cat >program.c <<-'END'
		#include <stdio.h>
		#include <tidemark/rdma_commit.h>
		#include <tidemark/rt.h>
		#include <tidemark/tidemark.h>
		int main(void)
		{
			struct ibv_device **list = ibv_get_device_list(NULL);
			struct ibv_context *verbs = list && list[0] ? ibv_open_device(list[0]) : NULL;
			if (!verbs)
				return 1;
			printf("%s%s\n", ibv_get_device_name(list[0]), tm_commit_supported(verbs) ? "" : " has Commit");
			ibv_close_device(verbs);
			ibv_free_device_list(list);
			return TM_CONTRACTS == 0;
		}
	END
	export PKG_CONFIG_PATH=$prefix/share/pkgconfig
	for how in 'clang -std=gnu17 -x c' 'clang++ -std=gnu++17 -x c++' 'g++ -std=gnu++17 -x c++' 'gcc -std=gnu17 -x c'; do
		command -v "${how%% *}" >/dev/null || continue
		rm -f program
		# shellcheck disable=SC2046,SC2086 # options are several words
		$how -Wall -Wextra -Werror $(pkg-config --cflags tidemark) -o program program.c $(pkg-config --libs tidemark) ||
			wrong "$how: the program does not compile"
	done
	for how in '' --dropin; do
		# shellcheck disable=SC2086
		[ "$(traced "$tidemark" run $how -- ./program)" = 'tide0 has Commit' ] || wrong "tidemark run $how: no soft RNIC"
	done

	# Stores outside of the tree: what new-store makes, and the examples.
	local name library
	"$tidemark" new-store log_c >out 2>&1 || wrong "new-store: $(cat out)"
	"$tidemark" new-store log_cxx --cxx >out 2>&1 || wrong "new-store --cxx: $(cat out)"
	"$tidemark" new-store log_pair --servers 2 >out 2>&1 || wrong "new-store --servers: $(cat out)"
	cp -r "$prefix"/share/doc/tidemark/examples/{slots,queue,bank} .
	for name in log_c log_cxx log_pair slots queue bank; do
		library=$name/$name.so
		if [ -e "$name/Makefile" ]; then
			PATH=$prefix/bin:$PATH make -C "$name" >out 2>&1 || wrong "$name: $(tail -n 3 out)"
		elif [ -e "$name/$name.cc" ]; then
			traced "$tidemark" c++ -std=gnu++20 -g -Wall -Wextra -Werror -o "$library" "$name/$name.cc" -lrdmacm >out 2>&1 ||
				wrong "$name: $(tail -n 3 out)"
		else
			traced "$tidemark" cc -g -Wall -Wextra -Werror -o "$library" "$name/$name.c" >out 2>&1 || wrong "$name: $(tail -n 3 out)"
		fi
		traced "$tidemark" crashtest "$library" --runs 20 --states 500 --no-traces >out 2>&1 || wrong "crashtest $name: $(tail -n 3 out)"
	done
	"$tidemark" mutants log_c/log_c.so >out 2>&1 || wrong "mutants: $(tail -n 3 out)"
	rm -rf log_c log_cxx log_pair slots queue bank
	[ ! -s "$work/outside" ] || wrong "files of the source or the build are used: $(head -n 3 "$work/outside")"
	rm -rf traces program* "$work/outside"
}

DESTDIR=$work/stage cmake --install "$build" --prefix /opt/tidemark >"$work/log" 2>&1 || {
	cat "$work/log" >&2
	exit 1
}
mv "$work/stage/opt/tidemark" "$work/moved"
works "$work/moved"

# --- the package

if ! command -v dpkg-shlibdeps >/dev/null || ! command -v dpkg-deb >/dev/null; then
	echo 'no dpkg-dev: the package is not made'
	exit $failed
fi
deb=$("$source/scripts/deb" "$build" "$work" 2>"$work/err") || {
	cat "$work/err" >&2
	exit 1
}
[ ! -s "$work/err" ] || wrong "scripts/deb: $(head -n 3 "$work/err")"
cp "$deb" "$work/first"
"$source/scripts/deb" "$build" "$work" >/dev/null
cmp "$deb" "$work/first" || wrong "the package is another one when it is made again"
for need in 'libc6 ' 'libibverbs1 ' 'libpmem1 ' 'gcc | clang' 'binutils' 'libibverbs-dev' 'libpmem-dev'; do
	dpkg-deb -f "$deb" Depends | tr ',' '\n' | sed 's/^ //; s/$/ /' | grep -q "^$need" || wrong "the package does not depend on $need"
done
dpkg-deb -f "$deb" Recommends | grep -qF 'g++' || wrong "the package does not recommend g++"
if command -v lintian >/dev/null; then
	lintian --fail-on error --allow-root "$deb" >"$work/lintian" 2>&1 || wrong "lintian: $(cat "$work/lintian")"
fi
dpkg-deb -x "$deb" "$work/package"
works "$work/package/usr"
exit $failed
