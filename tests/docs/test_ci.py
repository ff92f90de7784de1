#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_ci.py TIDEMARK SOURCES: the examples of examples/ci are good.

Each file is read as its system reads it; its commands are then run in a folder of their own, step by step, with the real
program, but small budgets and nothing fetched or installed. So an option that does not exist, or a file that is uploaded
and never written, is found; and what a job makes of the program's exit statuses."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

try:
    import yaml
except ImportError:
    sys.exit(77)

TIDEMARK, SOURCES = (os.path.realpath(path) for path in sys.argv[1:])
CI = os.path.join(SOURCES, "examples", "ci")
failures = []


def expect(good, what):
    if not good:
        failures.append(what)
        print("FAILED:", what, file=sys.stderr)


def read(name):
    with open(os.path.join(CI, name), encoding="utf-8") as file:
        return file.read()


# --- a machine on which a job runs ---

# The program with less to do. FORCED is what it then ends with; BROKEN names a variant with a bug.
PROGRAM = """#!/bin/bash
echo "$*" >>"$CALLS"
case $1 in
crashtest)
	{ tidemark_real "$@" $NAMED ${BROKEN:+--variant $BROKEN} --workload w-r --runs 60 --states 600 --jobs 1 -q; }
	status=$?
	exit "${FORCED:-$status}" ;;
fuzz)
	[ -z "${FORCED-}${BROKEN-}" ] || exit 0
	tidemark_real "$@" $NAMED --time 1s --jobs 1 -q ;;
*) tidemark_real "$@" ;;
esac
"""
# What make is asked for exists; it makes only what a store's own Makefile has.
MAKE = """#!/bin/bash
folder=.
[ "$1" != -C ] || { folder=$2; shift 2; }
if [ -e "$folder/CMakeLists.txt" ] || [ ! -e "$folder/Makefile" ]; then
	case ${1-all} in *=*) ;; *) grep -q "^\\([a-z ]* \\)\\?${1-all}\\b.*:" "$SOURCES/Makefile" || exit 2 ;; esac
	for word; do
		case $word in PREFIX=*) mkdir -p "${word#PREFIX=}/bin" && cp "$MACHINE/bin/tidemark" "${word#PREFIX=}/bin" ;; esac
	done
	exit 0
fi
exec /usr/bin/make -C "$folder" "$@"
"""
# A server that has the results of the branch.
CURL = """#!/bin/bash
while [ $# -gt 0 ]; do
	[ "$1" != --output ] || { cp "$MACHINE/earlier.json" "$2"; exit; }
	shift
done
exit 2
"""


class Machine:
    def __init__(self, named):
        self.top = tempfile.mkdtemp()
        self.work = os.path.join(self.top, "work")
        self.calls = os.path.join(self.top, "calls")
        os.makedirs(os.path.join(self.top, "bin"))
        os.makedirs(os.path.join(self.work, "build"))
        os.makedirs(os.path.join(self.work, "examples"))
        shutil.copytree(CI, os.path.join(self.work, "examples", "ci"))
        for name, text in ("tidemark", PROGRAM), ("make", MAKE), ("curl", CURL), ("apt-get", "#!/bin/sh\n"):
            self.program(os.path.join(self.top, "bin", name), text)
        self.program(os.path.join(self.work, "build", "tidemark"), PROGRAM)
        self.program(os.path.join(self.top, "bin", "tidemark_real"), f'#!/bin/sh\nexec {TIDEMARK} "$@"\n')
        self.env = {"PATH": os.path.join(self.top, "bin") + ":" + os.environ["PATH"], "HOME": self.top,
                    "CALLS": self.calls, "SOURCES": SOURCES, "MACHINE": self.top, "NAMED": named, "LC_ALL": "C"}
        self.out = ""

    @staticmethod
    def program(path, text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)

    def run(self, shell, script, env):
        done = subprocess.run(shell + ["-c", script], cwd=self.work, env={**self.env, **env}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, check=False)
        self.out += done.stdout
        return done.returncode

    def has(self, path):
        return os.path.exists(os.path.join(self.work, path))

    def results(self, path="crashtest.json"):
        return os.path.join(self.work, path)

    def close(self):
        shutil.rmtree(self.top)


