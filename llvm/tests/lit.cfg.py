# Tests of the pass on LLVM's intermediate language, run by LLVM's own lit; `run` beside this file
# calls it. RUN lines in each file are the commands, CHECK lines the expected output.
import os
import shutil

import lit.formats

config.name = "isotherm-pass"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".c", ".cpp", ".f90", ".ll"]
config.test_source_root = os.path.join(os.path.dirname(__file__), "ir")
built = os.environ["ISOTHERM_LLVM_BUILD"]
config.test_exec_root = os.path.join(built, "tests")
config.environment["PATH"] = os.pathsep.join(["/usr/lib/llvm-19/bin", os.environ["PATH"]])
# The pass of a sanitizer build needs their runtime in every compiler.
for name in ("LD_PRELOAD", "ASAN_OPTIONS", "UBSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
cc = os.path.join(built, "isotherm-cc") + " --isotherm-root=" + config.test_source_root
cxx = os.path.join(built, "isotherm-c++") + " --isotherm-root=" + config.test_source_root
fc = os.path.join(built, "isotherm-fc") + " --isotherm-root=" + config.test_source_root
if shutil.which("flang-new-19"):
    config.available_features.add("flang")
config.substitutions += [
    ("%fc", fc + " -S -emit-llvm -o -"),
    ("%cc", cc + " -S -emit-llvm -o -"),
    ("%cxx", cxx + " -S -emit-llvm -o -"),
    ("%pass", os.path.join(built, "isotherm_pass.so")),
    ("%opt", "opt -load-pass-plugin=" + os.path.join(built, "isotherm_pass.so") + " -passes=isotherm-sites -S -o -"),
    ("%contexts", "opt -load-pass-plugin=" + os.path.join(built, "isotherm_pass.so")
     + " -passes=isotherm-sites,isotherm-contexts,verify -S -o -"),
]
