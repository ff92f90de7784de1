#!/usr/bin/env bash
# test_loss_live.sh TIDEMARK: the last answer of a program that ends is lost: its partner gets it nonetheless. Both links
# under loss, duplication and reordering.
set -eu
tidemark=$1
name=test_loss_live
# shellcheck source=tests/core/provider/nic_pair.sh
. "$(dirname "$0")/nic_pair.sh"

for link in shm udp; do
	# One message each way: the client ends when it has the answer, and the server is waiting for its acknowledgement.
	TIDEMARK_FAULTS='drop ack 1' pair "--link $link" "--link $link" -n 1 ||
		die "$link, the last acknowledgement is lost: $(cat "$dir/server" "$dir/client")"
	TIDEMARK_FAULTS='lose 5%; duplicate 2%; reorder 10%' pair "--link $link" "--link $link" -c -s 200000 -n 50 ||
		die "$link: $(cat "$dir/server" "$dir/client")"
done
