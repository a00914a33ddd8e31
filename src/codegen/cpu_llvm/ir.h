// A thin, typed layer over LLVM's C instruction builder: scalar and vector values of any lane count share one set of
// calls.
//
// Promises: nothing here lowers to a library call on a host with SSE4.1; constants are splat to the asked type; nothing
// is marked fast-math, so every result has the rounding that the call names (fma on a host without FMA excepted: it
// rounds twice there). The caller owns context, module and builder.
#pragma once

#include <llvm-c/Core.h>

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "codegen/cpu_llvm/host.h"

namespace flexor::codegen::cpu_llvm {

using Value = LLVMValueRef;
using Type = LLVMTypeRef;
using Block = LLVMBasicBlockRef;

class Ir {
public:
    Ir(LLVMContextRef context, LLVMModuleRef module, LLVMBuilderRef builder)
        : context_(context), module_(module), builder_(builder) {}
    Ir(const Ir&) = delete;
    Ir& operator=(const Ir&) = delete;

    LLVMContextRef context() const { return context_; }
    LLVMModuleRef module() const { return module_; }
    LLVMBuilderRef builder() const { return builder_; }
    static const HostTarget& target() { return host_target(); }

    // Types. vec(t, 1) is t itself.
    Type i1() const { return LLVMInt1TypeInContext(context_); }
    Type i8() const { return LLVMInt8TypeInContext(context_); }
    Type i16() const { return LLVMInt16TypeInContext(context_); }
    Type i32() const { return LLVMInt32TypeInContext(context_); }
    Type i64() const { return LLVMInt64TypeInContext(context_); }
    Type int_type(int bits) const { return LLVMIntTypeInContext(context_, static_cast<unsigned>(bits)); }
    Type f16() const { return LLVMHalfTypeInContext(context_); }
    Type f32() const { return LLVMFloatTypeInContext(context_); }
    Type f64() const { return LLVMDoubleTypeInContext(context_); }
    Type ptr() const { return LLVMPointerTypeInContext(context_, 0); }
    Type void_type() const { return LLVMVoidTypeInContext(context_); }
    Type vec(Type element, int lanes) const {
        return lanes == 1 ? element : LLVMVectorType(element, static_cast<unsigned>(lanes));
    }
    static Type type_of(Value v) { return LLVMTypeOf(v); }
    static int lanes(Type t);
    static int lanes(Value v) { return lanes(type_of(v)); }
    static Type element(Type t);
    static Type element(Value v) { return element(type_of(v)); }
    static bool is_double(Value v) { return LLVMGetTypeKind(element(v)) == LLVMDoubleTypeKind; }
    static bool is_float(Value v) { return LLVMGetTypeKind(element(v)) == LLVMFloatTypeKind; }
    static int int_bits(Value v) { return static_cast<int>(LLVMGetIntTypeWidth(element(v))); }
    // The type of `like` with its element replaced.
    Type with_element(Type like, Type new_element) const { return vec(new_element, lanes(like)); }
    // The integer type with the width of the float type `t`, same lanes.
    Type bits_type(Type t) const;

    // Integer constants, for folding at once what later passes would fold.
    static bool is_zero(Value v) { return LLVMIsConstant(v) && LLVMIsNull(v); }
    static bool is_one(Value v) { return LLVMIsAConstantInt(v) && LLVMConstIntGetZExtValue(v) == 1; }
    // A floating constant (splat or scalar) that is not NaN.
    static bool is_number(Value v);

    // Constants, splat over the lanes of `t`.
    Value splat(Type t, Value scalar_constant) const;
    Value fp(Type t, double value) const { return splat(t, LLVMConstReal(element(t), value)); }
    Value integer(Type t, int64_t value) const {
        return splat(t, LLVMConstInt(element(t), static_cast<unsigned long long>(value), 1));
    }
    Value index(int64_t value) const { return integer(i64(), value); }
    Value infinity(Type t, bool negative = false) const;
    Value nan(Type t) const;

