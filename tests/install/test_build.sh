#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_build.sh SOURCE: scripts/build in a small tree, which is copied with its build: the copy is built, with the settings that
# it had, and nothing of it names the other place. Then in one that was moved, and in a folder that is another tree's build.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() {
	echo "FAILED: $*" >&2
	cat log >&2
	exit 1
}
# built TREE STATUS [OPTION...]: what scripts/build says goes to log; where it ends well the result names the tree.
built() {
	local tree=$1 expected=$2 status=0
	shift 2
	"$tree/scripts/build" "${dir:-build}" "$@" >log 2>&1 || status=$?
	[ $status -eq "$expected" ] || fail "$tree: status $status"
	[ $status -ne 0 ] || [ "$(cat "$tree/${dir:-build}/place")" = "$work/$tree 7" ] || fail "$tree: not made there, or without its settings"
}
mkdir -p one/scripts
cp "$1/scripts/build" one/scripts
cat >one/CMakeLists.txt <<-'END'
	cmake_minimum_required(VERSION 3.18)
	project(small NONE)
	set(NUMBER 1 CACHE STRING "a setting")
	add_custom_command(OUTPUT place COMMAND ${CMAKE_COMMAND} -E echo "${PROJECT_SOURCE_DIR} ${NUMBER}" > place)
	add_custom_target(it ALL DEPENDS place)
END
built one 0 -DNUMBER=7
[ ! -s log ] || fail "it has something to say"
echo kept >one/build/corpus
cp -r one two
built two 0
[ "$(cat log)" = "scripts/build: build was made as $work/one/build: its settings are kept, and all is built anew" ] || fail "not one line"
[ -e two/build/corpus ] || fail "a file was lost"
built two 0
[ ! -s log ] || fail "it is said twice"
built one 0
[ ! -s log ] || fail "the tree that was copied is not as it was"
mv two three
built three 0
[ "$(wc -l <log)" -eq 1 ] || fail "not one line"
dir=$work/one/build built three 2
[ "$(cat log)" = "scripts/build: $work/one/build is the build of $work/one; expected another folder for that of $work/three" ] || fail "not one line"
