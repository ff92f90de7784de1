#!/usr/bin/env bash
# test_vmdiff.sh TIDEMARK SOURCES: the soft RNIC against rdma_rxe in a guest. Skipped (77) without QEMU.
set -u
cd "$2" || exit 1
exec vm/differential --tidemark "$1"
