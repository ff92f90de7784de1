#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_images_names.sh TIDEMARK SOURCES
#
# A program in C++: the report, the JSON file and the page of tidemark images name its functions as its source does, and so
# does -n for those of a checker's library. 77: there is no C++ compiler.
# shellcheck source=tests/cli/own.sh
. "$(dirname "$0")/own.sh"
export TIDEMARK_FABRIC=$here/fabric
if ! command -v g++ >/dev/null; then
	echo 'there is no g++' >&2
	exit 77
fi

# A flag at 0 and data at 4096; they are made durable together.
cat >program.cc <<'PROGRAM'
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
namespace pool
{
struct Log {
	std::uint64_t *at;
	template <class T> [[gnu::INLINE]] void append(const T &value)
	{
		at[512] = value;
		at[0] = 1;
		msync(at, 8192, MS_SYNC);
		asm("" ::: "memory");
	}
};
} // namespace pool
int main(int, char **argv)
{
	pool::Log log{static_cast<std::uint64_t *>(
		mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, open(argv[1], O_RDWR), 0))};
	log.append(42);
}
PROGRAM
cat >checker.cc <<'CHECKER'
#include <cstdint>
#include <cstdio>
#include <string>
struct Checker {
	static int whole(const char *path);
	static int whole(const std::string &path);
};
int Checker::whole(const std::string &path)
{
	std::uint64_t word[513] = {};
	FILE *in = std::fopen(path.c_str(), "r");
	bool read = in && std::fread(word, sizeof(word), 1, in) == 1;
	if (in)
		std::fclose(in);
	return !read || (word[0] == 1 && word[512] != 42);
}
int Checker::whole(const char *path)
{
	return whole(std::string(path));
}
CHECKER
run 0 g++ -g -shared -fPIC -o checker.so checker.cc
# What was inlined is in no symbol.
for kind in always_inline noinline; do
	run 0 g++ -g -O1 -DINLINE=$kind -o program program.cc
	rm -f pool
	truncate -s 8192 pool
	run 0 tidemark record --pm pool --out $kind.rec -- ./program pool
	run 1 tidemark images $kind.rec -c lib -p ./checker.so -n Checker::whole
	says 'noticed at pool::Log::append<int> (program.cc:'
done

name='pool::Log::append<int> (program.cc:'
for function in Checker::whole 'Checker::whole(char const*)' _ZN7Checker5wholeEPKc; do
	run 1 tidemark images noinline.rec -c lib -p ./checker.so -n "$function" --json images.json --html images.html
	says "noticed at $name" 'of 1 cause'
done
grep -qF "\"source\": \"$name" images.json || fail 'images.json does not name the function'
grep -qF 'pool::Log::append\u003cint>' images.html || fail 'images.html does not name the function'
for file in out images.json images.html; do
	! grep -q '_ZN4pool' $file || fail "$file has the symbol"
done
for function in whole Checker Checker::whol 'Checker::whole(int)'; do
	bad "it has no function $function" tidemark images noinline.rec -c lib -p ./checker.so -n "$function"
done
