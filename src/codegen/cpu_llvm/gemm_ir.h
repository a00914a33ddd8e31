// A thin shorthand over the LLVM C API for the hand-written kernels of this folder: loops over carried accumulators
// (GEMM tiles, packing, attention rows). It owns nothing.
#pragma once

#include <llvm-c/Core.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "codegen/cpu_llvm/host.h"
#include "codegen/cpu_llvm/jit.h"

namespace flexor::codegen::cpu_llvm {

using V = LLVMValueRef;
using Ty = LLVMTypeRef;

struct TileIr {
    explicit TileIr(const ModuleBuilder& owner)
        : context(owner.context()), module(owner.module()), builder(owner.builder()) {
        i1 = LLVMInt1TypeInContext(context);
        i8 = LLVMInt8TypeInContext(context);
        i16 = LLVMInt16TypeInContext(context);
        i32 = LLVMInt32TypeInContext(context);
        i64 = LLVMInt64TypeInContext(context);
        f16 = LLVMHalfTypeInContext(context);
        bf16 = LLVMBFloatTypeInContext(context);
        f32 = LLVMFloatTypeInContext(context);
        f64 = LLVMDoubleTypeInContext(context);
        ptr = LLVMPointerTypeInContext(context, 0);
        none = LLVMVoidTypeInContext(context);
    }

    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    Ty i1, i8, i16, i32, i64, f16, bf16, f32, f64, ptr, none;

    V int64(int64_t value) const { return LLVMConstInt(i64, static_cast<unsigned long long>(value), 1); }
    V int32(int64_t value) const { return LLVMConstInt(i32, static_cast<unsigned long long>(value), 1); }
    V real(Ty type, double value) const { return LLVMConstReal(type, value); }
    static Ty vec(Ty element, int lanes) { return LLVMVectorType(element, static_cast<unsigned>(lanes)); }

    V add(V a, V b) const { return LLVMBuildAdd(builder, a, b, ""); }
    V sub(V a, V b) const { return LLVMBuildSub(builder, a, b, ""); }
    V mul(V a, V b) const { return LLVMBuildMul(builder, a, b, ""); }
    V fadd(V a, V b) const { return LLVMBuildFAdd(builder, a, b, ""); }
    V fsub(V a, V b) const { return LLVMBuildFSub(builder, a, b, ""); }
    V fmul(V a, V b) const { return LLVMBuildFMul(builder, a, b, ""); }
    V icmp(LLVMIntPredicate p, V a, V b) const { return LLVMBuildICmp(builder, p, a, b, ""); }
    V fcmp(LLVMRealPredicate p, V a, V b) const { return LLVMBuildFCmp(builder, p, a, b, ""); }
    V select(V c, V a, V b) const { return LLVMBuildSelect(builder, c, a, b, ""); }

    // base + index elements of `type`.
    V at(Ty type, V base, V index) const { return LLVMBuildGEP2(builder, type, base, &index, 1, ""); }
    V at(Ty type, V base, int64_t index) const { return at(type, base, int64(index)); }
    V load(Ty type, V address, unsigned align) const {
        V value = LLVMBuildLoad2(builder, type, address, "");
        LLVMSetAlignment(value, align);
        return value;
    }
    void store(V value, V address, unsigned align) const {
        LLVMSetAlignment(LLVMBuildStore(builder, value, address), align);
    }

    V splat(V scalar, int lanes) const {
        Ty type = vec(LLVMTypeOf(scalar), lanes);
        V one = LLVMBuildInsertElement(builder, LLVMGetPoison(type), scalar, int32(0), "");
        return LLVMBuildShuffleVector(builder, one, LLVMGetPoison(type), LLVMConstNull(vec(i32, lanes)), "");
    }
    V shuffle(V a, V b, const std::vector<int>& mask) const {
        std::vector<V> lanes;
        for (int lane : mask) lanes.push_back(lane < 0 ? LLVMGetPoison(i32) : int32(lane));
        return LLVMBuildShuffleVector(builder, a, b, LLVMConstVector(lanes.data(), static_cast<unsigned>(lanes.size())),
                                      "");
    }

