"""The headers compile wherever programs are compiled strictly, and every language has the same structs and numbers."""
import json
import re
import unittest

from support import BUILD, C, CHECKS, CXX, INCLUDE, MODULE, PYTHON, VERSION, must, need, python, under_double

# Ways to compile that differ in how a function that may be missing is called.
WAYS = [[], ["-O0", "-fno-pie", "-no-pie"], ["-fno-pie", "-no-pie"], ["-O0", "-fPIE", "-pie"]]
STRUCTS = ["options", "result", "statistics"]
ENUMS = {"Status": "status", "HEATS": "hint", "POLICIES": "policy", "Reason": "reason"}


def header():
    return (INCLUDE / "isotherm.h").read_text()


def numbers(enum):
    """The constants of an enum of the header."""
    body = re.search(rf"enum isotherm_{enum} {{(.*?)}};", header(), re.DOTALL).group(1)
    found = {name: int(value) for name, value in re.findall(r"ISOTHERM_(\w+) = (\d+)", body)}
    # No constant, but their number.
    found.pop("REASONS", None)
    return found


def texts(what):
    """The header's sentences for statuses or reasons, the last one for those that it does not know."""
    body = re.search(rf"isotherm_{what}_text\(int {what}\)\n{{(.*?)\n}}", header(), re.DOTALL).group(1)
    return re.findall(r'return "(.+)";', body)


def fields(struct):
    """Names of the fields of a struct of the header, in order."""
    body = re.search(rf"struct isotherm_{struct} {{(.*?)}};", header(), re.DOTALL).group(1)
    return re.findall(r"(\w+)(?:\[\w+\])?;", re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL))


class Lint(unittest.TestCase):
    def compile(self, compilers, standards, suffix, text, ways=([],)):
        BUILD.mkdir(parents=True, exist_ok=True)
        # In two files of one program: the header defines nothing twice.
        files = [BUILD / f"lint-{name}{suffix}" for name in ("main", "other")]
        files[0].write_text(text + "int main(void) { return isotherm_version() < 0; }\n")
        files[1].write_text(text + "int other(void);\nint other(void) { return isotherm_version(); }\n")
        for compiler, package in compilers.items():
            need(compiler, package)
            for standard in standards:
                for options in ways:
                    with self.subTest(compiler=compiler, standard=standard, options=options):
                        must([compiler, f"-std={standard}", *CHECKS, "-Wshadow", "-Wstrict-prototypes" if suffix == ".c" else "-Wall",
                              *options, *files, "-o", BUILD / "lint"])
                        must([BUILD / "lint"])

    def test_c(self):
        self.compile(C, ["c99", "gnu17"], ".c", '#include "isotherm.h"\n#include "isotherm.h"\n', WAYS)

    def test_c_header_as_cpp(self):
        self.compile(CXX, ["c++11", "c++17"], ".cpp", '#include "isotherm.h"\n')

    def test_cpp(self):
        self.compile(CXX, ["c++17", "c++20"], ".cpp", '#include "isotherm.hpp"\n')


class Runtime(unittest.TestCase):
    def test_a_program_finds_the_runtime_however_it_was_built(self):
        BUILD.mkdir(parents=True, exist_ok=True)
        source, program = BUILD / "finds.c", BUILD / "finds"
        source.write_text(
            '#include <stdio.h>\n#include "isotherm.h"\nint main(void) {\n    isotherm_free(isotherm_alloc("block", 100));\n'
            '    printf("%d\\n", isotherm_version());\n    return 0;\n}\n')
        for compiler, package in C.items():
            need(compiler, package)
            for way in [*WAYS, ["-flto"], ["-static"], *([["-fuse-ld=lld", *way] for way in WAYS] if compiler != "gcc" else [])]:
                with self.subTest(compiler=compiler, way=way):
                    must([compiler, "-O2", f"-I{INCLUDE}", *way, source, "-o", program])
                    self.assertEqual(must([program]), "0\n")
                    if "-static" not in way:
                        output, log = under_double([program])
                        self.assertEqual((output, log), (f"{VERSION}\n", ["alloc block 100", "free"]))


class Languages(unittest.TestCase):
    def test_python_has_the_structs_and_numbers_of_c(self):
        need("gcc", "gcc")
        source = BUILD / "structs.c"
        prints = [f'printf("{struct} %zu\\n", sizeof(struct isotherm_{struct}));' for struct in STRUCTS]
        prints += [f'printf("{struct}.{field} %zu\\n", offsetof(struct isotherm_{struct}, {field}));' for struct in STRUCTS for field in fields(struct)]
        BUILD.mkdir(parents=True, exist_ok=True)
        source.write_text('#include <stdio.h>\n#include "isotherm.h"\nint main(void) {\n' + "\n".join(prints) + "\nreturn 0;\n}\n")
        must(["gcc", "-std=c99", *CHECKS, source, "-o", BUILD / "structs"])
        wanted = must([BUILD / "structs"]).splitlines()
        script = (
            "import ctypes, json\nfrom isotherm import _library, _interface, Reason, Status\n"
            f"structs = {{name: getattr(_library, name.capitalize()) for name in {STRUCTS}}}\n"
            "sizes = [f'{name} {ctypes.sizeof(each)}' for name, each in structs.items()]\n"
            "sizes += [f'{name}.{field[0]} {getattr(each, field[0]).offset}' for name, each in structs.items() for field in each._fields_]\n"
            "print(json.dumps([sizes, {each.name: each.value for each in Status}, _interface.HEATS, list(_interface.POLICIES.values()),"
            " [str(each) for each in Status], {f'STAYED_{each.name}': each.value for each in Reason}, [str(each) for each in Reason]]))"
        )
        sizes, statuses, heats, policies, sentences, reasons, whys = json.loads(must([python(), "-c", script], **PYTHON))
        self.assertEqual(sizes, wanted)
        self.assertEqual(statuses, numbers("status"))
        self.assertEqual(sorted(heats.values()), sorted(numbers("hint").values()))
        self.assertEqual(sentences, texts("status")[:-1])
        self.assertEqual(reasons, numbers("reason"))
        self.assertEqual(whys, texts("reason")[:-1])
        self.assertEqual(policies, list(numbers("policy").values()))

    def test_every_language_has_the_version_of_c(self):
        self.assertIn(f"isotherm_header_version = {VERSION}\n", MODULE.read_text())
        library = must([python(), "-c", "from isotherm import _library; print(_library.HEADER_VERSION)"], **PYTHON)
        self.assertEqual(library, f"{VERSION}\n")

    def test_fortran_has_the_numbers_of_c(self):
        module = MODULE.read_text()
        for enum in ENUMS.values():
            for name, value in numbers(enum).items():
                self.assertRegex(module, rf"isotherm_{name.lower()} = {value}\b")
        self.assertEqual(re.findall(r"text = ['\"](.+)['\"]", module), texts("status") + texts("reason"))
        for struct in STRUCTS:
            body = re.search(rf"type, bind\(c\), public :: isotherm_{struct}\n(.*?)end type", module, re.DOTALL).group(1)
            self.assertEqual(re.findall(r"(\w+)(?:\([^)]*\))? = ", body), fields(struct))

    def test_cpp_has_the_numbers_of_c(self):
        text = (INCLUDE / "isotherm.hpp").read_text()
        for enum in ENUMS.values():
            for name in numbers(enum):
                self.assertRegex(text, rf"= ISOTHERM_{name}\b")
