#include "codegen/cpu_llvm/jit.h"

#include <elf.h>
#include <llvm-c/Analysis.h>
#include <llvm-c/Error.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "codegen/cpu_llvm/host.h"
#include "support/check.h"
#include "support/diagnostic.h"

namespace flexor::codegen::cpu_llvm {
namespace {

// The last message ORC or the code generator reported on this thread. Their return values say only "failed".
thread_local std::string reported;

std::string take_error(LLVMErrorRef error) {
    char* text = LLVMGetErrorMessage(error);
    std::string result = text;
    LLVMDisposeErrorMessage(text);
    if (!reported.empty()) result += ": " + reported;
    reported.clear();
    return result;
}

Diagnostic codegen_error(std::string what) {
    return Diagnostic(DiagnosticId::kCodeGenerationFailed).found(std::move(what));
}

void report_session_error(void*, LLVMErrorRef error) {
    char* text = LLVMGetErrorMessage(error);
    reported = text;
    LLVMDisposeErrorMessage(text);
}

void report_diagnostic(LLVMDiagnosticInfoRef info, void*) {
    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError) return;
    char* text = LLVMGetDiagInfoDescription(info);
    reported = text;
    LLVMDisposeMessage(text);
}

void initialise_llvm() {
    static const bool done = [] {
        LLVMInitializeNativeTarget();
        LLVMInitializeNativeAsmPrinter();
        return true;
    }();
    (void)done;
}

LLVMTargetMachineRef create_target_machine() {
    initialise_llvm();
    const HostTarget& host = host_target();
    LLVMTargetRef target = nullptr;
    char* message = nullptr;
    if (LLVMGetTargetFromTriple(host.triple.c_str(), &target, &message)) {
        FLEXOR_FATAL(message);
    }
    return LLVMCreateTargetMachine(target, host.triple.c_str(), host.cpu.c_str(), host.features.c_str(),
                                   LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelSmall);
}

// Target machines are not safe to share between threads.
LLVMTargetMachineRef thread_target_machine() {
    struct Owner {
        LLVMTargetMachineRef machine = create_target_machine();
        ~Owner() { LLVMDisposeTargetMachine(machine); }
    };
    thread_local Owner owner;
    return owner.machine;
}

// The process-wide linker state. An object is linked into a JITDylib of its own, so that two objects may define the
// same names; the C API cannot delete a JITDylib, hence emptied ones are kept for reuse.
class Linker {
public:
    static Linker& instance() {
        static Linker* const linker = new Linker;
        return *linker;
    }

    LLVMOrcJITDylibRef acquire() {
        std::lock_guard lock(mutex_);
        if (!free_.empty()) {
            LLVMOrcJITDylibRef dylib = free_.back();
            free_.pop_back();
            return dylib;
        }
        std::string name = "object" + std::to_string(count_++);
        return LLVMOrcExecutionSessionCreateBareJITDylib(session_, name.c_str());
    }

    // Only for a JITDylib whose objects were all removed.
    void release(LLVMOrcJITDylibRef dylib) {
        std::lock_guard lock(mutex_);
        free_.push_back(dylib);
        if (++released_ % 256 == 0) LLVMOrcSymbolStringPoolClearDeadEntries(pool_);
    }

    LLVMOrcLLJITRef jit() const { return jit_; }
    LLVMOrcExecutionSessionRef session() const { return session_; }

private:
    Linker() {
        initialise_llvm();
        if (LLVMErrorRef error = LLVMOrcCreateLLJIT(&jit_, nullptr)) {
            FLEXOR_FATAL(take_error(error));
        }
        session_ = LLVMOrcLLJITGetExecutionSession(jit_);
        pool_ = LLVMOrcExecutionSessionGetSymbolStringPool(session_);
        LLVMOrcExecutionSessionSetErrorReporter(session_, report_session_error, nullptr);
    }