# --- GitHub ---

VALUES = {"github.run_number": "7", "github.run_id": "70", "github.base_ref || github.ref_name": "main",
          "github.ref_name": "main"}


def filled(text, values):
    """With its expressions' values."""
    def value(match):
        name = match.group(1).strip()
        expect(name in values, f"nobody knows the value of {name}")
        return values.get(name, "")
    return re.sub(r"\$\{\{(.*?)\}\}", value, str(text))


def github(machine, steps, values, extra):
    """Runs the steps; 0: the job went well."""
    status = 0
    files = {name: os.path.join(machine.top, name) for name in ("GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")}
    for path in files.values():
        open(path, "w", encoding="utf-8").close()
    for step in steps:
        always = "always()" in step.get("if", "")
        missing = [file for file in re.findall(r"hashFiles\('([^']*)'\) != ''", step.get("if", "")) if not machine.has(file)]
        path = step.get("with", {}).get("path", "")
        if (status and not always) or missing:
            continue
        if "run" in step:
            env = {name: filled(value, values) for name, value in step.get("env", {}).items()}
            with open(files["GITHUB_PATH"], encoding="utf-8") as file:
                more = "".join(line.strip() + ":" for line in file)
            env["PATH"] = more + machine.env["PATH"]
            expect("${{ github" not in step["run"], "a value of the event is part of a script")
            now = machine.run(["bash", "-eo", "pipefail"], filled(step["run"], values), {**env, **files, **extra})
            status = status or now
        elif "upload-artifact" in step["uses"] and not extra:
            for one in path.split():
                expect(machine.has(one), f"{one} is uploaded, and is not there:\n{machine.out}")
        elif "upload-sarif" in step["uses"]:
            with open(machine.results(step["with"]["sarif_file"]), encoding="utf-8") as file:
                machine.out += f"SARIF: {len(json.load(file)['runs'][0]['results'])} results\n"
        elif "cache/restore" in step["uses"]:
            os.makedirs(machine.results(path), exist_ok=True)
            shutil.copy(os.path.join(machine.top, "earlier.json"), machine.results(path + "/crashtest.json"))
        filled(step.get("with", {}), values)
    return status


# --- each example as a function of a machine and what else is in the environment ---

def workflow(machine, extra):
    job = yaml.safe_load(read("github.yml"))["jobs"]["tidemark"]
    return github(machine, job["steps"], VALUES, extra)


def action(machine, extra):
    spec = yaml.safe_load(read("action.yml"))
    expect(spec["runs"]["using"] == "composite", "action.yml is no composite action")
    given = {"build": "tidemark new-store mine\ncp mine/mine.c .\ntidemark cc -g -o mine.so mine.c", "store": "./mine.so"}
    values = dict(VALUES)
    for name, spec_of in spec["inputs"].items():
        expect(name in given or "default" in spec_of, f"action.yml: {name} is not given")
        values[f"inputs.{name}"] = given.get(name, spec_of.get("default"))
    for step in spec["runs"]["steps"]:
        expect("uses" in step or "shell" in step, "a step of an action names its shell")
    return github(machine, spec["runs"]["steps"], values,
                  {"GITHUB_ACTION_PATH": CI, "RUNNER_TEMP": machine.top, **extra} if extra else
                  {"GITHUB_ACTION_PATH": CI, "RUNNER_TEMP": machine.top})


def gitlab(machine, extra):
    job = yaml.safe_load(read("gitlab-ci.yml"))["tidemark"]
    env = {"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main", "CI_API_V4_URL": "https://example.org", "CI_PROJECT_ID": "1",
           "CI_JOB_TOKEN": "x", "CI_PIPELINE_IID": "7"}
    lines = job["before_script"] + job["script"]
    status = machine.run(["bash", "-eo", "pipefail"], "\n".join(lines), {**env, **extra})
    for one in job["artifacts"]["paths"] + job["artifacts"]["reports"]["junit"]:
        expect(extra or machine.has(one), f"{one} is an artefact, and is not there:\n{machine.out}")
    return 0 if status == job["allow_failure"]["exit_codes"] else status


