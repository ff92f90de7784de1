#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
#
# test_systems_contracts.py TIDEMARK SOURCES: in some of the usual runs and states no store breaks what the table of contracts in
# docs/systems.md says holds, and none breaks anything for an unknown cause. `scripts/systems write contracts` measures the table.
import json
import subprocess
import sys
import tempfile

tidemark, sources = sys.argv[1:]
written = {}  # (store, configuration): its marks; the configuration "": all hardware
for line in open(f"{sources}/docs/systems.md").read().split("<!-- contracts -->")[1].split(".  holds:")[0].splitlines():
    name, *marks = line.replace(" (all hardware)", "/").split() or [""]
    if name == "RDA":
        contracts = [name, *marks]
    elif name and "=" in name:
        written[store, name] = marks
    elif name:
        store = name.rstrip("/")
        written[store, "" if name.endswith("/") else "default"] = marks
stores = sorted({store for store, _ in written})
listed = subprocess.run([tidemark, "list", "stores"], capture_output=True, text=True, check=True).stdout.splitlines()
assert stores == sorted(line.split()[0] for line in listed if line[:1].isalpha()), stores
with tempfile.TemporaryDirectory() as folder:
    run = [tidemark, "crashtest", *stores, "--runs", "4", "--states", "80", "--no-traces", "--quiet", "--json", "r.json"]
    done = subprocess.run(run, cwd=folder, stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stdout
    cells = json.load(open(f"{folder}/r.json"))["cells"]
rows = {config for _, config in written if config}
broken = {(c["store"], c["config"], c["contract"]) for c in cells if c["verdict"] == "broken" and c["config"] in rows}
wrong = [
    (store, config, contract)
    for store, config, contract in sorted(broken)
    if contract in contracts and (written.get((store, config)) or written[store, ""])[contracts.index(contract)] == "."
]
print(f"{len(cells)} cells, {len(broken)} broken")
assert len(broken) > 100 and not wrong, f"docs/systems.md says that these hold: {wrong}"
