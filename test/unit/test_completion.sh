# The bash completion, asked as bash asks it: COMP_WORDS and COMP_CWORD in, COMPREPLY out.
set -u
: "${ELRUN:?}"
command -v bash >/dev/null || { echo '1..0 # SKIP no bash'; exit 0; }
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
"$ELRUN" completion bash >"$tmp/script"
cd "$tmp" && touch train.py
n=0
# ask WANT WHAT WORD...: the last word is the one to complete.
ask() {
    want=$1 what=$2; shift 2
    got=$(bash -c '
        compopt() { :; }
        . ./script
        COMP_WORDS=(elrun "$@") COMP_CWORD=$#
        _elrun
        echo "${COMPREPLY[*]}"' bash "$@" | tr -s ' ' | sed 's/ $//')
    n=$((n + 1))
    if [ "$got" = "$want" ]; then echo "ok $n - $what"; else printf 'not ok %s - %s\n#  got: %s\n# want: %s\n' $n "$what" "$got" "$want"; fi
}
ask '--nproc-per-node' 'an option' --np
ask 'version' 'a command' ver
ask 'train.py' 'a script' tra
ask 'cpu gpu xpu auto' 'values as the next word' --nproc-per-node ''
ask 'gpu' 'a value, begun' --nproc-per-node g
ask 'gpu' 'a value behind =' --nproc-per-node = g
ask 'cpu gpu xpu auto' 'behind = alone' --nproc-per-node =
ask 'gpu' 'in the other spelling' --nproc_per_node g
ask '--tee' 'after an option and its value' --nproc-per-node 2 --te
ask '--tee' 'after an option and its value behind =' --nproc-per-node = 2 --te
ask '' 'behind the script everything is the script'\''s' train.py --te
ask '' 'also after options' -r 3 train.py --nn
ask '--json' 'options of another command' version --js
ask 'bash zsh fish' 'words of another command' completion ''
ask 'signals' 'topics of help' help sig
ask '' 'nothing after the word' help signals ''
ask '--nnodes' 'run named' run --nno
echo "1..$n"