    std::mutex mutex_;
    std::vector<LLVMOrcJITDylibRef> free_;
    uint64_t count_ = 0;
    uint64_t released_ = 0;
    LLVMOrcLLJITRef jit_ = nullptr;
    LLVMOrcExecutionSessionRef session_ = nullptr;
    LLVMOrcSymbolStringPoolRef pool_ = nullptr;
};

struct ObjectSymbols {
    std::vector<std::string> defined;
    std::vector<std::string> undefined;
};

// Reads the global symbols of an ELF64 relocatable object. Every offset is checked: the bytes may come from a file.
bool read_symbols(std::span<const char> bytes, ObjectSymbols& symbols) {
    auto read = [&](uint64_t offset, void* out, size_t size) {
        if (offset > bytes.size() || size > bytes.size() - offset) return false;
        std::memcpy(out, bytes.data() + offset, size);
        return true;
    };
    Elf64_Ehdr header;
    if (!read(0, &header, sizeof header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_type != ET_REL || header.e_shentsize != sizeof(Elf64_Shdr)) {
        return false;
    }
    auto section = [&](uint64_t index, Elf64_Shdr& out) {
        return index < header.e_shnum && read(header.e_shoff + index * sizeof out, &out, sizeof out) &&
               (out.sh_type == SHT_NOBITS ||
                (out.sh_offset <= bytes.size() && out.sh_size <= bytes.size() - out.sh_offset));
    };
    for (uint64_t i = 0; i < header.e_shnum; ++i) {
        Elf64_Shdr table;
        if (!section(i, table)) return false;
        if (table.sh_type != SHT_SYMTAB) continue;
        Elf64_Shdr names;
        if (!section(table.sh_link, names) || names.sh_type != SHT_STRTAB) return false;
        for (uint64_t s = 1; s < table.sh_size / sizeof(Elf64_Sym); ++s) {
            Elf64_Sym symbol;
            if (!read(table.sh_offset + s * sizeof symbol, &symbol, sizeof symbol)) return false;
            if (ELF64_ST_BIND(symbol.st_info) == STB_LOCAL) continue;
            if (symbol.st_name >= names.sh_size) return false;
            const char* text = bytes.data() + names.sh_offset + symbol.st_name;
            std::string name(text, strnlen(text, names.sh_size - symbol.st_name));
            if (symbol.st_shndx == SHN_UNDEF) {
                symbols.undefined.push_back(std::move(name));
            } else {
                symbols.defined.push_back(std::move(name));
            }
        }
    }
    return true;
}

struct LookupResult {
    LLVMErrorRef error = nullptr;
    std::unordered_map<std::string, void*>* addresses = nullptr;
};

void take_lookup(LLVMErrorRef error, LLVMOrcCSymbolMapPairs pairs, size_t count, void* context) {
    auto* result = static_cast<LookupResult*>(context);
    result->error = error;
    if (error) return;
    for (size_t i = 0; i < count; ++i) {
        result->addresses->emplace(LLVMOrcSymbolStringPoolEntryStr(pairs[i].Name),
                                   reinterpret_cast<void*>(pairs[i].Sym.Address));
    }
}

}  // namespace

struct LoadedObject::State {
    LLVMOrcJITDylibRef dylib = nullptr;
    LLVMOrcResourceTrackerRef tracker = nullptr;
    std::unordered_map<std::string, void*> addresses;

