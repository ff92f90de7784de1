#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
#
# test_systems_events.py TIDEMARK SOURCES: in a few runs of two stores of several servers nothing breaks where the table of events in
# docs/systems.md says that it holds, and something does where it says so. `scripts/systems write events` measures the table.
import os
import subprocess
import sys

tidemark, sources = sys.argv[1:]


def cells(lines):
    """By store, hardware and column: the contracts that break, or "-"."""
    found = {}
    for line in lines:
        if line.startswith("| `"):
            store, hardware, *row = (field.strip() for field in line.strip("|\n").split("|"))
            for where in hardware.split():
                for column, text in enumerate(row):
                    found[store, where, column] = set(text.replace(".", "").split())
    return found


text = open(f"{sources}/docs/systems.md").read()
written = cells(text.split("<!-- events -->")[1].split("<!-- end of events -->")[0].splitlines())
environment = {**os.environ, "TIDEMARK": tidemark, "RUNS": "40"}
run = [f"{sources}/scripts/systems", "events", "mojim", "octopus_tx"]
measured = cells(subprocess.run(run, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines())
wrong = {at: broken - written[at] for at, broken in measured.items() if broken - written[at]}
assert not wrong, f"docs/systems.md says that these hold: {wrong}"
assert measured["`mojim literal`", "dmp", 0] and measured["`octopus_tx literal`", "dmp", 1], measured
assert all((written[at] == {"-"}) == (broken == {"-"}) for at, broken in measured.items()), measured
print(f"{len(measured)} of {len(written)} cells")
