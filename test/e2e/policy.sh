# --restart-policy: what a restart cannot cure ends the job at once, or after it has come twice; all else is tried again
# within --max-restarts, within --restart-window.  Real Python, without torch.
# Seen to fail: a build in which every failure is tried again (decide.c: smart does as always); one in which a single
# worker's TypeError is enough; one whose budget forgets --restart-window.
. "$(dirname "$0")/../lib/e2e.sh"
ENV="PYTHON_EXEC=$PY PYTHONNOUSERSITE=1"
last() { cause_of "$ERR"; }
attempts() { ls "$T" | sed -n "s/^$1\.\([0-9]*\)\.[0-9]*\$/\1/p" | sort -nu | tr '\n' ' '; } # NAME: numbers of those begun

# script NAME: its text from stdin, behind lines that leave $T/NAME.ATTEMPT.RANK and define meet(), which waits for ranks.
script() {
    { cat <<END
import os, signal, sys, time
rank, attempt = os.environ["RANK"], int(os.environ["TORCHELASTIC_RESTART_COUNT"])
me = "$T/$1.%d." % attempt
open(me + rank, "w").close()
def meet(*ranks):
    while not all(os.path.exists(me + str(r)) for r in ranks):
        time.sleep(0.005)
END
    cat <&3; } 3<&0 >"$T/try_$1.py"
}
job() { # NAME OPTIONS...
    job_name=$1; shift
    run --standalone --log-dir="$T/logs" --redirects=3 "$@" "$T/try_$job_name.py"
}

script import <<'END'
meet(0, 1)
import no_such_module_anywhere
END
job import --nproc-per-node=2 --max-restarts=3
is "import error everywhere: status" "$status" 1
is "import error everywhere: one attempt" "$(attempts import)" "0 "
like "import error everywhere: the cause is last" "$(last)" 'ModuleNotFoundError.*try_import\.py:[0-9]+'
like "import error everywhere: why it was not tried again" "$(cat "$ERR")" '^elrun: no restart: ModuleNotFoundError at try_import\.py:[0-9]+ .*--restart-policy=always'
like "import error everywhere: the budget is untouched" "$(cat "$ERR")" 'restarts: 0 of 3'
rm -f "$T"/import.[0-9]*
job import --nproc-per-node=2 --max-restarts=3 --log-format=json
like "import error: why, as JSON" "$(cat "$ERR")" '"no_restart":"no restart: ModuleNotFoundError at try_import'
rm -f "$T"/import.[0-9]*
job import --nproc-per-node=2 --max-restarts=2 --restart-policy=always
is "always: as often as the budget allows" "$(attempts import)" "0 1 2 "
unlike "always: nothing to explain" "$(cat "$ERR")" 'no restart:'

script syntax <<'END'
eval("1 +")
END
job syntax --max-restarts=1
is "syntax error: one attempt" "$(attempts syntax)" "0 "

script usage <<'END'
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, required=True)
parser.parse_args()
END
job usage --nproc-per-node=2 --max-restarts=3
is "arguments refused: argparse's status" "$status" 2
is "arguments refused: one attempt" "$(attempts usage)" "0 "
like "arguments refused: why" "$(cat "$ERR")" '^elrun: no restart: the script refused its arguments'

run --standalone --nproc-per-node=2 --max-restarts=3 --log-dir="$T/logs" --redirects=3 -m no_such_module_anywhere
is "no such module: status" "$status" 1
like "no such module: why" "$(cat "$ERR")" '^elrun: no restart: Python does not find the module'
run --standalone --max-restarts=3 "$T/none.py"
is "no such script: nothing is started" "$status" 66

# One rank only: its data may be the reason.
script data <<'END'
meet(0, 1, 2, 3)
if rank == "3" and not attempt:
    raise TypeError("of this batch")
if rank == "0" and attempt == 1:
    raise ValueError("of another")
time.sleep(100 if attempt < 2 else 0)
END
job data --nproc-per-node=4 --max-restarts=3
is "one rank's TypeError, another's ValueError: tried again" "$status" 0
is "one rank's TypeError, another's ValueError: attempts" "$(attempts data)" "0 1 2 "

# What the text decides ends the job at once, though elrun stops most of the ranks before they come to it.
script call <<'END'
meet(0, 1, 2, 3)
def train(width): pass
train(widht=3)
END
job call --nproc-per-node=4 --max-restarts=3
is "an argument that a function does not have: one attempt" "$(attempts call)" "0 "