    ~State() {
        if (!tracker) return;
        LLVMErrorRef error = LLVMOrcResourceTrackerRemove(tracker);
        LLVMOrcReleaseResourceTracker(tracker);
        if (error) {
            LLVMConsumeError(error);  // the JITDylib is not empty then: never used again
            return;
        }
        Linker::instance().release(dylib);
    }
};

ModuleBuilder::ModuleBuilder(const char* name)
    : context_(LLVMContextCreate()),
      module_(LLVMModuleCreateWithNameInContext(name, context_)),
      builder_(LLVMCreateBuilderInContext(context_)) {
    LLVMContextSetDiagnosticHandler(context_, report_diagnostic, nullptr);
    LLVMSetTarget(module_, host_target().triple.c_str());
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(thread_target_machine());
    LLVMSetModuleDataLayout(module_, layout);
    LLVMDisposeTargetData(layout);
}

ModuleBuilder::ModuleBuilder(ModuleBuilder&& other) noexcept
    : context_(std::exchange(other.context_, nullptr)),
      module_(std::exchange(other.module_, nullptr)),
      builder_(std::exchange(other.builder_, nullptr)) {}

ModuleBuilder::~ModuleBuilder() {
    if (!context_) return;
    LLVMDisposeBuilder(builder_);
    LLVMDisposeModule(module_);
    LLVMContextDispose(context_);
}

Expected<std::vector<char>> emit_object(LLVMModuleRef module, const char* passes) {
    if (std::getenv("FLEXOR_DUMP_IR")) std::fprintf(stderr, "%s\n", print_module(module).c_str());
    char* message = nullptr;
    if (LLVMVerifyModule(module, LLVMReturnStatusAction, &message)) {
        std::string text = message;
        LLVMDisposeMessage(message);
        return codegen_error("the generated module is not valid: " + text);
    }
    LLVMDisposeMessage(message);
    LLVMTargetMachineRef machine = thread_target_machine();
    if (passes && *passes) {
        LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
        LLVMErrorRef error = LLVMRunPasses(module, passes, machine, options);
        LLVMDisposePassBuilderOptions(options);
        if (error) return codegen_error("LLVM passes failed: " + take_error(error));
    }
    reported.clear();
    LLVMMemoryBufferRef buffer = nullptr;
    if (LLVMTargetMachineEmitToMemoryBuffer(machine, module, LLVMObjectFile, &message, &buffer)) {
        std::string text = message;
        LLVMDisposeMessage(message);
        return codegen_error("LLVM could not emit code: " + text);
    }
    const char* start = LLVMGetBufferStart(buffer);
    std::vector<char> bytes(start, start + LLVMGetBufferSize(buffer));
    LLVMDisposeMemoryBuffer(buffer);
    if (!reported.empty()) return codegen_error("LLVM could not emit code: " + std::exchange(reported, {}));
    return bytes;
}

void* LoadedObject::lookup(std::string_view symbol) const {
    if (!state_) return nullptr;
    auto position = state_->addresses.find(std::string(symbol));
    return position == state_->addresses.end() ? nullptr : position->second;
}

Expected<LoadedObject> load_object(std::span<const char> bytes) {
    ObjectSymbols symbols;
    if (!read_symbols(bytes, symbols)) return codegen_error("the bytes are not a relocatable object");
    Linker& linker = Linker::instance();
    for (const std::string& name : symbols.undefined) {
        if (!name.empty() && name != "_GLOBAL_OFFSET_TABLE_")
            return codegen_error("the object needs '" + name + "', which is not in it");
    }
    auto state = std::make_shared<LoadedObject::State>();
    LLVMOrcJITDylibRef dylib = linker.acquire();
    state->dylib = dylib;
    state->tracker = LLVMOrcJITDylibCreateResourceTracker(dylib);
    reported.clear();
    LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(bytes.data(), bytes.size(), "object");
    if (LLVMErrorRef error = LLVMOrcLLJITAddObjectFileWithRT(linker.jit(), state->tracker, buffer)) {
        return codegen_error("could not link an object: " + take_error(error));
    }
    std::vector<LLVMOrcCLookupSetElement> wanted;
    for (const std::string& name : symbols.defined) {
        wanted.push_back(
            {LLVMOrcExecutionSessionIntern(linker.session(), name.c_str()), LLVMOrcSymbolLookupFlagsRequiredSymbol});
    }
    // The lookup takes over the interned names. It completes in this call: no compile threads exist.
    LLVMOrcCJITDylibSearchOrderElement order{dylib, LLVMOrcJITDylibLookupFlagsMatchExportedSymbolsOnly};
    LookupResult result;
    result.addresses = &state->addresses;
    LLVMOrcExecutionSessionLookup(linker.session(), LLVMOrcLookupKindStatic, &order, 1, wanted.data(), wanted.size(),
                                  take_lookup, &result);
    if (result.error) return codegen_error("could not link an object: " + take_error(result.error));
    LoadedObject object;
    object.state_ = std::move(state);
    return object;
}

Expected<LoadedObject> compile(LLVMModuleRef module, const char* passes) {
    Expected<std::vector<char>> bytes = emit_object(module, passes);
    if (!bytes) return std::move(bytes).error();
    return load_object(*bytes);
}

std::string print_module(LLVMModuleRef module) {
    char* text = LLVMPrintModuleToString(module);
    std::string result = text;
    LLVMDisposeMessage(text);
    return result;
}

}  // namespace flexor::codegen::cpu_llvm
