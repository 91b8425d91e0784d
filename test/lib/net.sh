# net.sh: several hosts on one machine, behind e2e.sh:  . "$(dirname "$0")/../lib/net.sh"
#
# A host is a process that sleeps in network, mount and UTS namespaces of its own: own address (10.9.0.I and fd00:9::I),
# own name (nodeI), own hosts file ($T/hosts.I), own /dev/shm; a bridge in one more namespace joins them.  Nothing has a
# name that another test could meet, and all of it is gone with the processes: at the end of the test, or with its death.
#
#     net_up 3                     node1 .. node3
#     agent NAME I OPTIONS...      elrun with $JOB and OPTIONS on host I (0: this machine), $AGENT its words in front;
#                                  workers do $WORK
#     power_off I, power_on I      the cable is out: silence, no FIN, no RST
#     deaf I, mute I, hears I      one-way cuts
#     resets I, hears I            a firewall that answers in the others' names
#     rate RATE I...               their network is no faster
#     status_of NAME               its exit status, waited for
#     world, mixed, …              what workers recorded with the verb "enter"
#     overlap                      … and "pulse"
hosts=
switch=

net_at_exit() { for p in $hosts; do kill -KILL "$p" 2>/dev/null; done; }
at_exit() { net_at_exit; }

net_possible() {
    [ "$(id -u)" = 0 ] || { echo "namespaces want root"; return; }
    for word in ip nft nsenter unshare setpriv; do command -v $word >/dev/null || { echo "there is no program $word"; return; }; done
    unshare -n -m -u true 2>/dev/null || { echo "namespaces are refused"; return; }
    unshare -n ip link add br0 type bridge 2>/dev/null || echo "the kernel has no bridge"
}

# holder NAME SCRIPT: the pid of a process in new namespaces, once SCRIPT is done there.  It dies with this shell.
holder() {
    rm -f "$T/up.$1"
    setpriv --pdeathsig KILL unshare -n -m -u -- sh -c "hostname '$1' && ip link set lo up && $2"' && >"$0" && exec sleep 100000' \
        "$T/up.$1" </dev/null >"$T/up.$1.log" 2>&1 &
    holder_pid=$!
    hosts="$hosts $holder_pid"
    wait_for test -e "$T/up.$1" || { cat "$T/up.$1.log"; return 1; }
}
pid_of() { eval "echo \$host_$1"; }
on() { on_pid=$(pid_of "$1"); shift; nsenter -t "$on_pid" -n -m -u --wdns=/ "$@"; } # HOST COMMAND...

# A line for each host in the file of host I, and loopback; $OWN: what the own name is mapped to, else the address.
hosts_file() { # I N
    echo "127.0.0.1 localhost"
    [ -z "$OWN" ] || echo "$OWN node$1"
    for j in $(seq "$2"); do
        [ -n "$OWN" ] && [ "$j" = "$1" ] || [ "$FAMILY" = 6 ] || echo "10.9.0.$j node$j"
        [ -n "$OWN" ] && [ "$j" = "$1" ] || [ "$FAMILY" = 4 ] || echo "fd00:9::$j node$j"
    done
}

OWN= FAMILY=4 # 4, 6 or both
net_up() { # N
    net_why=$(net_possible)
    [ -z "$net_why" ] || skip_all "$net_why"
    holder switch "ip link add br0 type bridge && ip link set br0 up" || exit 1
    switch=$holder_pid
    for i in $(seq "$1"); do
        hosts_file "$i" "$1" >"$T/hosts.$i"
        echo "nameserver 127.0.0.1" >"$T/resolv.$i" # nobody answers there, at once
        net_host "$i"
    done
}
net_host() { # I
    holder "node$1" "mount -t tmpfs shm /dev/shm && mount --bind '$T/hosts.$1' /etc/hosts && mount --bind '$T/resolv.$1' /etc/resolv.conf" || exit 1
    eval "host_$1=$holder_pid"
    nsenter -t $switch -n ip link add "v$1" type veth peer name eth0 netns "$holder_pid" || exit 1
    nsenter -t $switch -n ip link set "v$1" master br0 up
    on "$1" sysctl -qw net.ipv6.conf.eth0.accept_dad=0
    [ "$FAMILY" = 6 ] || on "$1" ip addr add "10.9.0.$1/24" dev eth0
    on "$1" ip link set eth0 up
    [ "$FAMILY" = 4 ] || on "$1" ip -6 addr add "fd00:9::$1/64" dev eth0 nodad
}

# rate RATE HOST...: what leaves these hosts.  So low that this is what is measured, whoever else uses this machine.
rate() {
    rate_is=$1; shift
    for i in "$@"; do on "$i" tc qdisc replace dev eth0 root tbf rate "$rate_is" burst 64kb latency 100ms || return 1; done
}

power_off() { nsenter -t $switch -n ip link set "v$1" down; }
power_on() { nsenter -t $switch -n ip link set "v$1" up; }
cut_way() { # HOST input|output iifname|oifname
    on "$1" nft "table inet cut { chain $2 { type filter hook $2 priority 0; $3 eth0 drop; } ; }"
}
deaf() { cut_way "$1" input iifname; }
mute() { cut_way "$1" output oifname; }
resets() { # HOST: it hears nothing, and a firewall ends and refuses all connections that it makes, in the others' names
    cut_way "$1" input iifname && on "$1" nft "table inet cut { chain output { type filter hook output priority 0; oifname eth0 meta l4proto tcp reject with tcp reset; } ; }"
}
hears() { on "$1" nft delete table inet cut; }

