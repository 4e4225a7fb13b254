# Isotherm's commands for people. Each target first installs what it needs; `make` alone lists them.
# Every long target is a list of parts (setup/part): a heading, the part, its duration. The first
# part that fails stops the run and is named.

PREFIX ?= /usr/local

# The first Rust toolchain of the machine that is new enough.
CARGO := setup/with-rust cargo
PART := @setup/part

# The output of `build`, and the arguments that pass it to the tests of whole programs.
RELEASE := $(or $(CARGO_TARGET_DIR),target)/release
PASS := build/llvm
JVM := build/java
PRELOADED := $(RELEASE)/libisotherm.so --isotherm $(RELEASE)/isotherm
MOVEMENT := $(RELEASE)/movement stress

# What is installed and what its tests start; the house rules are checked by their debug build.
PRODUCT := --workspace --exclude xtask

# The parts of `test` that keep one processor busy each: two run at a time, and the output of each is printed when it ends. They use what
# the parts before them built. The longest are first; the Java virtual machine, which is built meanwhile, is last.
PAIRS := hostile-programs named-programs real-programs hostile-input workloads report-page named-sites packages-install interface java-programs \
	build-systems attacks heap-programs heap-collections stacks-collections

.DEFAULT_GOAL := help
ifndef IN_PAIRS
.NOTPARALLEL:
endif
.PHONY: help setup build java java-heap demo check test test-long test-vm test-vm-long test-java test-java-heap proof rules bench install packages clean

help:  ## print this list
	@echo 'make TARGET, where TARGET is one of:'
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/    \1\t\2/p' Makefile | expand -t 16

setup:  ## install missing Debian packages and, if needed, a Rust toolchain
	@setup/packages
	@setup/rust

build: setup  ## compile the release build: isotherm, libisotherm.so and the Java agent in target/release, the compiler pass in build/llvm
	$(PART) 'release build' $(CARGO) build --release $(PRODUCT) --locked
	$(PART) 'compiler pass' llvm/build $(PASS)
	$(PART) 'Java agent' java/build $(RELEASE)

java: setup  ## the agent for Java programs, into target/release; part of `build`
	$(PART) 'Java agent' java/build $(RELEASE)

java-heap: setup java-virtual-machine  ## a JDK whose heap has colours, into build/java; ten minutes, once; not part of `build`

demo: build  ## record a real program, plan, run it guided, and show the gain
	@demo/run

check: export CARGO_NET_OFFLINE := true
check:  ## format, lints, house rules and the unit tests: two minutes after a build; installs and fetches nothing
	$(PART) 'format' $(CARGO) fmt --all --check
	$(PART) 'house rules' $(CARGO) run --quiet --locked --package xtask -- check
	$(PART) 'lints' setup/clippy
	$(PART) 'unit tests' $(CARGO) test --workspace --exclude isotherm-vm --lib --bins --locked --quiet

# Where every test set records the tests that it skipped.
test: export ISOTHERM_SKIPS := $(CURDIR)/build/skipped.tsv
# Each crate is compiled once here: what would make the next build faster takes 3 GB of a small disk.
test: export CARGO_INCREMENTAL := 0
test: setup  ## every check and the short test sets, as in continuous integration
	@tests/skip/skips start
	@$(MAKE) --no-print-directory rules
	@setup/python
	@setup/python-3.14
	@setup/beside $(JVM)/beside.log java/build-jvm $(JVM)
	$(PART) 'unit tests' setup/cargo-test
	@setup/room
	$(PART) 'release build' $(CARGO) build --release $(PRODUCT) --locked
	$(PART) 'cache model' bench/truth/test --isotherm $(RELEASE)/isotherm
	$(PART) 'control groups of benchmarks' bench/compressed/test
	$(PART) 'Java agent' java/build $(RELEASE)
	$(PART) 'moving memory' $(MOVEMENT) --seconds 10
	@setup/vm
	$(PART) 'virtual machines' $(CARGO) test --release --locked --package isotherm-vm
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target IN_PAIRS=yes $(PAIRS)
	$(PART) 'skipped tests' tests/skip/skips check

.PHONY: $(PAIRS) compiler-pass java-virtual-machine

compiler-pass:
	$(PART) 'compiler pass' llvm/build $(PASS)

named-sites: compiler-pass
	$(PART) 'programs with named sites' llvm/tests/run $(PASS) --isotherm $(RELEASE)/isotherm

