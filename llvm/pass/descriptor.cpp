#include "descriptor.h"

#include "../sites/isotherm_site.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Constants.h"

using namespace llvm;

namespace isotherm {

namespace {

// Fields of the record, in order; the structure below and isotherm_site.h must agree.
enum Field : unsigned {
  Id,
  HeapRoute,
  NewRouteOrMalloc,
  Number,
  LayoutVersion,
  Path,
  FunctionName,
  Line,
  Column,
  Ordinal,
  CalleeName,
  VersionSymbol,
  ContextDepth,
};

} // namespace

Descriptors::Descriptors(llvm::Module &Module) : Module(Module) {
  LLVMContext &Context = Module.getContext();
  llvm::Type *Word = llvm::Type::getInt32Ty(Context);
  llvm::Type *Long = llvm::Type::getInt64Ty(Context);
  llvm::Type *Pointer = PointerType::getUnqual(Context);
  Type = StructType::create({Long, Pointer, Pointer, Word, Word, Word, Word, Word, Word, Word,
                             Word, Word, Word},
                            "isotherm_site");
}

Constant *Descriptors::text(StringRef Text) {
  Constant *&Known = Texts[Text];
  if (!Known) {
    Constant *Bytes = ConstantDataArray::getString(Module.getContext(), Text);
    auto *Global = new GlobalVariable(Module, Bytes->getType(), /*isConstant=*/true,
                                      GlobalValue::PrivateLinkage, Bytes, "isotherm_text");
    Global->setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
    Global->setAlignment(Align(1));
    Known = Global;
  }
  return Known;
}

Constant *Descriptors::distance(Constant *From, Constant *To) {
  LLVMContext &Context = From->getContext();
  llvm::Type *Long = llvm::Type::getInt64Ty(Context);
  Constant *Bytes = ConstantExpr::getSub(ConstantExpr::getPtrToInt(To, Long),
                                         ConstantExpr::getPtrToInt(From, Long));
  return ConstantExpr::getTrunc(Bytes, llvm::Type::getInt32Ty(Context));
}

// Distance from a field of the record.
Constant *Descriptors::distance(GlobalVariable *Record, unsigned Field, Constant *To) {
  llvm::Type *Word = llvm::Type::getInt32Ty(Module.getContext());
  Constant *Indices[] = {ConstantInt::get(Word, 0), ConstantInt::get(Word, Field)};
  return distance(ConstantExpr::getInBoundsGetElementPtr(Type, Record, Indices), To);
}

// The first target of the pointer of a call of malloc, until the site is used.
Constant *Descriptors::mallocAtFirst() {
  LLVMContext &Context = Module.getContext();
  llvm::Type *Pointer = PointerType::getUnqual(Context);
  FunctionType *Malloc =
      FunctionType::get(Pointer, {llvm::Type::getInt64Ty(Context), Pointer}, /*isVarArg=*/false);
  auto *Function = cast<llvm::Function>(
      Module.getOrInsertFunction(ISOTHERM_MALLOC_AT_FIRST, Malloc).getCallee());
  Function->setVisibility(GlobalValue::HiddenVisibility);
  Function->setDSOLocal(true);
  return Function;
}

GlobalVariable *Descriptors::make(const SiteKey &Key, StringRef Callee, bool IsMalloc) {
  std::string Name = "isotherm_site." + utohexstr(Key.id(), /*LowerCase=*/true, 16);
  if (GlobalVariable *Known = Module.getNamedGlobal(Name))
    return Known;
  LLVMContext &Context = Module.getContext();
  // At the link, modules from the compiler have it already.
  if (!Version)
    Version = Module.getNamedGlobal(ISOTHERM_VERSION_SYMBOL);
  if (!Version) {
    auto *Symbol = new GlobalVariable(Module, llvm::Type::getInt8Ty(Context), /*isConstant=*/true,
                                      GlobalValue::ExternalLinkage, nullptr,
                                      ISOTHERM_VERSION_SYMBOL);
    Symbol->setVisibility(GlobalValue::HiddenVisibility);
    Version = Symbol;
  }
  auto *Record = new GlobalVariable(Module, Type, /*isConstant=*/false,
                                    GlobalValue::LinkOnceODRLinkage, nullptr, Name);
  llvm::Type *Word = llvm::Type::getInt32Ty(Context);
  Constant *Null = ConstantPointerNull::get(PointerType::getUnqual(Context));
  Constant *Malloc = IsMalloc ? mallocAtFirst() : Null;
  auto Number = [&](uint64_t Value) { return ConstantInt::get(Word, Value); };
  Record->setInitializer(ConstantStruct::get(
      Type, {ConstantInt::get(llvm::Type::getInt64Ty(Context), Key.id()), Null, Malloc, Number(0),
             Number(ISOTHERM_SITE_VERSION), distance(Record, Path, text(Key.Path)),
             distance(Record, FunctionName, text(Key.Shown)), Number(Key.Line),
             Number(Key.Column), Number(Key.Ordinal),
             distance(Record, CalleeName, text(Callee)),
             distance(Record, VersionSymbol, Version), Number(0)}));
  Record->setComdat(Module.getOrInsertComdat(Name));
  Record->setVisibility(GlobalValue::HiddenVisibility);
  Record->setSection(ISOTHERM_SITE_SECTION);
  Record->setAlignment(Align(sizeof(isotherm_site)));
  return Record;
}

Constant *mallocPointer(GlobalVariable &Record) {
  auto *Fields = Record.hasInitializer() ? dyn_cast<ConstantStruct>(Record.getInitializer()) : nullptr;
  if (!Fields || Fields->getNumOperands() <= NewRouteOrMalloc)
    return nullptr;
  auto *AtFirst = dyn_cast<Function>(Fields->getOperand(NewRouteOrMalloc));
  if (!AtFirst || AtFirst->getName() != ISOTHERM_MALLOC_AT_FIRST)
    return nullptr;
  llvm::Type *Word = llvm::Type::getInt32Ty(Record.getContext());
  Constant *Indices[] = {ConstantInt::get(Word, 0), ConstantInt::get(Word, NewRouteOrMalloc)};
  return ConstantExpr::getInBoundsGetElementPtr(Fields->getType(), &Record, Indices);
}

} // namespace isotherm
