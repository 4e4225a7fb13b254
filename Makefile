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

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup build java java-heap demo check test test-long test-vm test-vm-long test-java test-java-heap proof rules bench install packages clean

help:  ## print this list
	@echo 'make TARGET, where TARGET is one of:'
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/    \1\t\2/p' Makefile | expand -t 16

setup:  ## install missing Debian packages and, if needed, a Rust toolchain
	@setup/packages
	@setup/rust

build: setup  ## compile the release build: isotherm, libisotherm.so and the Java agent in target/release, the compiler pass in build/llvm
	$(PART) 'release build' $(CARGO) build --release --workspace --locked
	$(PART) 'compiler pass' llvm/build $(PASS)
	$(PART) 'Java agent' java/build $(RELEASE)

java: setup  ## the agent for Java programs, into target/release; part of `build`
	$(PART) 'Java agent' java/build $(RELEASE)

java-heap: setup  ## a JDK whose heap has colours, into build/java; ten minutes, once; not part of `build`
	$(PART) 'Java virtual machine' java/build-jvm $(JVM)

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
	$(PART) 'release build' $(CARGO) build --release --workspace --locked
	$(PART) 'cache model' bench/truth/test --isotherm $(RELEASE)/isotherm
	$(PART) 'control groups of benchmarks' bench/compressed/test
	$(PART) 'Java agent' java/build $(RELEASE)
	$(PART) 'Java programs' java/tests/run --isotherm $(RELEASE)/isotherm
	$(PART) 'moving memory' $(MOVEMENT) --seconds 10
	@setup/vm
	$(PART) 'virtual machines' $(CARGO) test --release --locked --package isotherm-vm
	$(PART) 'compiler pass' llvm/build $(PASS)
	$(PART) 'programs with named sites' llvm/tests/run $(PASS) --isotherm $(RELEASE)/isotherm
	$(PART) 'build systems' llvm/tests/projects/run $(PASS) --isotherm $(RELEASE)/isotherm
	$(PART) 'real programs with named sites' llvm/tests/debian/run $(PASS) --isotherm $(RELEASE)/isotherm
	$(PART) 'hostile programs' tests/hostile/run.sh $(PRELOADED)
	$(PART) 'attacks' tests/attack/run
	$(PART) 'real programs' tests/programs/run.sh $(PRELOADED)
	$(PART) 'workloads' tests/workloads/run --isotherm $(RELEASE)/isotherm
	$(PART) 'interface' tests/interface/run --isotherm $(RELEASE)/isotherm
	$(PART) 'report page' tests/pages/run
	$(PART) 'packages' tests/packages/run
	$(PART) 'hostile input' fuzz/check
	$(PART) 'Java virtual machine' java/build-jvm $(JVM)
	$(PART) 'Java heap' java/tests/run --isotherm $(RELEASE)/isotherm --jdk $(JVM)/jdk
	$(PART) 'collections of a Java heap' java/tests/jtreg --jdk $(JVM)/jdk
	$(PART) 'collections with sampled stacks' java/tests/jtreg --jdk $(JVM)/jdk --stacks
	$(PART) 'skipped tests' tests/skip/skips check

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

test-java: build  ## profiles of Java programs; part of `test`
	$(PART) 'Java programs' java/tests/run --isotherm $(RELEASE)/isotherm

test-java-heap: build java-heap  ## the JDK of `java-heap`; part of `test`
	$(PART) 'Java heap' java/tests/run --isotherm $(RELEASE)/isotherm --jdk $(JVM)/jdk
	$(PART) 'collections of a Java heap' java/tests/jtreg --jdk $(JVM)/jdk
	$(PART) 'collections with sampled stacks' java/tests/jtreg --jdk $(JVM)/jdk --stacks

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
