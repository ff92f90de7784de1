#!/bin/bash
# ibv_devices and ibv_devinfo of the system's, on the soft RNIC: preloaded, and by the drop-in libibverbs.so.1; and a
# program that loads libibverbs by its name, and asks for versions.
#
#   tests/core/provider/test_nic_devinfo.sh PRELOAD DROP-IN-DIRECTORY
set -eu

preload=$1 dropin=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export TIDEMARK_FABRIC=$dir/net

fail() {
	echo "$*" >&2
	exit 1
}

cat > "$dir/loads.c" <<'END'
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdio.h>

int main(void)
{
	void *verbs = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
	struct ibv_device **(*list)(int *), **devices;
	const char *(*name)(struct ibv_device *);
	struct ibv_context *(*open)(struct ibv_device *);
	struct ibv_pd *(*pd)(struct ibv_context *);
	int (*dealloc)(struct ibv_pd *);
	int n;

	if (!verbs)
		return !!fprintf(stderr, "%s\n", dlerror());
	list = (struct ibv_device **(*)(int *))dlvsym(verbs, "ibv_get_device_list", "IBVERBS_1.1");
	name = (const char *(*)(struct ibv_device *))dlvsym(verbs, "ibv_get_device_name", "IBVERBS_1.1");
	open = (struct ibv_context *(*)(struct ibv_device *))dlvsym(verbs, "ibv_open_device", "IBVERBS_1.1");
	pd = (struct ibv_pd *(*)(struct ibv_context *))dlvsym(verbs, "ibv_alloc_pd", "IBVERBS_1.1");
	dealloc = (int (*)(struct ibv_pd *))dlsym(verbs, "ibv_dealloc_pd");
	if (!list || !name || !open || !pd || !dealloc || dlvsym(verbs, "ibv_alloc_pd", "IBVERBS_1.0"))
		return 2;
	devices = list(&n);
	if (n != 1)
		return 3;
	printf("%s %d\n", name(devices[0]), dealloc(pd(open(devices[0]))));
	return 0;
}
END
${CC:-cc} -D_GNU_SOURCE -Wall -Werror -o "$dir/loads" "$dir/loads.c" -ldl
[ "$(LD_LIBRARY_PATH=$dropin "$dir/loads")" = "tide0 0" ] || fail "a program that loads $dropin/libibverbs.so.1"

command -v ibv_devinfo >/dev/null && command -v ibv_devices >/dev/null ||
	{ echo "no ibv_devinfo (ibverbs-utils)" >&2; exit 77; }
info() {
	"$@" ibv_devices > "$dir/out"
	grep -q tide0 "$dir/out" || fail "ibv_devices, $1: $(cat "$dir/out")"
	"$@" ibv_devinfo -v > "$dir/out"
	for line in 'hca_id:.tide0' 'transport:.*InfiniBand (0)' 'phys_port_cnt:.*1' 'atomic_cap:.*GLOB' \
		'state:.*PORT_ACTIVE' 'link_layer:.*Ethernet' 'GID\[  0\]:.*::ffff:.*RoCE v2' \
		'GID\[  1\]:.*fe80::.*RoCE v2' 'GID\[  2\]:.*RoCE v1' \
		'hca_core_clock:.*1000000kHZ' 'active_width:.*4X' 'tag matching not supported'; do
		grep -q "$line" "$dir/out" || fail "ibv_devinfo -v, $1: no '$line'"
	done
	[ "$(grep -c 'GID\[' "$dir/out")" = 4 ] || fail "ibv_devinfo -v, $1: GIDs that are none"
}
info env LD_PRELOAD="$preload"
info env LD_LIBRARY_PATH="$dropin"
env TIDEMARK_LAYER=infiniband LD_PRELOAD="$preload" ibv_devinfo -v > "$dir/out"
for line in 'link_layer:.*InfiniBand' 'port_lid:.*1$' 'sm_lid:.*1$'; do
	grep -q "$line" "$dir/out" || fail "ibv_devinfo -v with LIDs: no '$line'"
done