    // A call of the intrinsic `name`, overloaded on `types`.
    V intrinsic(const std::string& name, std::initializer_list<Ty> types, std::initializer_list<V> arguments) const {
        unsigned id = LLVMLookupIntrinsicID(name.c_str(), name.size());
        std::vector<Ty> overloads(types);
        std::vector<V> values(arguments);
        V function = LLVMGetIntrinsicDeclaration(module, id, overloads.data(), overloads.size());
        Ty type = LLVMIntrinsicGetType(context, id, overloads.data(), overloads.size());
        return LLVMBuildCall2(builder, type, function, values.data(), static_cast<unsigned>(values.size()), "");
    }
    // a * b + c, fused where the host can.
    V fma(V a, V b, V c) const {
        return intrinsic(host_target().has_fma ? "llvm.fma" : "llvm.fmuladd", {LLVMTypeOf(a)}, {a, b, c});
    }

    // Returns `value`, which is computed before this point; later loads stay behind it. Without such points the
    // scheduler gathers the loads of many steps at their front and spills the accumulators.
    V pin(V value) const {
        Ty type = LLVMTypeOf(value);
        Ty function_type = LLVMFunctionType(type, &type, 1, 0);
        const HostTarget& host = host_target();
        std::string constraint = !host.is_x86      ? "=w,0,~{memory}"
                                 : host.has_avx512 ? "=v,0,~{memory}"
                                                   : "=x,0,~{memory}";
        V nothing = LLVMGetInlineAsm(function_type, "", 0, constraint.c_str(), constraint.size(), 1, 0,
                                     LLVMInlineAsmDialectATT, 0);
        return LLVMBuildCall2(builder, function_type, nothing, &value, 1, "");
    }

    // Declares a function whose generated body follows; the builder stands at its entry.
    V function(const std::string& name, Ty result, std::initializer_list<Ty> parameters) const {
        std::vector<Ty> types(parameters);
        Ty type = LLVMFunctionType(result, types.data(), static_cast<unsigned>(types.size()), 0);
        V f = LLVMAddFunction(module, name.c_str(), type);
        add_function_attributes(f);
        position(block(f, "entry"));
        return f;
    }
    LLVMBasicBlockRef block(V f, const char* name) const { return LLVMAppendBasicBlockInContext(context, f, name); }
    LLVMBasicBlockRef here() const { return LLVMGetInsertBlock(builder); }
    void position(LLVMBasicBlockRef target) const { LLVMPositionBuilderAtEnd(builder, target); }
    V current_function() const { return LLVMGetBasicBlockParent(here()); }

    // for (i = begin; i + step <= end; i += step) carried = body(i, carried). Returns the carried values after the loop
    // and leaves `next` = the first i not taken.
    using Values = std::vector<V>;
    Values loop(V begin, V end, int64_t step, Values carried, const std::function<Values(V, Values)>& body,
                V* next = nullptr) const {
        V f = current_function();
        LLVMBasicBlockRef before = here();
        LLVMBasicBlockRef head = block(f, "head");
        LLVMBasicBlockRef inside = block(f, "body");
        LLVMBasicBlockRef after = block(f, "after");
        V limit = sub(end, int64(step));
        LLVMBuildBr(builder, head);
        position(head);
        V i = LLVMBuildPhi(builder, i64, "i");
        Values phis;
        for (V value : carried) phis.push_back(LLVMBuildPhi(builder, LLVMTypeOf(value), ""));
        LLVMBuildCondBr(builder, icmp(LLVMIntSLE, i, limit), inside, after);
        position(inside);
        Values results = body(i, phis);
        V i_next = add(i, int64(step));
        LLVMBuildBr(builder, head);
        LLVMBasicBlockRef latch = here();
        auto connect = [&](V phi, V first, V second) {
            V values[2] = {first, second};
            LLVMBasicBlockRef blocks[2] = {before, latch};
            LLVMAddIncoming(phi, values, blocks, 2);
        };
        connect(i, begin, i_next);
        for (size_t n = 0; n < phis.size(); ++n) connect(phis[n], carried[n], results[n]);
        position(after);
        if (next) *next = i;
        return phis;
    }
};

}  // namespace flexor::codegen::cpu_llvm
