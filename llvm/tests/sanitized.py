"""The pass built with the address and undefined-behaviour sanitizers, on all inputs of its other tests."""
import glob
import os
import subprocess
import sys

from harness import HERE, PROGRAMS, Bench, Failed, Skipped, expect_in

LIT = "/usr/lib/llvm-19/build/utils/lit/lit.py"
# LLVM itself is built without them: it does not free memory of its own lifetime, and its containers are not annotated.
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:detect_container_overflow=0:halt_on_error=1:exitcode=99",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
}
SANITIZE = ["-fsanitize=address,undefined", "-shared-libasan"]
BUILD_SECONDS = 1200


def lit(build: str, **environment: str) -> str:
    """Runs the tests on intermediate language with the pass of a build; returns lit's last line."""
    if not os.path.isfile(LIT):
        raise Failed(f"{LIT} is missing; the package llvm-19-tools has it")
    done = subprocess.run([sys.executable, LIT, "-v", "-j2", HERE], capture_output=True, text=True, timeout=600, check=False,
                          env=dict(os.environ, ISOTHERM_LLVM_BUILD=build, **environment))
    if done.returncode != 0:
        raise Failed(done.stdout[-4000:] + done.stderr[-1000:])
    return done.stdout.strip().splitlines()[-1].strip()


def sanitizers_find_nothing(bench: Bench) -> str:
    """The compiler is not built with sanitizers, so their runtime is preloaded. A canary proves that it reports errors."""
    runtime = bench.run("clang-19", "-print-file-name=libclang_rt.asan-x86_64.so").stdout.strip()
    if not os.path.isfile(runtime):
        runtime = bench.run("clang-19", "-print-file-name=libclang_rt.asan.so").stdout.strip()
    if not os.path.isfile(runtime):
        raise Skipped("the sanitizers' runtime is missing; apt-get install libclang-rt-19-dev")
    build = os.path.join(bench.folder, "build")
    os.makedirs(build)
    subprocess.run(["make", "--quiet", "--no-print-directory", "-j2", "-C", os.path.dirname(HERE), f"OUT={build}",
                    f"SANITIZE={' '.join(SANITIZE)} -fno-sanitize=vptr -fno-sanitize-recover=all"], check=True, timeout=BUILD_SECONDS)
    expect_in("what the pass refers to", "__asan_report", bench.run("llvm-nm-19", "-D", f"{build}/isotherm_pass.so").stdout)
    environment = dict(OPTIONS, LD_PRELOAD=runtime)
    bench.run("clang++-19", *SANITIZE, "-shared", "-fPIC", os.path.join(PROGRAMS, "overflow.cpp"), "-o", "overflow.so")
    canary = bench.run("clang-19", "-fpass-plugin=./overflow.so", "-c", os.path.join(PROGRAMS, "figure3.c"), status=99,
                       **environment)
    expect_in("what the sanitizer says of a planted fault", "heap-buffer-overflow", canary.stderr)
    said = lit(build, **environment)
    sanitized = Bench(build, bench.isotherm, bench.folder)
    count = 0
    for program in sorted(glob.glob(os.path.join(PROGRAMS, "*.c")) + glob.glob(os.path.join(PROGRAMS, "*.cpp"))):
        compiler = "isotherm-c++" if program.endswith(".cpp") else "isotherm-cc"
        for options in ([], ["-O0"], ["--profile"], ["--isotherm-context=argument", "-shared"],
                        ["--isotherm-context=clone", "-shared"]):
            sanitized.compile("-w", "-fPIC", *options, *([] if "-shared" in options else ["-c"]), program, "-o", "object",
                              compiler=compiler, **environment)
            count += 1
    return f"{said}; {count} compilations"


TESTS = [sanitizers_find_nothing]
