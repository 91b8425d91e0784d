# One makefile, no recursion into folders.  Everything that is built lies under $(BUILD).
#
#   make            build/elrun
#   make demo       install what is missing, then train a small model and kill a worker half-way
#   make check      install what is missing, then run every test (some 18 minutes on two processors)
#   make check-fast unit tests, purity, a short swarm, the same sources with clang (under a minute)
BUILD   ?= build
# One name for each file: an object that was made as /…/build/x.o would not be made anew when a header of build/x.o changes.
override BUILD := $(patsubst $(CURDIR)/%,%,$(abspath $(BUILD)))
CC      ?= cc
CFLAGS  ?= -O2 -g
STATIC  ?= -static-pie
PREFIX  ?= /usr/local
DESTDIR ?=
VERSION := $(shell cat VERSION)
COMMIT  := $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)

# clang warns about some things by other names and other rules; the code is written for both.
WARN  := -std=c11 -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes \
         -Wmissing-prototypes -Wvla -Wswitch-enum -Wformat=2 -Werror
FLAGS := -D_GNU_SOURCE -fPIE -Isrc -Icmd -Itest $(WARN)
CORELIBS := -ljansson -lm
# make V=1 shows the commands themselves.
Q   := $(if $(V),,@)
say = $(if $(V)$(findstring s,$(firstword -$(MAKEFLAGS))),,@echo "  $1	$2")
obj = $(patsubst %.c,$(BUILD)/%.o,$1)

