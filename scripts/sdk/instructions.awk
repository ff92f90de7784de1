# SPDX-License-Identifier: BSD-3-Clause
#
# Reads what objdump -dl prints of a store's objects. Fails, and says where they are, if there are instructions that write to
# memory, write it back, order it, or tell time or chance, and that Tidemark does not see.
BEGIN { FS = "\t" }
# The source line of what follows.
/^[^ \t].*:[0-9]+( \(discriminator [0-9]+\))?$/ {
	place = $0
	sub(/ \(discriminator.*/, "", place)
	next
}
/^[0-9a-f]+ <.*>:$/ { place = "a source without -g"; next }
/^ +[0-9a-f]+:\t/ {
	split($2, word, /[ \t]+/)
	name = word[1]
	if (name ~ /^(clwb|clflush|clflushopt|clzero|cldemote|sfence|mfence|v?movnt[a-z0-9]*|v?maskmov[a-z0-9]*|lock|xbegin|rdtscp?|rdrand|rdseed|syscall|movdir[a-z0-9]*|enqcmds?|(a|u)?wrss[dq]?)$/ && !seen[place, name]++) {
		print place ": error: the instruction " name " is not seen by Tidemark; use libpmem, <immintrin.h>, or C\047s atomics"
		bad = 1
	}
}
END { exit bad }
