# SPDX-License-Identifier: BSD-3-Clause
# Completion for bash and, by its bashcompinit, for zsh (_tidemark). All names come from the program itself: --help has commands,
# what they take, and options; `tidemark list` stores, variants, bugs, knobs and workloads.

# _tidemark_list PROGRAM WHAT COLUMN: names of `tidemark list WHAT`. Lines that go on with the one above are indented.
_tidemark_list()
{
	"$1" list "$2" 2>/dev/null | awk -v column="$3" '/^[^ ]/ { print $column }'
}

# _tidemark_values PROGRAM KNOB: its values, which stand on the line below its name.
_tidemark_values()
{
	"$1" list knobs 2>/dev/null | awk -v knob="$2" '
		/^[^ ]/ { found = $2 == knob }
		found && sub(/^ *values: /, "")'
}

# _tidemark_argument PROGRAM COMMAND OPTION: what the option takes, as --help has it: NAME, FILE, shm|udp; nothing, if it
# takes no argument.
_tidemark_argument()
{
	"$1" "$2" --help 2>/dev/null | awk -v option="$3" '
		/^  -/ {
			sub(/^  /, "")
			sub(/  .*/, "")
			n = split($0, word, /[ ,]+/)
			for (i = 1; i <= n; i++)
				if (word[i] == option && word[n] !~ /^-/)
					print word[n]
		}'
}

# _tidemark_words PROGRAM COMMAND: what its words can be, which are no options.
_tidemark_words()
{
	case $2:$("$1" --help 2>/dev/null | awk -v command="$2" '$1 == command { print $2; exit }') in
	*:*STORE*) _tidemark_list "$1" stores 1 ;;
	*:'[NAME...]')
		_tidemark_list "$1" bugs 1
		_tidemark_list "$1" bugs 2
		;;
	*:'[WHAT]') "$1" "$2" --help 2>/dev/null | sed -n '1s/.*\[\(.*\)\].*/\1/p' | tr '|' ' ' ;;
	*:'[ID...]' | *:'[PROGRAM...]') "$1" "$2" --list 2>/dev/null | awk '/^[^ ]/ { print $1 }' ;;
	esac
}

# _tidemark_offer CURRENT WORDS: those that begin so.
_tidemark_offer()
{
	COMPREPLY=($(compgen -W "$2" -- "$1" | sort -u))
}

_tidemark()
{
	local program=${COMP_WORDS[0]} command=${COMP_WORDS[1]} current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
	local option='' argument='' knob='' i
	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		_tidemark_offer "$current" "$("$program" --help 2>/dev/null | awk '/^  [a-z]/ { print $1 }') --help --version"
		return
	fi
	# `tidemark run PROGRAM ARGUMENT...`: from there on it is another command line.
	if [ "$command" = run ]; then
		for ((i = 2; i < COMP_CWORD; i++)); do
			case ${COMP_WORDS[i]} in
			--) ;;
			-*) [ -n "$(_tidemark_argument "$program" run "${COMP_WORDS[i]}")" ] && i=$((i + 1)) ;;
			*) return ;;
			esac
		done
	fi
	# The word that is completed may be an option's argument. bash makes three words of NAME=VALUE, zsh one.
	case $previous:$current in
	=:*) option=${COMP_WORDS[COMP_CWORD - 2]} knob=$option i=3 ;;
	*:=) option=$previous knob=$option current='' i=2 ;;
	-?*) option=$previous ;;
	esac
	if [ -n "$knob" ] && [ "${COMP_WORDS[COMP_CWORD - i]}" = --knob ]; then
		_tidemark_offer "$current" "$(_tidemark_values "$program" "$knob")"
		return
	fi
	[ -z "$option" ] || argument=$(_tidemark_argument "$program" "$command" "$option")
	case $option:$argument in
	--variant:*) _tidemark_offer "$current" "default $(_tidemark_list "$program" variants 2) $(_tidemark_list "$program" bugs 2)" ;;
	--workload:NAME) _tidemark_offer "$current" "$(_tidemark_list "$program" workloads 1)" ;;
	--knob:*)
		compopt -o nospace 2>/dev/null
		case $current in
		*=*)
			knob=${current%%=*}
			_tidemark_offer "$current" "$(_tidemark_values "$program" "$knob" | tr ' ' '\n' | sed "s/^/$knob=/")"
			;;
		*) _tidemark_offer "$current" "$(_tidemark_list "$program" knobs 2 | sed 's/$/=/')" ;;
		esac
		;;
	*:DIR)
		compopt -o filenames 2>/dev/null
		COMPREPLY=($(compgen -d -- "$current"))
		;;
	*:*'|'*) _tidemark_offer "$current" "$(echo "$argument" | tr '|' ' ')" ;;
	*:FILE | *:OUT | *:MEDIA | *:CACHE) ;; # files are offered where nothing else is
	*:?*) compopt +o default +o bashdefault 2>/dev/null ;;
	*)
		case $current in
		-*)
			_tidemark_offer "$current" "$("$program" "$command" --help 2>/dev/null |
				sed -nE 's/^  ((-[a-z]), )?(--[a-z-]+).*/\2 \3/p')"
			;;
		*)
			if [ "$command" = run ]; then
				COMPREPLY=($(compgen -c -- "$current" | sort -u))
			else
				_tidemark_offer "$current" "$(_tidemark_words "$program" "$command")"
			fi
			;;
		esac
		;;
	esac
}

complete -o bashdefault -o default -F _tidemark tidemark
