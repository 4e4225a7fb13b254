#include "site_key.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;

namespace isotherm {

namespace {

// Where no project keeps its own sources.
const StringRef SystemDirectories[] = {"/usr/include/", "/usr/lib/", "/usr/local/include/"};

std::string absolute(StringRef Directory, StringRef File) {
  SmallString<256> Path;
  if (sys::path::is_relative(File))
    Path = Directory;
  sys::path::append(Path, File);
  sys::path::remove_dots(Path, /*remove_dot_dot=*/true);
  return std::string(Path);
}

// The path below the root; the whole path where it is not below it.
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

unsigned lineInFunction(const DILocation &Location, const DISubprogram &Program) {
  // Lines of another file (#line, #include within a function) may lie before the function's.
  return Location.getLine() - Program.getLine();
}

// flang's names are of no scheme that the demangler knows.
std::string shown(const DISubprogram &Program) {
  std::string Name = functionName(Program).str();
  if (Name == "_QQmain")
    return "main";
  return StringRef(Name).starts_with("_Q") ? Program.getName().str() : demangle(Name);
}

std::string contextOf(const DILocation &Location) {
  std::string Context;
  for (const DILocation *Outer = Location.getInlinedAt(); Outer; Outer = Outer->getInlinedAt()) {
    const DISubprogram &Program = *Outer->getScope()->getSubprogram();
    Context += functionName(Program);
    Context += ':' + std::to_string(lineInFunction(*Outer, Program));
    Context += ':' + std::to_string(Outer->getColumn()) + ';';
  }
  return Context;
}

} // namespace

bool isSystemFunction(const Function &Function) {
  const DISubprogram *Program = Function.getSubprogram();
  return Program && isSystem(absolute(Program->getDirectory(), Program->getFilename()));
}

uint64_t SiteKey::id() const {
  std::string Text = Path;
  for (const std::string &Part :
       {Function, std::to_string(LineInFunction), std::to_string(Column), std::to_string(Ordinal), Context}) {
    Text.push_back('\0');
    Text += Part;
  }
  uint64_t Hash = xxh3_64bits(Text);
  return Hash > 1 ? Hash : Hash + 2;
}

std::optional<SiteKey> SiteNamer::name(const CallBase &Call) {
  const Function &Function = *Call.getFunction();
  SiteKey Key;
  Key.Path = Function.getParent()->getSourceFileName();
  Key.Function = Function.getName();
  Key.Shown = demangle(Key.Function);
  if (const DILocation *Location = Call.getDebugLoc()) {
    const DISubprogram &Program = *Location->getScope()->getSubprogram();
    std::string Path = absolute(Location->getDirectory(), Location->getFilename());
    StringRef Directory = Root;
    if (const DICompileUnit *Unit = Program.getUnit(); Directory.empty() && Unit)
      Directory = Unit->getDirectory();
    StringRef Below = below(Path, Directory);
    if (Below.size() == Path.size() && isSystem(Path))
      return std::nullopt;
    Key.Path = Below;
    Key.Function = functionName(Program);
    Key.Shown = shown(Program);
    Key.Line = Location->getLine();
    Key.LineInFunction = lineInFunction(*Location, Program);
    Key.Column = Location->getColumn();
    Key.Context = contextOf(*Location);
  }
  // The id without an ordinal stands for the place.
  Key.Ordinal = Seen[std::to_string(Key.id()) + Function.getName().str()]++;
  return Key;
}

} // namespace isotherm
