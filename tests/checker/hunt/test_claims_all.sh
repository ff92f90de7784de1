#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# test_claims_all.sh PROGRAM
#
# What the papers claim of the stores, and what they leave out, turns out as core/stores/claims.txt says.
program=$1
claims=$("$program" claims --list | awk '/^[^ ]/ { print $1 }' | "$(dirname "$0")/../../share.sh")
[ -n "$claims" ] || { echo "no claims" >&2; exit 1; }
# shellcheck disable=SC2086 # each is a word
exec "$program" claims $claims --no-traces --quiet
