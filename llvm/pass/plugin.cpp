// The entry points of the plugin for clang, the linker and opt.
#include "access_counts.h"
#include "allocation_sites.h"
#include "contexts.h"
#include "options.h"
#include "straight_calls.h"

#include "llvm/Config/llvm-config.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/PassPlugin.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"

#if LLVM_VERSION_MAJOR != 19
#error "Isotherm's pass is made for LLVM 19; LLVM's interfaces change with every version"
#endif

#include <cstdlib>

using namespace llvm;

static cl::opt<std::string> Root("isotherm-root",
                                 cl::desc("The project's directory (default: the compilation's)"));

static cl::list<std::string> WrapperNames("isotherm-wrapper", cl::CommaSeparated,
                                          cl::desc("Functions that allocate for their callers"));

static cl::opt<bool> FindWrappers("isotherm-find-wrappers", cl::init(true),
                                  cl::desc("Look for functions that allocate for their callers"));

static cl::opt<bool> CountAccesses("isotherm-count-accesses",
                                   cl::desc("Count loads and stores down to the next sample"));

namespace isotherm::options {

StringRef root() {
  // At the link, without options: see link_options.h.
  const char *Variable = std::getenv("ISOTHERM_ROOT");
  return Root.empty() && Variable ? StringRef(Variable) : StringRef(Root);
}

ArrayRef<std::string> wrappers() { return ArrayRef<std::string>(WrapperNames); }

bool findWrappers() { return FindWrappers; }

} // namespace isotherm::options

namespace {

// Sites that their callers name come first; unreachable code would only be counted.
void addContexts(ModulePassManager &Passes) {
  Passes.addPass(isotherm::AllocationSites(/*AtLink=*/true));
  Passes.addPass(GlobalDCEPass());
  Passes.addPass(isotherm::Contexts());
}

} // namespace

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT PassPluginLibraryInfo llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "isotherm", LLVM_VERSION_STRING, [](PassBuilder &Builder) {
            Builder.registerPipelineStartEPCallback([](ModulePassManager &Passes,
                                                       OptimizationLevel) {
              Passes.addPass(isotherm::AllocationSites());
            });
            Builder.registerOptimizerLastEPCallback([](ModulePassManager &Passes,
                                                       OptimizationLevel) {
              if (CountAccesses)
                Passes.addPass(isotherm::AccessCounts());
              // A build that distinguishes contexts optimises at the link.
              if (!isotherm::tellsContexts())
                Passes.addPass(isotherm::StraightCalls());
            });
            Builder.registerFullLinkTimeOptimizationEarlyEPCallback(
                [](ModulePassManager &Passes, OptimizationLevel) {
                  if (isotherm::tellsContexts())
                    addContexts(Passes);
                });
            Builder.registerFullLinkTimeOptimizationLastEPCallback(
                [](ModulePassManager &Passes, OptimizationLevel) {
                  if (isotherm::tellsContexts())
                    Passes.addPass(isotherm::StraightCalls());
                });
            Builder.registerPipelineParsingCallback(
                [](StringRef Name, ModulePassManager &Passes,
                   ArrayRef<PassBuilder::PipelineElement>) {
                  if (Name == "isotherm-sites")
                    Passes.addPass(isotherm::AllocationSites());
                  else if (Name == "isotherm-accesses")
                    Passes.addPass(isotherm::AccessCounts());
                  else if (Name == "isotherm-straight")
                    Passes.addPass(isotherm::StraightCalls());
                  else if (Name == "isotherm-contexts")
                    addContexts(Passes);
                  else
                    return false;
                  return true;
                });
          }};
}
