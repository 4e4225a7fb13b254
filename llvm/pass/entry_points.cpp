#include "entry_points.h"

#include "llvm/ADT/StringMap.h"

using namespace llvm;

namespace isotherm {

namespace {

// The forms of operator new that end in __hot_cold_t are LLVM's own (MemProf): their hint is useless where the
// site itself decides.
const EntryPoint Table[] = {
    {"malloc", "isotherm_malloc", "pz", 1, "malloc"},
    {"calloc", "isotherm_calloc", "pzz", 2, "calloc"},
    {"realloc", "isotherm_realloc", "ppz", 2, "realloc"},
    {"reallocarray", "isotherm_reallocarray", "ppzz", 3, "reallocarray"},
    {"memalign", "isotherm_memalign", "pzz", 2, "memalign"},
    {"aligned_alloc", "isotherm_aligned_alloc", "pzz", 2, "aligned_alloc"},
    {"posix_memalign", "isotherm_posix_memalign", "ipzz", 3, "posix_memalign"},
    {"valloc", "isotherm_valloc", "pz", 1, "valloc"},
    {"pvalloc", "isotherm_pvalloc", "pz", 1, "pvalloc"},
    {"strdup", "isotherm_strdup", "pp", 1, "strdup"},
    {"__strdup", "isotherm_strdup", "pp", 1, "strdup"},
    {"strndup", "isotherm_strndup", "ppz", 2, "strndup"},
    {"__strndup", "isotherm_strndup", "ppz", 2, "strndup"},
    {"wcsdup", "isotherm_wcsdup", "pp", 1, "wcsdup"},
    {"asprintf", "isotherm_asprintf", "ipp.", 2, "asprintf"},
    {"__asprintf", "isotherm_asprintf", "ipp.", 2, "asprintf"},
    {"__asprintf_chk", "isotherm_asprintf_chk", "ipip.", 3, "asprintf"},
    {"vasprintf", "isotherm_vasprintf", "ippp", 3, "vasprintf"},
    {"__vasprintf_chk", "isotherm_vasprintf_chk", "ipipp", 4, "vasprintf"},
    {"_FortranAAllocatableAllocate", "isotherm_fortran_allocate", "iptppi", 5, "ALLOCATE"},
    {"_FortranAAllocatableAllocateSource", "isotherm_fortran_allocate_from", "ipptppi", 6,
     "ALLOCATE"},
    {"_FortranAPointerAllocate", "isotherm_fortran_allocate_pointer", "iptppi", 5, "ALLOCATE"},
    {"_FortranAPointerAllocateSource", "isotherm_fortran_allocate_pointer_from", "ipptppi", 6,
     "ALLOCATE"},
    {"_Znwm", "isotherm_new", "pz", 1, "operator new"},
    {"_Znam", "isotherm_new_array", "pz", 1, "operator new[]"},
    {"_ZnwmSt11align_val_t", "isotherm_new_aligned", "pzz", 2, "operator new"},
    {"_ZnamSt11align_val_t", "isotherm_new_array_aligned", "pzz", 2, "operator new[]"},
    {"_ZnwmRKSt9nothrow_t", "isotherm_new_nothrow", "pzp", 1, "operator new"},
    {"_ZnamRKSt9nothrow_t", "isotherm_new_array_nothrow", "pzp", 1, "operator new[]"},
    {"_ZnwmSt11align_val_tRKSt9nothrow_t", "isotherm_new_aligned_nothrow", "pzzp", 2,
     "operator new"},
    {"_ZnamSt11align_val_tRKSt9nothrow_t", "isotherm_new_array_aligned_nothrow", "pzzp", 2,
     "operator new[]"},
    {"_Znwm12__hot_cold_t", "isotherm_new", "pzb", 1, "operator new"},
    {"_Znam12__hot_cold_t", "isotherm_new_array", "pzb", 1, "operator new[]"},
    {"_ZnwmSt11align_val_t12__hot_cold_t", "isotherm_new_aligned", "pzzb", 2, "operator new"},
    {"_ZnamSt11align_val_t12__hot_cold_t", "isotherm_new_array_aligned", "pzzb", 2,
     "operator new[]"},
    {"_ZnwmRKSt9nothrow_t12__hot_cold_t", "isotherm_new_nothrow", "pzpb", 1, "operator new"},
    {"_ZnamRKSt9nothrow_t12__hot_cold_t", "isotherm_new_array_nothrow", "pzpb", 1,
     "operator new[]"},
    {"_ZnwmSt11align_val_tRKSt9nothrow_t12__hot_cold_t", "isotherm_new_aligned_nothrow", "pzzpb",
     2, "operator new"},
    {"_ZnamSt11align_val_tRKSt9nothrow_t12__hot_cold_t", "isotherm_new_array_aligned_nothrow",
     "pzzpb", 2, "operator new[]"},
};

bool fitsLetter(char Letter, const Type &Type) {
  switch (Letter) {
  case 'p':
    return Type.isPointerTy();
  case 'z':
    return Type.isIntegerTy(64);
  case 'i':
    return Type.isIntegerTy(32);
  case 't':
    return Type.isIntegerTy(1);
  default:
    return Type.isIntegerTy(8);
  }
}

} // namespace

bool EntryPoint::fits(const FunctionType &Type) const {
  if (Type.isVarArg() != isVariadic() ||
      Type.getNumParams() + 1 + isVariadic() != Signature.size())
    return false;
  if (!fitsLetter(Signature[0], *Type.getReturnType()))
    return false;
  for (unsigned I = 0; I < Type.getNumParams(); ++I)
    if (!fitsLetter(Signature[I + 1], *Type.getParamType(I)))
      return false;
  return true;
}

ArrayRef<EntryPoint> entryPoints() { return Table; }

const EntryPoint *entryPoint(StringRef Symbol) {
  static const StringMap<const EntryPoint *> BySymbol = [] {
    StringMap<const EntryPoint *> Map;
    for (const EntryPoint &Entry : Table)
      Map[Entry.Symbol] = &Entry;
    return Map;
  }();
  return BySymbol.lookup(Symbol);
}

} // namespace isotherm
