#compdef tidemark
# SPDX-License-Identifier: BSD-3-Clause
# zsh completion for tidemark. The names come from the program itself: --help has commands and options, `tidemark list`
# stores, variants, bugs, knobs and workloads.

# _tidemark_list WHAT COLUMN: names of `tidemark list WHAT`. Lines that go on with the one above are indented.
_tidemark_list()
{
	$program list $1 2>/dev/null | awk -v column=$2 '/^[^ ]/ { print $column }'
}

# _tidemark_names TITLE COMMAND...: offer the names that the command prints.
_tidemark_names()
{
	local title=$1
	local -a names
	shift
	names=(${(f)"$("$@")"})
	_wanted names expl $title compadd -a names
}

# "NAME:WHAT" for each option of the command.
_tidemark_options()
{
	local -a options
	options=(${(f)"$($program $1 --help 2>/dev/null | awk '
		/^  -/ {
			sub(/^  /, "")
			at = index($0, "  ")
			what = substr($0, at)
			sub(/^ +/, "", what)
			name = substr($0, 1, at - 1)
			sub(/^-[a-z], /, "", name)
			sub(/[ \[].*/, "", name)
			print name ":" what
		}')"})
	_describe option options
}

# What the option takes, as --help has it: NAME, FILE, shm|udp; nothing, if it takes no argument.
_tidemark_argument()
{
	$program $1 --help 2>/dev/null | awk -v option=$2 '
		/^  -/ {
			sub(/^  /, "")
			sub(/  .*/, "")
			n = split($0, word, /[ ,]+/)
			for (i = 1; i <= n; i++)
				if (word[i] == option && word[n] !~ /^-/)
					print word[n]
		}'
}

# Values of a knob, which stand on the line below its name.
_tidemark_values()
{
	$program list knobs 2>/dev/null | awk -v knob=$1 '
		/^[^ ]/ { found = $2 == knob }
		found && sub(/^ *values: /, "") { gsub(/ /, "\n"); print }'
}

# What there are lists of: [stores|variants|...].
_tidemark_kinds()
{
	$program list --help 2>/dev/null | awk -F '[][]' 'NR == 1 { gsub(/\|/, "\n", $2); print $2 }'
}

_tidemark()
{
	local program=$words[1] command=$words[2] previous=$words[CURRENT-1] argument='' expl
	local -a names
	if (( CURRENT == 2 )); then
		names=(${(f)"$($program --help 2>/dev/null | awk '/^  [a-z]/ { name = $1; sub(/^.*  /, ""); print name ":" $0 }')"})
		_describe command names
		[[ $PREFIX == -* ]] && compadd -- --help --version
		return
	fi
	if [[ $command == run ]]; then
		_arguments '*--fabric:fabric:_files -/' '--link:link:(shm udp)' '--address:address:' '*--fault:rule:' '--seed:number:' \
			'--pcap:file:_files' '--dropin' '--help' '*::program:_normal'
		return
	fi
	[[ $previous == -* ]] && argument=$(_tidemark_argument $command $previous)
	case $previous:$argument in
	--variant:*) _tidemark_names variant eval 'echo default; _tidemark_list variants 2; _tidemark_list bugs 2' ;;
	--workload:NAME) _tidemark_names workload _tidemark_list workloads 1 ;;
	--knob:*)
		if compset -P '*='; then
			_tidemark_names value _tidemark_values ${IPREFIX%=}
		else
			names=(${(f)"$(_tidemark_list knobs 2)"})
			_wanted names expl knob compadd -S = -a names
		fi
		;;
	*:DIR) _files -/ ;;
	*:*'|'*)
		names=(${(s:|:)argument})
		_wanted names expl value compadd -a names
		;;
	*:FILE | *:OUT | *:MEDIA | *:CACHE) _files ;;
	*:?*) _message $argument ;;
	*)
		if [[ $PREFIX == -* ]]; then
			_tidemark_options $command
			return
		fi
		case $command in
		crashtest | fuzz | ablate | count | serve) _tidemark_names store _tidemark_list stores 1 || _files ;;
		mutants) _tidemark_names bug eval '_tidemark_list bugs 1; _tidemark_list bugs 2' ;;
		list) _tidemark_names list _tidemark_kinds ;;
		claims | verbs) _tidemark_names name eval "$program $command --list 2>/dev/null | awk '/^[^ ]/ { print \$1 }'" ;;
		*) _files ;;
		esac
		;;
	esac
}

_tidemark "$@"