# What data may decide, but every rank meets it: one worker is all there are; of several, one restart tells.
script none <<'END'
None.shape
END
job none --max-restarts=3
is "AttributeError of the only worker: one attempt" "$(attempts none)" "0 "
rm -f "$T"/none.[0-9]*
job none --nproc-per-node=4 --max-restarts=9
like "every rank's AttributeError: two attempts at most" "$(attempts none)" '^0 (1 )?$'

script twice <<'END'
meet(0, 1)
if rank == "1":
    raise ValueError("always the same")
time.sleep(100)
END
job twice --nproc-per-node=2 --max-restarts=5
is "the same ValueError in two rounds: status" "$status" 1
is "the same ValueError in two rounds: two attempts" "$(attempts twice)" "0 1 "
like "the same ValueError in two rounds: why" "$(cat "$ERR")" '^elrun: no restart: two rounds in a row ended so: ValueError at try_twice\.py:[0-9]+'

# RuntimeError, OSError, an exit status of the script's own choice: no verdict on the program.
script open <<'END'
if attempt == 0: raise RuntimeError("of a device")
if attempt == 1: raise FileNotFoundError(2, "not mounted yet")
if attempt == 2: sys.exit(2)
if attempt == 3: sys.exit("too few files")
END
job open --max-restarts=4
is "RuntimeError, OSError, SystemExit: status" "$status" 0
is "RuntimeError, OSError, SystemExit: all tried again" "$(attempts open)" "0 1 2 3 4 "

script signal <<'END'
os.kill(os.getpid(), signal.SIGSEGV)
END
job signal --max-restarts=3 --restart-policy=never
is "never: the worker's status" "$status" 139
is "never: one attempt" "$(attempts signal)" "0 "
like "never: says so" "$(cat "$ERR")" '^elrun: no restart: --restart-policy=never'

# The budget is a window: one restart in half a second, and each attempt takes longer than that.
script window <<'END'
time.sleep(0.6)
sys.exit(attempt < 3 and 9)
END
job window --max-restarts=1 --restart-window=0.5
is "a window: status" "$status" 0
is "a window: more restarts than the budget, not so close together" "$(attempts window)" "0 1 2 3 "
rm -f "$T"/window.[0-9]*
job window --max-restarts=1 --restart-window=100
is "a longer window: status" "$status" 9
is "a longer window: used up" "$(attempts window)" "0 1 "

script fruitless <<'END'
sys.exit(9)
END
job fruitless --max-restarts=50 --max-fruitless-restarts=2
is "fruitless: given up" "$(attempts fruitless)" "0 1 2 "
like "fruitless: why" "$(cat "$ERR")" '^elrun: no restart: 3 attempts in a row ended within 60 s'

# Where steps are told, a short attempt with a new one is not fruitless, and one without is.
script steps <<'END'
for step in range(min(attempt, 4) + 1):
    print("step", step, flush=True)
sys.exit(9)
END
job steps --max-restarts=50 --max-fruitless-restarts=0 '--step-pattern=step %d'
is "steps: given up after the attempt without a new one" "$(attempts steps)" "0 1 2 3 4 5 "
like "steps: why" "$(cat "$ERR")" '^elrun: no restart: 1 attempts in a row brought nothing, the last one no new step'
# What passes by itself comes after the same exception twice, and after a limit of fruitless attempts.
script refused <<'END'
class HfHubHTTPError(OSError):
    pass
if attempt < 2:
    raise HfHubHTTPError("429 Client Error: Too Many Requests for url: https://hub.example/x")
END
job refused --max-restarts=4 --max-fruitless-restarts=0
is "refused for a while: gets through" "$status" 0
is "refused for a while: as often as needed" "$(attempts refused)" "0 1 2 "
like "refused for a while: the wait is said" "$(cat "$ERR")" '^elrun: this may pass by itself: restart 2 of 4 in 2 s'
like "refused for a while: its class" "$(cat "$ERR")" '^  advice: a service refuses'

script hydra <<'END'
sys.stderr.write("Could not override 'lrr'.\nKey 'lrr' not in 'C'\n    full_key: lrr\n\n"
                 "Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n")
sys.exit(1)
END
job hydra --nproc-per-node=2 --max-restarts=3
is "arguments refused with another status: one attempt" "$(attempts hydra)" "0 "
like "arguments refused with another status: the last line" "$(last)" "its last line: Key 'lrr' not in 'C' full_key: lrr"
is_clean "policy"
finished