build-systems: compiler-pass
	$(PART) 'build systems' llvm/tests/projects/run $(PASS) --isotherm $(RELEASE)/isotherm

named-programs: compiler-pass
	$(PART) 'real programs with named sites' llvm/tests/debian/run $(PASS) --isotherm $(RELEASE)/isotherm

# Both fetch the same sources.
real-programs: named-programs
	$(PART) 'real programs' tests/programs/run.sh $(PRELOADED)

hostile-programs:
	$(PART) 'hostile programs' tests/hostile/run.sh $(PRELOADED)

attacks:
	$(PART) 'attacks' tests/attack/run

hostile-input:
	$(PART) 'hostile input' fuzz/check

workloads:
	$(PART) 'workloads' tests/workloads/run --isotherm $(RELEASE)/isotherm

interface:
	$(PART) 'interface' tests/interface/run --isotherm $(RELEASE)/isotherm

report-page:
	$(PART) 'report page' tests/pages/run

packages-install:
	$(PART) 'packages' tests/packages/run

java-programs:
	$(PART) 'Java programs' java/tests/run --isotherm $(RELEASE)/isotherm

java-virtual-machine:
	$(PART) 'Java virtual machine' java/build-jvm $(JVM)

heap-programs: java-virtual-machine
	$(PART) 'Java heap' java/tests/run --isotherm $(RELEASE)/isotherm --jdk $(JVM)/jdk

heap-collections: java-virtual-machine
	$(PART) 'collections of a Java heap' java/tests/jtreg --jdk $(JVM)/jdk

stacks-collections: java-virtual-machine
	$(PART) 'collections with sampled stacks' java/tests/jtreg --jdk $(JVM)/jdk --stacks

test-long: build java-heap test-vm-long  ## the long test sets: other projects' own test suites, virtual machines
	$(PART) 'a day of programs' $(CARGO) test --release --locked --package isotherm-pipeline -- --ignored
	$(PART) 'real programs, long set' tests/programs/run.sh $(PRELOADED) --long
	$(PART) 'compiler pass under sanitizers' llvm/tests/run $(PASS) --isotherm $(RELEASE)/isotherm --set long
	$(PART) 'real programs with named sites, long set' llvm/tests/debian/run $(PASS) --isotherm $(RELEASE)/isotherm --set long
	$(PART) 'collections of a Java heap, long set' java/tests/jtreg --jdk $(JVM)/jdk --set long

proof: build  ## ten minutes of moving memory under load: no loss in a billion checked writes
	$(PART) 'moving memory, caught when it must be' $(MOVEMENT) --canary --seconds 60
	$(PART) 'moving memory, ten minutes' $(MOVEMENT) --seconds 600 --at-least 1000000000

test-vm: build  ## memory nodes that this machine lacks, in virtual machines; part of `test`
	@setup/vm
	$(PART) 'virtual machines' $(CARGO) test --release --locked --package isotherm-vm

test-vm-long: build  ## the long set in virtual machines, and an older kernel; part of `test-long`
	@setup/vm newest
	@setup/vm stock
	$(PART) 'virtual machines, long set' $(CARGO) test --release --locked --package isotherm-vm -- --include-ignored
	$(PART) 'virtual machines, older kernel' env ISOTHERM_VM_KIT=stock $(CARGO) test --release --locked --package isotherm-vm --test guest

test-java: build java-programs  ## profiles of Java programs; part of `test`

test-java-heap: build heap-programs heap-collections stacks-collections  ## the JDK of `java-heap`; part of `test`

rules: setup  ## format, lints, house rules and dependencies; part of `test`
	$(PART) 'format' $(CARGO) fmt --all --check
	$(PART) 'house rules' $(CARGO) run --quiet --locked --package xtask -- check
	$(PART) 'dependencies' setup/deny
	$(PART) 'lints' setup/clippy

bench: build  ## the figures of SPECIFICATION.md, on this machine
	@bench/run

install:  ## copy the output of `make build`, stripped, and man pages to PREFIX (/usr/local), under DESTDIR
	@setup/install '$(DESTDIR)' '$(PREFIX)'

packages: build  ## a .deb, an .rpm and a Python wheel of the release build, in build/packages
	@packaging/build build/packages

clean:  ## remove all build output
	rm -rf target build demo-out workloads/build
