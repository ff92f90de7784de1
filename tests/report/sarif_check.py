# SPDX-License-Identifier: BSD-3-Clause
"""sarif_check.py FILE TOP: does the file keep what SARIF 2.1.0 requires of what is in it, and what
code scanning asks for besides? Relative paths are below TOP. Prints a line for each result:
RULE FINGERPRINT PATH:LINE CAUSE."""
import json
import os
import re
import sys
import urllib.parse

PATH, TOP = sys.argv[1:]
wrong = []


def expect(good, what):
    if not good:
        wrong.append(what)


def only(thing, where, required, optional=()):
    """It is an object with these members, and no others."""
    expect(isinstance(thing, dict), f"{where} is no object")
    for name in required:
        expect(name in thing, f"{where} lacks {name}")
    for name in thing:
        expect(name in required or name in optional, f"{where}: no member is called {name}")


def text(thing, where):
    expect(isinstance(thing, str) and thing.strip(), f"{where} is no text")


def check_location(location, where):
    only(location, where, ["physicalLocation"])
    physical = location["physicalLocation"]
    only(physical, where, ["artifactLocation", "region"])
    artifact = physical["artifactLocation"]
    only(artifact, where, ["uri"], ["uriBaseId"])
    uri = artifact["uri"]
    expect(re.fullmatch(r"(file:///)?([A-Za-z0-9._~/+=@-]|%[0-9A-F]{2})+", uri), f"{where}: no URI: {uri}")
    expect(("uriBaseId" in artifact) != uri.startswith("file:"), f"{where}: a base for what is relative")
    expect(".." not in uri.split("/") and not uri.startswith("/"), f"{where}: {uri}")
    line = physical["region"].get("startLine")
    only(physical["region"], where, ["startLine"])
    expect(isinstance(line, int) and line >= 1, f"{where}: line {line}")
    path = urllib.parse.unquote(uri.removeprefix("file://"))
    file = os.path.join(TOP, path)
    if not os.path.isfile(file):
        expect(False, f"{where}: there is no {file}")
    else:
        lines = open(file, encoding="utf-8").read().splitlines()
        expect(line <= len(lines) and lines[line - 1].strip(), f"{where}: line {line} of {file} is empty")
    return f"{path}:{line}"


def check_result(result, rules, where):
    only(result, where, ["message"],
         ["ruleId", "ruleIndex", "level", "locations", "partialFingerprints", "properties"])
    only(result["message"], where, ["text"])
    text(result["message"]["text"], f"{where}: the message")
    expect(result["level"] in ("none", "note", "warning", "error"), f"{where}: level")
    expect(rules[result["ruleIndex"]]["id"] == result["ruleId"], f"{where}: its rule")
    expect(len(result["locations"]) == 1, f"{where}: expected one location")
    place = check_location(result["locations"][0], where)
    prints = result["partialFingerprints"]
    expect(isinstance(prints, dict) and prints, f"{where}: no fingerprint")
    for value in prints.values():
        text(value, f"{where}: a fingerprint")
    print(result["ruleId"], *prints.values(), place, result["properties"]["cause"])
    return tuple(prints.values())


def check():
    log = json.load(open(PATH, encoding="utf-8"))
    only(log, "the log", ["version", "runs"], ["$schema"])
    expect(log["version"] == "2.1.0", "the version")
    expect(len(log["runs"]) == 1, "expected one run")
    run = log["runs"][0]
    only(run, "the run", ["tool"], ["results", "columnKind", "invocations"])
    expect(run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints"), "columnKind")
    for call in run["invocations"]:
        only(call, "the invocation", ["executionSuccessful"], ["exitCode", "exitCodeDescription"])
        expect(call["executionSuccessful"] == (call["exitCode"] in (0, 1)), "it was not that successful")
        text(call["exitCodeDescription"], "what it comes to")
    only(run["tool"], "the tool", ["driver"])
    driver = run["tool"]["driver"]
    only(driver, "the driver", ["name"], ["version", "rules"])
    rules = driver["rules"]
    expect(rules and len({rule["id"] for rule in rules}) == len(rules), "rules have names of their own")
    for rule in rules:
        only(rule, rule["id"], ["id"], ["name", "shortDescription", "defaultConfiguration"])
        text(rule["shortDescription"]["text"], rule["id"])
    seen = [check_result(result, rules, f"result {i}") for i, result in enumerate(run["results"])]
    expect(len(set(seen)) == len(seen), "two results have one fingerprint")


check()
for one in wrong:
    print(f"{PATH}: {one}", file=sys.stderr)
sys.exit(1 if wrong else 0)
