#include "codegen/cpu_llvm/host.h"

#include <llvm-c/TargetMachine.h>

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "support/environment.h"

namespace flexor::codegen::cpu_llvm {
namespace {

std::string take_message(char* text) {
    std::string result = text;
    LLVMDisposeMessage(text);
    return result;
}

// The matrix unit's registers are large, so Linux gives them on request only; threads started later inherit the right.
bool request_matrix_unit() {
#if defined(__linux__) && defined(__x86_64__)
    constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
    constexpr long kTileData = 18;
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
    return false;
#endif
}

HostTarget detect() {
    HostTarget host;
    host.triple = take_message(LLVMGetDefaultTargetTriple());
    host.cpu = take_message(LLVMGetHostCPUName());
    host.features = take_message(LLVMGetHostCPUFeatures());
    host.is_x86 = host.triple.starts_with("x86_64");
    int width = 128;
    if (host.has("avx2") && host.has("fma")) width = 256;
    if (width == 256 && host.has("avx512f") && host.has("avx512bw") && host.has("avx512dq") && host.has("avx512vl")) {
        width = 512;
    }
    // A value that makes no sense is refused by the Session.
    if (const auto cap = support::vector_bits_from_environment(); cap && *cap) width = std::min(width, **cap);
    host.vector_bits = width;
    host.has_fma = !host.is_x86 || host.has("fma");
    host.has_avx512 = width == 512;
    host.has_avx512bf16 = width == 512 && host.has("avx512bf16");
    host.has_amx_bf16 = host.has_avx512bf16 && host.has("amx-tile") && host.has("amx-bf16") && request_matrix_unit();
    host.has_f16c = host.has("f16c");
    return host;
}

}  // namespace

bool HostTarget::has(std::string_view feature) const {
    std::string_view rest = features;
    while (!rest.empty()) {
        size_t comma = rest.find(',');
        std::string_view item = rest.substr(0, comma);
        if (item.size() == feature.size() + 1 && item[0] == '+' && item.substr(1) == feature) return true;
        if (comma == std::string_view::npos) break;
        rest.remove_prefix(comma + 1);
    }
    return false;
}

const HostTarget& host_target() {
    static const HostTarget& host = *new HostTarget(detect());
    return host;
}

void add_function_attributes(LLVMValueRef function) {
    const HostTarget& host = host_target();
    LLVMContextRef context = LLVMGetTypeContext(LLVMTypeOf(function));
    auto add = [&](const char* key, const std::string& value) {
        LLVMAttributeRef attribute = LLVMCreateStringAttribute(context, key, static_cast<unsigned>(std::strlen(key)),
                                                               value.data(), static_cast<unsigned>(value.size()));
        LLVMAddAttributeAtIndex(function, LLVMAttributeFunctionIndex, attribute);
    };
    add("target-cpu", host.cpu);
    add("target-features", host.features);
    add("prefer-vector-width", std::to_string(host.vector_bits));
    add("min-legal-vector-width", std::to_string(host.vector_bits));
    unsigned nounwind = LLVMGetEnumAttributeKindForName("nounwind", 8);
    LLVMAddAttributeAtIndex(function, LLVMAttributeFunctionIndex, LLVMCreateEnumAttribute(context, nounwind, 0));
}

}  // namespace flexor::codegen::cpu_llvm