    // Floating arithmetic, each rounded once.
    Value fadd(Value a, Value b) { return LLVMBuildFAdd(builder_, a, b, ""); }
    Value fsub(Value a, Value b) { return LLVMBuildFSub(builder_, a, b, ""); }
    Value fmul(Value a, Value b) { return LLVMBuildFMul(builder_, a, b, ""); }
    Value fdiv(Value a, Value b) { return LLVMBuildFDiv(builder_, a, b, ""); }
    Value fneg(Value a) { return LLVMBuildFNeg(builder_, a, ""); }
    Value fma(Value a, Value b, Value c);   // a*b + c
    Value fnma(Value a, Value b, Value c);  // c - a*b
    Value fma(Value a, double b, Value c) { return fma(a, fp(type_of(a), b), c); }
    Value fma(Value a, Value b, double c) { return fma(a, b, fp(type_of(a), c)); }
    Value fma(Value a, double b, double c) { return fma(a, fp(type_of(a), b), fp(type_of(a), c)); }
    Value fadd(Value a, double b) { return fadd(a, fp(type_of(a), b)); }
    Value fsub(Value a, double b) { return fsub(a, fp(type_of(a), b)); }
    Value fmul(Value a, double b) { return fmul(a, fp(type_of(a), b)); }
    Value fabs(Value a) { return unary("llvm.fabs", a); }
    Value sqrt(Value a) { return unary("llvm.sqrt", a); }
    Value copysign(Value magnitude, Value sign) { return binary("llvm.copysign", magnitude, sign); }
    // c[0] + c[1] x + c[2] x^2 + ...
    Value polynomial(Value x, std::span<const double> coefficients);
    // A table in memory with one splat of x's type a number. Its address seems to depend on x, so that loads from it
    // stay beside their uses and become memory operands: hoisted, they would fill the 16 registers and be spilled.
    Value table_beside(Value x, std::span<const double> numbers);

    // Integer arithmetic, wrapping.
    Value add(Value a, Value b) { return is_zero(b) ? a : is_zero(a) ? b : LLVMBuildAdd(builder_, a, b, ""); }
    Value sub(Value a, Value b) { return LLVMBuildSub(builder_, a, b, ""); }
    Value mul(Value a, Value b) { return is_one(b) ? a : is_one(a) ? b : LLVMBuildMul(builder_, a, b, ""); }
    template <std::integral I>
    Value add(Value a, I b) {
        return add(a, integer(type_of(a), static_cast<int64_t>(b)));
    }
    template <std::integral I>
    Value sub(Value a, I b) {
        return sub(a, integer(type_of(a), static_cast<int64_t>(b)));
    }
    template <std::integral I>
    Value mul(Value a, I b) {
        return mul(a, integer(type_of(a), static_cast<int64_t>(b)));
    }
    Value bit_and(Value a, Value b) { return LLVMBuildAnd(builder_, a, b, ""); }
    Value bit_or(Value a, Value b) { return LLVMBuildOr(builder_, a, b, ""); }
    Value bit_xor(Value a, Value b) { return LLVMBuildXor(builder_, a, b, ""); }
    Value bit_not(Value a) { return LLVMBuildNot(builder_, a, ""); }
    template <std::integral I>
    Value bit_and(Value a, I b) {
        return bit_and(a, integer(type_of(a), static_cast<int64_t>(b)));
    }
    template <std::integral I>
    Value bit_or(Value a, I b) {
        return bit_or(a, integer(type_of(a), static_cast<int64_t>(b)));
    }
    Value shl(Value a, Value b) { return LLVMBuildShl(builder_, a, b, ""); }
    Value lshr(Value a, Value b) { return LLVMBuildLShr(builder_, a, b, ""); }
    Value ashr(Value a, Value b) { return LLVMBuildAShr(builder_, a, b, ""); }
    template <std::integral I>
    Value shl(Value a, I b) {
        return shl(a, integer(type_of(a), static_cast<int64_t>(b)));
    }
    template <std::integral I>
    Value lshr(Value a, I b) {
        return lshr(a, integer(type_of(a), static_cast<int64_t>(b)));
    }
    template <std::integral I>
    Value ashr(Value a, I b) {
        return ashr(a, integer(type_of(a), static_cast<int64_t>(b)));
    }