# --- agents -------------------------------------------------------------------------------------------------------
# job NNODES OPTIONS...: a new job at node1: $JOB, with files $LOG and $GO of its own; its workers end when $GO is there.
job_n=0 JOB= WORK= AGENT= LOG= GO=
job() {
    job_n=$((job_n + 1))
    LOG=$T/log.$job_n GO=$T/go.$job_n
    WORK="meet enter $LOG await $GO"
    JOB="--nnodes=$1 --rdzv-endpoint=node1 --rdzv-id=job$job_n --settle=0.3"
    shift
    JOB="$JOB $*"
    : >"$LOG"
}
agent() { # NAME HOST OPTIONS...
    agent_name=$1 agent_host=$2; shift 2
    OUT=$T/$agent_name.out ERR=$T/$agent_name.err
    PREFIX=$AGENT
    [ "$agent_host" = 0 ] || PREFIX="nsenter -t $(pid_of "$agent_host") -n -m -u --wdns=/ $AGENT"
    start $JOB "$@" --no-python "$WORKER" $WORK
    PREFIX=
    eval "agent_$agent_name=$elrun_pid"
}
pid() { eval "echo \$agent_$1"; }
err() { cat "$T/$1.err"; }
status_of() { elrun_pid=$(pid "$1"); finish; } # in $status
# statuses "NAME..." WANT: of each
all_end() { # TEXT "NAME..." STATUS
    [ -e "$GO" ] || echo >"$GO"
    all_got=
    for all_name in $2; do status_of "$all_name"; all_got="$all_got $all_name:$status"; done
    is "$1" "${all_got# }" "$(for n in $2; do printf '%s:%s ' "$n" "$3"; done | sed 's/ $//')" ||
        for all_name in $2; do note "--- $all_name"; note "$(tail -15 "$T/$all_name.err")"; done
}
# wants_end: ends a test's agents that run for ever, whatever they say
shoot_all() { # SIGNAL NAME...
    shoot_sig=$1; shift
    for n in "$@"; do kill -"$shoot_sig" "$(pid "$n")" 2>/dev/null; done
}

# --- what workers recorded: "enter" writes   WORD MS PID ROUND ATTEMPT RANK WORLD GROUP GROUPS LOCAL LOCALS ROLE ROLE_RANK ROLE_WORLD HOST ADDR
# world: the newest round that all its ranks have entered: the hosts in the order of ranks
world() { world_of "$(newest)"; }
newest() {
    awk '$1 == "in" { split($4, r, "."); n[$4]++; if (n[$4] == $7 && r[1] + 0 >= best) { best = r[1] + 0; out = $4 } } END { print out }' "$LOG" 2>/dev/null
}
world_of() { awk -v r="$1" '$1 == "in" && $4 == r { h[$6] = $15; w = $7 } END { for (i = 0; i < w; i++) printf "%s%s", i ? " " : "", i in h ? h[i] : "-" }' "$LOG"; }
world_set() { world | tr ' ' '\n' | sort | tr '\n' ' ' | sed 's/ $//'; } # where the order of arrival decides
set_is() { [ "$(world_set)" = "$1" ]; }
gathers() { # TEXT "HOSTS": as reaches, in any order
    wait_for set_is "$2"
    is "$1" "$(world_set)" "$2" || { for f in "$T"/*.err; do note "--- $f"; note "$(tail -8 "$f")"; done; return 1; }
}
world_is() { [ "$(world)" = "$1" ]; }
reaches() { # TEXT "HOSTS": until the newest round is that
    wait_for world_is "$2"
    is "$1" "$(world)" "$2" || { for f in "$T"/*.err; do note "--- $f"; note "$(tail -8 "$f")"; done; return 1; }
}
round_number() { newest | cut -d. -f1; }
# column N ROUND: of each rank, in order
column() { awk -v r="$2" -v c="$1" '$1 == "in" && $4 == r { v[$6] = $c; w = $7 } END { for (i = 0; i < w; i++) printf "%s%s", i ? " " : "", v[i] }' "$LOG"; }
round_pids() { column 3 "$1"; }
hosts_told() { column 16 "$(newest)"; } # MASTER_ADDR of each rank
all_gone() { for p in $1; do ended "$p" || return 1; done; }
in_rounds() { awk '$1 == "in" && !($4 in n) { n[$4]; k++ } END { print k + 0 }' "$LOG"; } # how many were entered
# mixed: what no two workers may have been told: a rank twice in a round, another world, a number of two coordinators, a
# round after a higher one
mixed() {
    awk '$1 == "in" { split($4, r, "."); number = r[1] + 0
             if (($4, $6) in pid) print "rank " $6 " of round " $4 ": pids " pid[$4, $6] " and " $3
             if ($4 in world && world[$4] != $7) print "round " $4 ": worlds of " world[$4] " and " $7
             if (number in term && term[number] != r[2]) print "round " number " of two coordinators"
             if (number < last) print "round " number " after round " last
             pid[$4, $6] = $3; world[$4] = $7; term[number] = r[2]; last = number > last ? number : last }' "$LOG"
}
# overlap: for each rank, workers that still lived when the next holder's first instruction ran (verb "pulse", $LOG.pulse)
overlap() {
    awk '$1 == "pulse" { if (!($3 in first)) { first[$3] = $2; rank[$3] = $4 } last[$3] = $2 }
         END { for (a in first) for (b in first) if (a != b && rank[a] == rank[b] && first[a] <= first[b] && last[a] >= first[b])
                   print "rank " rank[a] ": pid " a " lived until " last[a] ", pid " b " from " first[b] }' "$LOG.pulse"
}
