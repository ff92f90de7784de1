#!/usr/bin/env bash
# tests/core/live/test_fiu.sh PROGRAM: the failure points of the live world, in a guest (tests/core/live/fiu_guest.sh). Skipped where there
# is no QEMU, no kernel, or no fiu-utils.
set -eu
program=$(realpath "$1")
cd "$(dirname "$0")/../../.."
preload=/usr/lib/fiu/fiu_run_preload.so
for needed in /usr/bin/fiu-run /usr/bin/fiu-ctrl $preload; do
	if [ ! -e $needed ]; then
		echo "skipped: no $needed" >&2
		exit 77
	fi
done
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
vm/guest --program "$program" --program /bin/bash --program /usr/bin/fiu-run --program /usr/bin/fiu-ctrl \
	--program $preload --program "$PWD/tests/core/live/fiu_guest.sh" --nvdimm "$made/pool:64M" --timeout "${FIU_TIMEOUT:-1000}" \
	-- "bash /bin/fiu_guest.sh /bin/$(basename "$program")"
