#!/usr/bin/env zsh
# SPDX-License-Identifier: BSD-3-Clause
#
# test_completion_zsh.zsh TIDEMARK FOLDER: what zsh's completion (FOLDER/_tidemark) shows in a terminal when the tab key is pressed.
cd ${0:A:h}/../.. && zmodload zsh/zpty || exit 77
tidemark=$1 folder=$2 failed=0

zpty shell zsh -f -i
zpty -w shell "PATH=${tidemark:h}:\$PATH; fpath=($folder \$fpath); autoload -U compinit; compinit -u -D"
# All that can be is listed when tab is pressed once, however much it is.
zpty -w shell "setopt auto_list no_list_ambiguous no_list_beep; LISTMAX=10000; stty columns 200 rows 1000; PS1='<%%pro''mpt>'"
zpty -r -m shell text '*<%prompt>*'

# offers EXPECTED LINE: when tab is pressed behind LINE, each of the words shows.
offers() {
	local word text
	zpty -w -n shell "$2"$'\t\C-U'"echo '<do''ne>'"$'\n'
	zpty -r -m shell text '*<done>*<%prompt>*' # then keys are read again
	for word in ${=1}; do
		[[ $text == *$word* ]] || {
			echo "zsh completion of '$2': $word is not offered, but ${(V)text}" >&2
			failed=1
		}
	done
}
offers 'crashtest claims' 'tidemark c'
offers 'efactory erda' 'tidemark crashtest e'
offers '--variant --workload' 'tidemark crashtest --'
offers 'one_flush one_conn' 'tidemark crashtest --variant one_'
offers 'ddio domain' 'tidemark crashtest --knob d'
offers 'on off' 'tidemark crashtest --knob ddio='
offers 'stores knobs' 'tidemark list '
offers 'shm udp' 'tidemark run --link '
offers '--dropin' 'tidemark run --link shm --d'
offers 'printenv' 'tidemark run --link shm printe'
offers 'printenv' 'tidemark run -- printe'
offers 'README.md' 'tidemark run -- cat READ'
zpty -d shell
exit $failed
