#include "source_place.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace isotherm {

namespace {

// Directories where no project keeps its own sources.
const StringRef SystemDirectories[] = {"/usr/include/", "/usr/lib/", "/usr/local/include/"};

std::string absolute(StringRef Directory, StringRef File) {
  SmallString<256> Path;
  if (sys::path::is_relative(File))
    Path = Directory;
  sys::path::append(Path, File);
  sys::path::remove_dots(Path, /*remove_dot_dot=*/true);
  return std::string(Path);
}

// The path relative to the root; the whole path where it is not below it.
StringRef below(StringRef Path, StringRef Root) {
  StringRef Rest = Path;
  while (Root.ends_with("/"))
    Root = Root.drop_back();
  if (!Root.empty() && Rest.consume_front(Root) && Rest.consume_front("/"))
    return Rest;
  return Path;
}

bool isSystem(StringRef Path) {
  return any_of(SystemDirectories, [&](StringRef Prefix) { return Path.starts_with(Prefix); });
}

StringRef functionName(const DISubprogram &Program) {
  return Program.getLinkageName().empty() ? Program.getName() : Program.getLinkageName();
}

// flang's names follow no scheme that the demangler knows.
std::string shown(const DISubprogram &Program) {
  std::string Name = functionName(Program).str();
  if (Name == "_QQmain")
    return "main";
  return StringRef(Name).starts_with("_Q") ? Program.getName().str() : demangle(Name);
}

} // namespace

SourcePlace placeOf(const DILocation &Location, StringRef Root) {
  const DISubprogram &Program = *Location.getScope()->getSubprogram();
  SourcePlace Place;
  std::string Path = absolute(Location.getDirectory(), Location.getFilename());
  if (const DICompileUnit *Unit = Program.getUnit(); Root.empty() && Unit)
    Root = Unit->getDirectory();
  StringRef Below = below(Path, Root);
  Place.System = Below.size() == Path.size() && isSystem(Path);
  Place.Path = Below;
  Place.Function = functionName(Program);
  Place.Shown = shown(Program);
  Place.Line = Location.getLine();
  // Lines of another file (#line, #include within a function) may be lower than the function's. A call that the
  // optimiser merged from two has no line, wherever its function is.
  if (Location.getLine() != 0)
    Place.LineInFunction = Location.getLine() - Program.getLine();
  Place.Column = Location.getColumn();
  return Place;
}

bool isSystemFunction(const Function &Function) {
  const DISubprogram *Program = Function.getSubprogram();
  return Program && isSystem(absolute(Program->getDirectory(), Program->getFilename()));
}

} // namespace isotherm
