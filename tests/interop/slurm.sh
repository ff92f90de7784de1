# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# For tests: a Slurm of this machine, a controller and two nodes (n1, n2) of two processors each, in a folder D of its own.
#
# slurm_there: says why there is none, and fails. slurm_start D; slurm_end D, in any case, ends all of it.

slurm_there() {
	local program
	for program in munged slurmctld slurmd sbatch squeue scontrol; do
		PATH=$PATH:/usr/sbin type -P "$program" >/dev/null ||
			{ echo "no $program (scripts/deps slurm installs it)" >&2; return 1; }
	done
	[ "$(id -u)" -eq 0 ] || { echo 'not root, who alone can start the nodes' >&2; return 1; }
}

# Three ports that are free now.
slurm_ports() {
	local port=$((20000 + RANDOM % 20000)) found=()
	while [ ${#found[@]} -lt 3 ]; do
		port=$((port + 1))
		(exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || found+=("$port")
	done
	echo "${found[@]}"
}

slurm_start() {
	local dir=$1 host ports
	host=$(hostname -s)
	read -ra ports < <(slurm_ports)
	mkdir -p "$dir/log" "$dir/state" "$dir/spool/n1" "$dir/spool/n2"
	chmod 755 "$dir"
	dd if=/dev/urandom of="$dir/key" bs=1024 count=1 status=none
	chmod 400 "$dir/key"
	cat >"$dir/slurm.conf" <<END
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=${ports[0]}
SlurmctldPidFile=$dir/slurmctld.pid
SlurmctldLogFile=$dir/log/slurmctld
StateSaveLocation=$dir/state
SlurmdPidFile=$dir/slurmd-%n.pid
SlurmdLogFile=$dir/log/slurmd-%n
SlurmdSpoolDir=$dir/spool/%n
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge.sock,cred_expire=5
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmdTimeout=6
SchedulerParameters=sched_interval=2,bf_interval=2
InactiveLimit=0
KillWait=2
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=${ports[1]} CPUs=2 State=UNKNOWN
NodeName=n2 NodeHostname=$host NodeAddr=127.0.0.1 Port=${ports[2]} CPUs=2 State=UNKNOWN
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
END
	export SLURM_CONF=$dir/slurm.conf PATH=$PATH:/usr/sbin
	munged --force --socket="$dir/munge.sock" --key-file="$dir/key" --pid-file="$dir/munged.pid" --log-file="$dir/log/munge" \
		--seed-file="$dir/seed" || return
	slurmctld -f "$SLURM_CONF" && slurmd -f "$SLURM_CONF" -N n1 && slurmd -f "$SLURM_CONF" -N n2 || return
	for ((i = 0; i < 300; i++)); do
		[ "$(sinfo -h -N -t idle -o %N 2>/dev/null | sort | paste -sd ' ')" = 'n1 n2' ] && return
		sleep 0.1
	done
	echo "the nodes do not come up: $(sinfo -N)" >&2
	return 1
}

# slurm_processes D [NODE]: what runs there: each job's processes, and their parents that belong to Slurm.
slurm_processes() {
	local dir=$1 node=${2:-} proc words parent
	for proc in /proc/[0-9]*; do
		words=" $({ tr '\0' ' ' <"$proc/environ"; } 2>/dev/null)"
		[[ $words = *" SLURM_CONF=$dir/slurm.conf "* && $words = *' SLURM_JOB_ID='* ]] || continue
		[ -z "$node" ] || [[ $words = *" SLURMD_NODENAME=$node "* ]] || continue
		parent=$({ awk '$1 == "PPid:" { print $2 }' "$proc/status"; } 2>/dev/null)
		[ "$(cat "/proc/$parent/comm" 2>/dev/null)" != slurmstepd ] || echo "$parent"
		echo "${proc#/proc/}"
	done
}

# A node without power: slurm_fail D NODE
slurm_fail() {
	local pid
	kill -KILL "$(cat "$1/slurmd-$2.pid")"
	for pid in $(slurm_processes "$1" "$2"); do
		kill -KILL "$pid" 2>/dev/null || :
	done
}

slurm_end() {
	local pid file i
	for pid in $(slurm_processes "$1"); do
		kill -KILL "$pid" 2>/dev/null || :
	done
	for file in "$1"/slurmd-n1.pid "$1"/slurmd-n2.pid "$1"/slurmctld.pid "$1"/munged.pid; do
		pid=$(cat "$file" 2>/dev/null) || continue
		kill "$pid" 2>/dev/null || continue
		for ((i = 0; i < 50; i++)); do
			kill -0 "$pid" 2>/dev/null || continue 2
			sleep 0.1
		done
		kill -KILL "$pid" 2>/dev/null || :
	done
}
