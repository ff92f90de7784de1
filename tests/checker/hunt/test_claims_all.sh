#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# test_claims_all.sh PROGRAM
#
# What the papers claim of the stores, and what they leave out, turns out as core/stores/claims.txt says.
program=$1
exec "$program" claims --no-traces --quiet