def jenkins(machine, extra):
    text = read("Jenkinsfile")
    expect(all(text.count(a) == text.count(b) for a, b in ("{}", "()", "[]")), "Jenkinsfile: brackets")
    shutil.copytree(os.path.join(machine.top, "before"), machine.results("before"))
    calls = re.findall(r"\bsh(?:\(returnStatus: true, script:)? '([^']*)'", text)
    expect(len(calls) == len(re.findall(r"\bsh\b", text)), "Jenkinsfile: a command that the test does not understand")
    result = 0
    for call in calls:
        status = machine.run(["sh", "-e"], call, {"BUILD_NUMBER": "7", **extra})
        handled = "crashtest --" in call
        expect(not handled or "status == 3" in text and "status != 0" in text, "Jenkinsfile: statuses")
        result = result or (0 if handled and status == 3 else status)
        if result:
            break
    return result


# --- the tests ---

def options_exist(name):
    text = read(name).replace("\\\n", " ")
    calls = re.findall(r"tidemark (crashtest|fuzz|diff|replay|cc|new-store)\b([^\n|;]*)", text)
    expect(name == "crashtest.baseline" or len(calls) >= 2, f"{name} calls no tidemark")
    for command, rest in calls:
        shown = subprocess.run([TIDEMARK, command, "--help"], stdout=subprocess.PIPE, text=True, check=False).stdout
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", rest):
            expect(re.search(rf"{option}(?![a-z-])", shown), f"{name}: tidemark {command} has no {option}")


def machine_with_results(named):
    machine = Machine(named)
    earlier = os.path.join(machine.top, "earlier.json")
    subprocess.run([TIDEMARK, "crashtest", "efactory", "--workload", "w-r", "--runs", "60", "--states", "600", "-q", "--json",
                    earlier], cwd=machine.top, stdout=subprocess.DEVNULL, check=False)
    os.makedirs(os.path.join(machine.top, "before"))
    shutil.copy(earlier, os.path.join(machine.top, "before", "crashtest.json"))
    return machine


def try_job(name, job, named, bug):
    for what, extra, good in (("nothing breaks", {}, True), ("the time is over", {"FORCED": "3"}, True),
                              ("a promise breaks", {"BROKEN": bug}, False), ("bad input", {"FORCED": "2"}, False),
                              ("an interruption", {"FORCED": "130"}, False)):
        machine = machine_with_results(named)
        status = job(machine, extra)
        expect((status == 0) == good, f"{name}, {what}: status {status}\n{machine.out}")
        with open(machine.calls, encoding="utf-8") as file:
            called = [line.split()[0] for line in file]
        expect("crashtest" in called and machine.has("crashtest.sarif"), f"{name}, {what}: no crash test\n{machine.out}")
        expect(name == "Jenkinsfile" and not good or "fuzz" in called, f"{name}, {what}: no fuzzing")
        if job in (workflow, gitlab) and not extra:
            expect("diff" in called and re.search(r"\d entries in both", machine.out),
                   f"{name}: no comparison\n{machine.out}")
        if "BROKEN" in extra and job in (workflow, action):
            expect("::error file=" in machine.out, f"{name}: no annotations\n{machine.out}")
        if "BROKEN" in extra and job == workflow:
            expect("SARIF: 0" not in machine.out and "SARIF: " in machine.out, f"{name}: no alerts")
            expect("BROKEN" in machine.out or "broken" in machine.out, f"{name}: no report")
        if extra.get("FORCED") == "3" and job in (workflow, action):
            expect("::warning::" in machine.out, f"{name}: no warning")
        machine.close()


for example in ("github.yml", "gitlab-ci.yml", "Jenkinsfile", "action.yml"):
    options_exist(example)
    page = open(os.path.join(SOURCES, "docs", "ci.md"), encoding="utf-8").read()
    expect(f"examples/ci/{example}" in page, f"docs/ci.md does not name {example}")
try_job("github.yml", workflow, "efactory", "get_no_fence")
try_job("gitlab-ci.yml", gitlab, "efactory", "get_no_fence")
try_job("Jenkinsfile", jenkins, "efactory", "get_no_fence")
try_job("action.yml", action, "", "flag_only")
print("the examples of continuous integration are good" if not failures else f"{len(failures)} failures")
sys.exit(1 if failures else 0)