    // Comparison and choice.
    Value fcmp(LLVMRealPredicate p, Value a, Value b) { return LLVMBuildFCmp(builder_, p, a, b, ""); }
    Value fcmp(LLVMRealPredicate p, Value a, double b) { return fcmp(p, a, fp(type_of(a), b)); }
    Value icmp(LLVMIntPredicate p, Value a, Value b) { return LLVMBuildICmp(builder_, p, a, b, ""); }
    template <std::integral I>
    Value icmp(LLVMIntPredicate p, Value a, I b) {
        return icmp(p, a, integer(type_of(a), static_cast<int64_t>(b)));
    }
    Value select(Value condition, Value yes, Value no) { return LLVMBuildSelect(builder_, condition, yes, no, ""); }
    Value is_nan(Value a) { return fcmp(LLVMRealUNO, a, a); }
    // One instruction each on x86: the second operand wins if either is NaN (MAXPS, MINPS).
    Value max_second(Value a, Value b) { return select(fcmp(LLVMRealOGT, a, b), a, b); }
    Value min_second(Value a, Value b) { return select(fcmp(LLVMRealOLT, a, b), a, b); }
    // Clamps and keeps NaN.
    Value clamp(Value x, double low, double high);
    // True if any lane of an i1 vector is set.
    Value any(Value mask);

    // Conversions without rounding decisions of their own.
    Value bitcast(Value a, Type t) { return LLVMBuildBitCast(builder_, a, t, ""); }
    Value to_bits(Value a) { return bitcast(a, bits_type(type_of(a))); }
    Value zext(Value a, Type element_type);
    Value sext(Value a, Type element_type);
    Value trunc(Value a, Type element_type);
    Value sitofp(Value a, Type element_type);
    Value uitofp(Value a, Type element_type);
    Value fpext(Value a, Type element_type);
    Value fptrunc(Value a, Type element_type);
    // Truncation toward zero. A value out of range gives an unspecified integer, never undefined behaviour.
    Value fptosi(Value a, Type element_type);

    // Vectors.
    Value broadcast(Value scalar, int lane_count);
    Value extract(Value vector, int lane);
    Value extract(Value vector, Value lane) { return LLVMBuildExtractElement(builder_, vector, lane, ""); }
    Value insert(Value vector, Value scalar, Value lane) {
        return LLVMBuildInsertElement(builder_, vector, scalar, lane, "");
    }
    Value slice(Value vector, int first_lane, int lane_count);
    Value concat(std::span<const Value> parts);
    // 0, 1, 2, ... in the element type given (integer).
    Value iota(Type t) const;

    // Aggregates.
    Value field(Value aggregate, int i) {
        return LLVMBuildExtractValue(builder_, aggregate, static_cast<unsigned>(i), "");
    }
    Value with_field(Value aggregate, Value v, int i) {
        return LLVMBuildInsertValue(builder_, aggregate, v, static_cast<unsigned>(i), "");
    }

    // Control flow.
    Block block_here() const { return LLVMGetInsertBlock(builder_); }
    Value function_here() const { return LLVMGetBasicBlockParent(block_here()); }
    Block new_block(const char* name) { return LLVMAppendBasicBlockInContext(context_, function_here(), name); }
    void at_end_of(Block b) { LLVMPositionBuilderAtEnd(builder_, b); }
    void jump(Block b) { LLVMBuildBr(builder_, b); }
    void branch(Value condition, Block yes, Block no) { LLVMBuildCondBr(builder_, condition, yes, no); }
    Value phi(Type t) { return LLVMBuildPhi(builder_, t, ""); }
    static void incoming(Value phi, Value v, Block from) { LLVMAddIncoming(phi, &v, &from, 1); }
    void ret(Value v) { LLVMBuildRet(builder_, v); }
    void ret() { LLVMBuildRetVoid(builder_); }

    // Intrinsics and calls.
    Value intrinsic(std::string_view name, std::initializer_list<Type> overloads,
                    std::initializer_list<Value> arguments);
    Value unary(std::string_view name, Value a) { return intrinsic(name, {type_of(a)}, {a}); }
    Value binary(std::string_view name, Value a, Value b) { return intrinsic(name, {type_of(a)}, {a, b}); }
    Value call(Value function, std::initializer_list<Value> arguments);

    // A function of this module with the host's attributes. Its body is written between begin_function (which moves the
    // builder to its entry block) and end_function (which moves it back). Functions may be begun inside one another.
    Value begin_function(const char* name, Type result, std::initializer_list<Type> parameters, bool is_private);
    void end_function();
    Value find_function(const char* name) const { return LLVMGetNamedFunction(module_, name); }
    static Value param(Value function, int i) { return LLVMGetParam(function, static_cast<unsigned>(i)); }
    void add_attribute(Value function, const char* name);

private:
    LLVMContextRef context_;
    LLVMModuleRef module_;
    LLVMBuilderRef builder_;
    static constexpr int kMaxNesting = 4;
    Block saved_[kMaxNesting] = {};
    int depth_ = 0;
};

}  // namespace flexor::codegen::cpu_llvm