ALL  := $(wildcard src/*/*.c)
IO   := $(filter %_io.c,$(ALL))
CORE := $(filter-out $(IO),$(ALL))
CMD  := $(wildcard cmd/*.c)
HDRS := $(wildcard src/*/*.h cmd/*.h test/*/*.h)
UNIT := $(wildcard test/unit/test_*.c)
UNITSH := $(wildcard test/unit/test_*.sh)
SIM  := $(wildcard test/sim/sim_*.c)
FUZZ := $(wildcard test/fuzz/fuzz_*.c)
PEERS := $(wildcard test/fuzz/fuzz_peers*.c)
# Small programs that end-to-end tests and benchmarks start: workers, load generators, bare servers.
PROG := $(wildcard test/e2e/*.c test/bench/*.c)
TLIB := $(wildcard test/lib/*.c) $(filter-out $(SIM),$(wildcard test/sim/*.c))
# Tests with a python of their own, and what makes it: not for every change.
SLOW := $(wildcard test/e2e/frameworks_*.sh)
E2E  ?= $(sort $(filter-out $(SLOW),$(wildcard test/e2e/*.sh)))
PURE ?= check-pure check-layers check-dead check-names

all: $(if $(wildcard cmd/elrun.c),$(BUILD)/elrun)
# Made anew each time: ar would keep the members of files that were renamed or removed.  One that is gone changes the list.
$(BUILD)/core.a: $(call obj,$(CORE)) ; $(Q)rm -f $@; $(AR) rcs $@ $(filter %.o,$^)
$(BUILD)/io.a:   $(call obj,$(IO))   ; $(Q)rm -f $@; $(AR) rcs $@ $(filter %.o,$^)
$(BUILD)/test.a: $(call obj,$(TLIB)) ; $(Q)rm -f $@; $(AR) rcs $@ $(filter %.o,$^)
$(BUILD)/core.a $(BUILD)/io.a $(BUILD)/test.a: $(BUILD)/sources
$(BUILD)/sources: FORCE
	@mkdir -p $(@D); echo '$(ALL) $(TLIB)' | cmp -s - $@ || echo '$(ALL) $(TLIB)' > $@
# Who was linked from which core: the digest stands beside the program, check-same compares.
# The linker's three warnings about name services are answered in cmd/elrun.c, first statement of main.
$(BUILD)/elrun: $(call obj,$(CMD)) $(BUILD)/io.a $(BUILD)/core.a
	$(call say,LINK,$@)
	@rm -f $@ # the filter hides the linker's status: what counts is that there is a program
	$(Q)$(CC) $(CFLAGS) $(STATIC) $(LDFLAGS) -o $@ $^ -lev $(CORELIBS) -lpthread 2>&1 | sh test/lib/ldquiet.sh
	@test -x $@ && sha256sum < $(BUILD)/core.a > $@.core
# Unit tests and the simulator link the core alone: no libev, no sockets.
$(BUILD)/test/unit/%: $(BUILD)/test/unit/%.o $(BUILD)/test.a $(BUILD)/core.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) -pie $(LDFLAGS) -o $@ $^ $(CORELIBS)
	@sha256sum < $(BUILD)/core.a > $@.core
$(BUILD)/test/sim/%: $(BUILD)/test/sim/%.o $(BUILD)/test.a $(BUILD)/core.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) -pie $(LDFLAGS) -o $@ $^ $(CORELIBS)
	@sha256sum < $(BUILD)/core.a > $@.core
# Tests of shells (test/unit/test_*_io.c) and the helper programs need the io half too.
$(BUILD)/test/unit/test_%_io: $(BUILD)/test/unit/test_%_io.o $(BUILD)/test.a $(BUILD)/io.a $(BUILD)/core.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) -pie $(LDFLAGS) -o $@ $^ -lev $(CORELIBS) -lpthread
	@sha256sum < $(BUILD)/core.a > $@.core
$(BUILD)/test/e2e/%: $(BUILD)/test/e2e/%.o $(BUILD)/io.a $(BUILD)/core.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) -pie $(LDFLAGS) -o $@ $^ -lev $(CORELIBS) -lpthread
$(BUILD)/test/bench/%: $(BUILD)/test/bench/%.o $(BUILD)/io.a $(BUILD)/core.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) -pie $(LDFLAGS) -o $@ $^ -lev $(CORELIBS) -lpthread
# The core once more, with the fuzzer's counters in it; each target adds its own file.
FUZZING = clang -gline-tables-only -O1 -fno-sanitize-recover=all $(FLAGS)
$(BUILD)/fuzz/%.o: %.c $(HDRS)
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(FUZZING) -fsanitize=fuzzer-no-link,address,undefined -c -o $@ $<
$(BUILD)/fuzz.a: $(patsubst %.c,$(BUILD)/fuzz/%.o,$(CORE) $(wildcard test/lib/*.c))
	$(Q)rm -f $@ && ar crs $@ $^
$(BUILD)/test/fuzz/%: test/fuzz/%.c $(BUILD)/fuzz.a
	@mkdir -p $(@D)
	$(call say,FUZZ,$@)
	$(Q)$(FUZZING) -fsanitize=fuzzer,address,undefined -pie -o $@ $^ $(CORELIBS)
# The Python package of the training scripts is part of the binary: all files that lie there.  One that is new or gone changes
# the list.
MODULES := $(sort $(wildcard src/client/elrun/*.py))
CLIENT  := $(BUILD)/src/client/client.o $(BUILD)/fuzz/src/client/client.o
$(CLIENT): FLAGS += -D'CLIENT_MODULES=$(patsubst src/client/elrun/%.py,X(%),$(MODULES))'
$(CLIENT): $(BUILD)/modules $(MODULES)
$(BUILD)/modules: FORCE
	@mkdir -p $(@D); echo '$(MODULES)' | cmp -s - $@ || echo '$(MODULES)' > $@
$(BUILD)/cmd/cmd_version.o: FLAGS += -DELRUN_VERSION='"$(VERSION)"' -DELRUN_COMMIT='"$(COMMIT)"'
$(BUILD)/cmd/cmd_version.o: $(BUILD)/version
$(BUILD)/version: FORCE
	@mkdir -p $(@D); echo '$(VERSION) $(COMMIT)' | cmp -s - $@ || echo '$(VERSION) $(COMMIT)' > $@
.PHONY: FORCE
# The GPU helper: a dynamic program of its own with fixed flags, whatever elrun is built with, since it must start on hosts
# that are older than this one and load what lies there (src/probe/child/start.S).  It stands in elrun as read-only data.
CHILD := $(wildcard src/probe/child/*.c)
CHILDFLAGS := -O2 -fPIE -fno-lto -U_FORTIFY_SOURCE -D_GNU_SOURCE $(WARN)
$(BUILD)/src/probe/child/%.o: src/probe/child/%.c
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CHILDFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/src/probe/child/start.o: src/probe/child/start.S
	@mkdir -p $(@D)
	$(Q)$(CC) -c -o $@ $<
$(BUILD)/elrun-gpu: $(BUILD)/src/probe/child/start.o $(call obj,$(CHILD))
	$(call say,LINK,$@)
	$(Q)$(CC) -pie -nostartfiles -s -o $@ $^ -Wl,--no-as-needed -l:libdl.so.2 -l:libpthread.so.0 -Wl,-z,now,-z,noexecstack
$(BUILD)/src/probe/helper_io.o: FLAGS += -DHELPER_ELF='"$(abspath $(BUILD))/elrun-gpu"'
$(BUILD)/src/probe/helper_io.o: $(BUILD)/elrun-gpu
# What stands in for NVIDIA's libraries in tests (test/mock/mock.h), laid out as pip lays out the real ones.
MOCKDIR := $(BUILD)/test/mock
MOCK := $(MOCKDIR)/site/nvidia/nccl/lib/libnccl.so.2 $(MOCKDIR)/site/nvidia/cuda_runtime/lib/libcudart.so.12 $(MOCKDIR)/libnvidia-ml.so.1
MOCKCC = @mkdir -p $(@D); $(CC) -O2 -g -fPIC -shared -fvisibility=hidden -D_GNU_SOURCE $(WARN) -o $@ $< -lm
$(word 1,$(MOCK)): test/mock/nccl.c test/mock/mock.h ; $(MOCKCC)
$(word 2,$(MOCK)): test/mock/cudart.c test/mock/mock.h src/probe/child/burn_ptx.h ; $(MOCKCC)
$(word 3,$(MOCK)): test/mock/nvml.c test/mock/mock.h src/probe/child/nvml.h ; $(MOCKCC)
$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(FLAGS) -MMD -MP $(CFLAGS) -c -o $@ $<

# --- what must be there -------------------------------------------------------------------------------------------
DEBIAN := gcc make libc6-dev libev-dev libjansson-dev clang libclang-rt-14-dev clang-format clang-tidy cppcheck \
          valgrind gdb strace mandoc universal-ctags iproute2 nftables perl procps psmisc util-linux python3-venv patch
# The python of the tests: the one at hand if it has torch, else a virtual environment beside the Makefile.
PY = $(shell if python3 -c 'import torch, sklearn, safetensors, hypothesis' 2>/dev/null; then command -v python3; else echo $(CURDIR)/.venv/bin/python; fi)
deps: ; @sh test/lib/deps.sh $(DEBIAN)
# PyTorch 1.13, where Debian has that; test/lib/torch_versions.sh names what else is tried.
deps-torch: ; @sh test/lib/deps.sh --if-there python3-torch
venv: ; @sh test/lib/venv.sh

# --- tests --------------------------------------------------------------------------------------------------------
# One command for a newcomer: install, build, test.  The second make sees the files that the first one installed.
check: deps deps-torch venv
	@$(MAKE) --no-print-directory check-here
# What computes is done side by side: compiling and searching.  Unit tests measure and wait, and are not.
SIDE = $(MAKE) --no-print-directory -j$(or $(JOBS),$(shell nproc))
built: all $(UNIT:%.c=$(BUILD)/%) $(SIM:%.c=$(BUILD)/%) $(PROG:%.c=$(BUILD)/%) $(MOCK)
check-here:
	@$(SIDE) built
	@$(MAKE) --no-print-directory check-steps
# The swarm of the cluster is left out: check-mutants has run more of the same seeds than ten seconds would.
check-steps: check-unit check-same
	@sh test/lib/behind.sh $(BUILD)/behind '$(MAKE) -s --no-print-directory check-behind' '$(MAKE) --no-print-directory check-e2e'
	@$(SIDE) $(filter-out swarm-sim_cluster,$(SWARM)) T=10 KNOWN=--known
	@$(SIDE) fuzz T=2 SEED=1
	@$(MAKE) --no-print-directory check-san
	@$(MAKE) --no-print-directory check-tsan
	@sh test/lib/skips.sh $(BUILD)/tap
# What computes and takes no time that is given: behind the end-to-end tests, which wait more than they work.
check-behind:
	@$(MAKE) --no-print-directory check-lint check-digest check-mutants
	@$(SIDE) $(FUZZ:%.c=$(BUILD)/%)
	@$(SIDE) $(SAN) built-san
	@$(SIDE) $(TSAN) built-tsan
check-fast: check-unit check-clang
	@$(SIDE) swarm T=5 KNOWN=--known
check-unit: $(PURE) $(UNIT:%.c=$(BUILD)/%) all
	@sh test/lib/tap.sh $(BUILD)/tap/unit $(PAIR) -e '' $(UNIT:%.c=$(BUILD)/%)
	@ELRUN=$(abspath $(BUILD)/elrun) BUILD=$(abspath $(BUILD)) sh test/lib/tap.sh $(BUILD)/tap/unitsh -e sh $(UNITSH)
# Four side by side: two lanes with PyTorch, where processors are what is short, and beside them what mostly waits.
LANES := -j4 '--rules=seq=test/e2e/{snapshots*,agent_store,demo,elastic_torch,matrix}.sh' '--rules=seq=test/e2e/{twin*,*torch*,state*,client*,replicas*}' \
         '--rules=par=**'
# Unit tests: what is pure side by side, shells one after the other.
PAIR  := -j2 '--rules=seq=**_io' '--rules=par=**'
check-e2e: all $(PROG:%.c=$(BUILD)/%) $(MOCK)
	@LONG=$(LONG) ELRUN=$(abspath $(or $(AGENT),$(BUILD)/elrun)) BUILD=$(abspath $(BUILD)) PY=$(PY) sh test/lib/tap.sh $(BUILD)/tap/e2e $(LANES) -e 'timeout -k 30 900 sh' $(E2E)
# Tests that have a longer form, in that: processes that stand still and lines that are bad for as long as they are at night.
check-long: all $(PROG:%.c=$(BUILD)/%)
	@PY=$(PY) sh test/lib/venv_torch.sh
	@$(MAKE) --no-print-directory check-e2e LONG=1 E2E="$$(grep -l '[$$]LONG' test/e2e/*.sh | tr '\n' ' ')"
	@$(MAKE) --no-print-directory check-frameworks
# The examples for Lightning, accelerate, transformers and DeepSpeed, with the versions of test/e2e/frameworks.txt.
check-frameworks: all
	@sh test/lib/venv_frameworks.sh
	@$(MAKE) --no-print-directory check-e2e E2E='$(SLOW)'
# The same with sanitizers in elrun itself: what it leaks or strays into ends it with another status, and a test fails.  Slow.
check-e2e-san:
	@$(MAKE) --no-print-directory $(SAN) $(BUILD)/san/elrun
	@$(MAKE) --no-print-directory check-e2e AGENT=$(BUILD)/san/elrun
# For each target first the corpus that is kept, then T seconds more; new finds stay under $(BUILD) until minimised and committed.
fuzz: $(FUZZ:test/fuzz/%.c=run-%)
# What a peer may say, with each value at its limits: to coordinators and agents, to stores, to the agent of a worker.  T is for all.
fuzz-peers:
	@$(MAKE) --no-print-directory $(patsubst test/fuzz/%.c,run-%,$(PEERS)) T=$$(( ($(or $(T),60) + $(words $(PEERS)) - 1) / $(words $(PEERS)) ))
run-fuzz_%: $(BUILD)/test/fuzz/fuzz_%
	@new=$(BUILD)/new/fuzz_$*; kept=test/fuzz/corpus/fuzz_$*; mkdir -p $$new $$kept; \
	{ $< -runs=0 $$kept && \
	$< -seed=$(or $(SEED),0) -max_total_time=$(or $(T),60) -timeout=10 -rss_limit_mb=1024 $$new $$kept; } >$$new.log 2>&1 \
	|| { tail -30 $$new.log; echo "fuzz: fuzz_$* FAILED"; exit 1; }; \
	echo "fuzz: fuzz_$* $$(grep -o '^Done.*' $$new.log | tail -1)"
# Each mutant is a patch of one line of the core; its fuzz target must find it within T seconds.
fuzz-mutants: $(BUILD)/fuzz.a
	@BUILD=$(abspath $(BUILD)) FUZZING='$(FUZZING)' LIBS='$(CORELIBS)' sh test/fuzz/mutants.sh $(or $(T),60)
# KNOWN=--known: the same seeds in every run (make check); without it new ones are drawn, to find more.
SWARM := $(SIM:test/sim/%.c=swarm-%)
swarm: $(SWARM)
swarm-%: $(BUILD)/test/sim/% ; @$< --seconds $(or $(T),60) $(KNOWN)
SAN = BUILD=$(BUILD)/san PURE= CC=gcc STATIC=-pie CFLAGS='-Og -g1 -fsanitize=address,undefined -fno-sanitize-recover=all'
# Short end-to-end tests, for what no unit test links: cmd/ and the shells of an agent, with children, peers and files.  A job of
# the pool that still runs at the end is no leak: those are looked for elsewhere.
SANE2E := $(patsubst %,test/e2e/probe_%.sh,rails files wrong network stand) test/e2e/store_peers.sh
check-san: all $(PROG:%.c=$(BUILD)/%)
	@$(SIDE) $(SAN) built-san
	@$(MAKE) --no-print-directory $(SAN) check-san-here
	@ASAN_OPTIONS=detect_leaks=0 ELRUN=$(abspath $(BUILD))/san/elrun BUILD=$(abspath $(BUILD)) PY=$(PY) sh test/lib/tap.sh $(BUILD)/san/tap/e2e -j3 -e 'timeout -k 30 900 sh' $(SANE2E)
built-san: $(BUILD)/elrun $(UNIT:%.c=$(BUILD)/%) $(SIM:%.c=$(BUILD)/%)
check-san-here: $(UNIT:%.c=$(BUILD)/%) $(SIM:%.c=$(BUILD)/%)
	@sh test/lib/tap.sh $(BUILD)/tap/unit $(PAIR) -e '' $(UNIT:%.c=$(BUILD)/%)
	@$(SIDE) swarm T=$(or $(T),5) KNOWN=--known
# The only threads there are: the pool and the writers of sinks, behind src/loop.  Only what these tests reach is built.
TSAN = BUILD=$(BUILD)/tsan PURE= CC=clang CFLAGS='-O1 -gline-tables-only -fsanitize=thread' ALL='$(wildcard $(REACH:%=src/%.c))' TLIB=test/lib/memfs.c
REACH := loop/* sys/* proc/* output/* util/* ckpt/* snapshot/*
THREADED := loop sink output checksum_thread shm_slots
check-tsan:
	@$(SIDE) $(TSAN) built-tsan
	@$(MAKE) --no-print-directory $(TSAN) check-tsan-here
built-tsan: $(patsubst %,$(BUILD)/test/unit/test_%_io,$(THREADED))
check-tsan-here: built-tsan
	@TSAN_OPTIONS=die_after_fork=0 sh test/lib/tap.sh $(BUILD)/tap/unit -e '' $(patsubst %,$(BUILD)/test/unit/test_%_io,$(THREADED))
# The core may use what it defines itself and what test/lib/pure.allow names: nothing else.
check-pure: $(call obj,$(CORE))
	@nm -A $^ | awk -f test/lib/pure.awk test/lib/pure.allow -
# Includes point down, from folder to folder (test/lib/layers.txt).
check-layers:
	@awk -f test/lib/layers.awk test/lib/layers.txt $(ALL) $(filter src/%,$(HDRS)) $(CHILD) > $(BUILD)/layers.said; cat $(BUILD)/layers.said; test ! -s $(BUILD)/layers.said
# Nothing stands under src/ and cmd/ that nothing there uses, but for test/lib/dead.allow.
check-dead: ; @python3 test/lib/dead.py
# A static function and a struct have a name that stands in one file.
check-names: ; @python3 test/lib/names.py
check-same: all $(SIM:%.c=$(BUILD)/%)
	@cat $(BUILD)/elrun.core $(SIM:%.c=$(BUILD)/%.core) | sort -u | awk 'END { if (NR != 1) print "check-same: simulator and binary are linked from different cores"; exit NR != 1 }'
# One seed, one trace: the first thousand lives of a node end in the same digest, whoever compiled them.
check-digest: check-clang $(BUILD)/test/sim/sim_node
	@$(MAKE) --no-print-directory $(CLANG) $(BUILD)/clang/test/sim/sim_node
	@for s in $(BUILD) $(BUILD)/clang; do $$s/test/sim/sim_node --seeds 1000 | sed 's/.*digest/digest/'; done | sort -u | \
	awk 'END { if (NR != 1) print "check-digest: gcc and clang give different traces"; exit NR != 1 }'
# Each mutant is a patch of one line of the node core; the simulator must find it (a job of 20 steps a seed).
check-mutants: $(patsubst %,$(BUILD)/test/sim/sim_%,cluster node probe)
	@CC=$(CC) BUILD=$(abspath $(BUILD)) sh test/sim/mutants.sh 20000
# The same sources with clang: other warnings, other bugs.
CLANG = BUILD=$(BUILD)/clang CC=clang CFLAGS=-O2
check-clang:
	@$(SIDE) $(CLANG) all
check-lint: check-clang
	@sh test/lib/lint.sh $(BUILD)
# Every file as lint wants it.
format: ; clang-format -i src/*/*.[ch] src/probe/child/*.[ch] cmd/*.[ch] test/*/*.[ch]
tidy: ; @sh test/lib/tidy.sh $(ALL) $(CMD)

# --- for people ---------------------------------------------------------------------------------------------------
# Both commands of the README in a Debian root that has next to nothing, for a machine where one may be made.
check-bare: ; @sh test/lib/bare_debian.sh $(or $(BARE),$(BUILD)/bare) 'make demo' 'make check'
demo: deps venv
	@$(MAKE) --no-print-directory all
	@ELRUN=$(abspath $(BUILD)/elrun) PY=$(PY) sh examples/demo.sh
bench: deps venv
	@$(MAKE) --no-print-directory bench-here
bench-here: all $(PROG:%.c=$(BUILD)/%)
	@ELRUN=$(abspath $(BUILD)/elrun) BUILD=$(abspath $(BUILD)) PY=$(PY) sh test/bench/all.sh $(BENCH)
bench-store: DEBIAN += redis-server
bench-store bench-nodes bench-errors bench-probe bench-ckpt bench-gpu: deps venv
	@$(MAKE) --no-print-directory bench-here BENCH=$(@:bench-%=%)
# DLRover's published week with elrun's measured constants: a model, which says what it assumes.
week: $(BUILD)/test/bench/week ; @$<
install: all
	install -Dm755 $(BUILD)/elrun $(DESTDIR)$(PREFIX)/bin/elrun
	strip $(DESTDIR)$(PREFIX)/bin/elrun
	for p in man/*.[1-8]; do install -Dm644 $$p $(DESTDIR)$(PREFIX)/share/man/man$${p##*.}/$${p##*/}; done
	mkdir -p $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/zsh/site-functions $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	$(BUILD)/elrun completion bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/elrun
	$(BUILD)/elrun completion zsh  > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_elrun
	$(BUILD)/elrun completion fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/elrun.fish
clean: ; rm -rf $(BUILD)

.PHONY: all built built-san built-tsan check-steps check-behind deps deps-torch venv check check-here check-unit check-fast check-san check-san-here check-tsan check-tsan-here check-same check-e2e check-e2e-san check-long check-frameworks check-bare check-pure check-layers check-dead check-names check-digest check-mutants check-clang check-lint format tidy swarm fuzz fuzz-peers bench bench-here bench-store bench-nodes bench-errors bench-probe bench-ckpt bench-gpu week demo install clean fuzz-mutants
# What stands between a test and its source is kept.  Not all files: an object that is missing would not be made then.
.SECONDARY: $(patsubst %.c,$(BUILD)/%.o,$(UNIT) $(SIM) $(PROG))
.DELETE_ON_ERROR:
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
