// What clang and opt load.
#include "access_counts.h"
#include "allocation_sites.h"
#include "options.h"

#include "llvm/Config/llvm-config.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/PassPlugin.h"
#include "llvm/Support/CommandLine.h"

#if LLVM_VERSION_MAJOR != 19
#error "Isotherm's pass is made for LLVM 19; LLVM's interfaces change with every version"
#endif

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

StringRef root() { return Root; }

ArrayRef<std::string> wrappers() { return ArrayRef<std::string>(WrapperNames); }

bool findWrappers() { return FindWrappers; }

} // namespace isotherm::options

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
            });
            Builder.registerPipelineParsingCallback(
                [](StringRef Name, ModulePassManager &Passes,
                   ArrayRef<PassBuilder::PipelineElement>) {
                  if (Name == "isotherm-sites")
                    Passes.addPass(isotherm::AllocationSites());
                  else if (Name == "isotherm-accesses")
                    Passes.addPass(isotherm::AccessCounts());
                  else
                    return false;
                  return true;
                });
          }};
}
