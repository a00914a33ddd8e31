#include "codegen/cpu_llvm/ir.h"

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace flexor::codegen::cpu_llvm {

int Ir::lanes(Type t) { return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? static_cast<int>(LLVMGetVectorSize(t)) : 1; }

Type Ir::element(Type t) { return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetElementType(t) : t; }

Type Ir::bits_type(Type t) const {
    switch (LLVMGetTypeKind(element(t))) {
        case LLVMHalfTypeKind:
        case LLVMBFloatTypeKind: return with_element(t, i16());
        case LLVMFloatTypeKind: return with_element(t, i32());
        case LLVMDoubleTypeKind: return with_element(t, i64());
        default: return t;
    }
}

Value Ir::splat(Type t, Value scalar_constant) const {
    const int n = lanes(t);
    if (n == 1) return scalar_constant;
    std::vector<Value> all(static_cast<size_t>(n), scalar_constant);
    return LLVMConstVector(all.data(), static_cast<unsigned>(n));
}

bool Ir::is_number(Value v) {
    if (!LLVMIsConstant(v) || LLVMIsPoison(v)) return false;
    Value e = lanes(v) == 1 ? v : LLVMGetAggregateElement(v, 0);
    if (!e || !LLVMIsAConstantFP(e)) return false;
    LLVMBool loses = 0;
    const double d = LLVMConstRealGetDouble(e, &loses);
    return d == d;
}

Value Ir::infinity(Type t, bool negative) const {
    const double inf = std::numeric_limits<double>::infinity();
    return fp(t, negative ? -inf : inf);
}

Value Ir::nan(Type t) const { return fp(t, std::numeric_limits<double>::quiet_NaN()); }

Value Ir::fma(Value a, Value b, Value c) {
    if (!target().has_fma) return fadd(fmul(a, b), c);
    return intrinsic("llvm.fma", {type_of(a)}, {a, b, c});
}

Value Ir::fnma(Value a, Value b, Value c) { return fma(fneg(a), b, c); }

Value Ir::table_beside(Value x, std::span<const double> numbers) {
    const Type t = type_of(x);
    std::vector<Value> rows;
    for (double number : numbers) rows.push_back(fp(t, number));
    Value data = LLVMConstArray2(t, rows.data(), rows.size());
    Value table = LLVMAddGlobal(module_, type_of(data), "coefficients");
    LLVMSetInitializer(table, data);
    LLVMSetGlobalConstant(table, 1);
    LLVMSetLinkage(table, LLVMPrivateLinkage);
    LLVMSetUnnamedAddress(table, LLVMGlobalUnnamedAddr);
    const std::array<Type, 2> parameters = {type_of(table), t};
    const Type signature = LLVMFunctionType(type_of(table), const_cast<Type*>(parameters.data()), 2, 0);
    std::array<Value, 2> arguments = {table, x};
    const std::string_view constraints = "=r,0,x";
    Value nothing =
        LLVMGetInlineAsm(signature, "", 0, constraints.data(), constraints.size(), 0, 0, LLVMInlineAsmDialectATT, 0);
    return LLVMBuildCall2(builder_, signature, nothing, arguments.data(), 2, "");
}

Value Ir::polynomial(Value x, std::span<const double> coefficients) {
    const HostTarget& host = target();
    const int width = lanes(x) * (is_double(x) ? 64 : 32);
    const bool narrow = host.is_x86 && host.has_fma && !host.has_avx512 && (width == 128 || width == 256);
    const size_t count = coefficients.size();
    Value table = narrow && count >= 4 ? table_beside(x, coefficients) : nullptr;
    auto coefficient = [&](size_t i) {
        if (!table) return fp(type_of(x), coefficients[i]);
        Value at = index(static_cast<int64_t>(i));
        Value row =
            LLVMBuildLoad2(builder_, type_of(x), LLVMBuildInBoundsGEP2(builder_, type_of(x), table, &at, 1, ""), "");
        LLVMSetAlignment(row, static_cast<unsigned>(width / 8));
        return row;
    };
    // These cores have a short window for unfinished instructions: a long chain of dependent steps would leave the
    // units idle, so it is cut into 2 or 4 that run side by side. A double keeps the rounding of one chain.
    const size_t chains = !narrow || is_double(x) || count < 6 ? 1 : count < 12 ? 2 : 4;
    Value step = x;  // x^chains
    Value square = nullptr;
    if (chains >= 2) step = square = fmul(x, x);
    if (chains == 4) step = fmul(square, square);
    std::array<Value, 4> part{};
    for (size_t c = 0; c < chains; ++c) {
        size_t i = c + (count - 1 - c) / chains * chains;
        part[c] = coefficient(i);
        for (; i >= chains; i -= chains) part[c] = fma(part[c], step, coefficient(i - chains));
    }
    for (size_t c = 0; c + 1 < chains; c += 2) part[c] = fma(part[c + 1], x, part[c]);
    return chains == 4 ? fma(part[2], square, part[0]) : part[0];
}

Value Ir::clamp(Value x, double low, double high) {
    Value bounded = max_second(fp(type_of(x), low), x);
    return min_second(fp(type_of(x), high), bounded);
}

Value Ir::any(Value mask) { return lanes(mask) == 1 ? mask : unary("llvm.vector.reduce.or", mask); }

Value Ir::zext(Value a, Type element_type) {
    return LLVMBuildZExt(builder_, a, with_element(type_of(a), element_type), "");
}
Value Ir::sext(Value a, Type element_type) {
    return LLVMBuildSExt(builder_, a, with_element(type_of(a), element_type), "");
}
Value Ir::trunc(Value a, Type element_type) {
    return LLVMBuildTrunc(builder_, a, with_element(type_of(a), element_type), "");
}
Value Ir::sitofp(Value a, Type element_type) {
    return LLVMBuildSIToFP(builder_, a, with_element(type_of(a), element_type), "");
}
Value Ir::uitofp(Value a, Type element_type) {
    return LLVMBuildUIToFP(builder_, a, with_element(type_of(a), element_type), "");
}
Value Ir::fpext(Value a, Type element_type) {
    return LLVMBuildFPExt(builder_, a, with_element(type_of(a), element_type), "");
}
Value Ir::fptrunc(Value a, Type element_type) {
    return LLVMBuildFPTrunc(builder_, a, with_element(type_of(a), element_type), "");
}
Value Ir::fptosi(Value a, Type element_type) {
    return LLVMBuildFreeze(builder_, LLVMBuildFPToSI(builder_, a, with_element(type_of(a), element_type), ""), "");
}

Value Ir::broadcast(Value scalar, int lane_count) {
    if (lane_count == 1) return scalar;
    const Type t = vec(type_of(scalar), lane_count);
    Value one = LLVMBuildInsertElement(builder_, LLVMGetPoison(t), scalar, integer(i64(), 0), "");
    return LLVMBuildShuffleVector(builder_, one, LLVMGetPoison(t), LLVMConstNull(vec(i32(), lane_count)), "");
}

Value Ir::extract(Value vector, int lane) {
    return lanes(vector) == 1 ? vector : extract(vector, integer(i64(), lane));
}

Value Ir::slice(Value vector, int first_lane, int lane_count) {
    if (lane_count == lanes(vector)) return vector;
    if (lane_count == 1) return extract(vector, first_lane);
    std::vector<Value> mask;
    for (int i = 0; i < lane_count; ++i) mask.push_back(integer(i32(), first_lane + i));
    return LLVMBuildShuffleVector(builder_, vector, LLVMGetPoison(type_of(vector)),
                                  LLVMConstVector(mask.data(), static_cast<unsigned>(lane_count)), "");
}

Value Ir::concat(std::span<const Value> parts) {
    std::vector<Value> level(parts.begin(), parts.end());
    while (level.size() > 1) {
        std::vector<Value> next;
        for (size_t i = 0; i + 1 < level.size(); i += 2) {
            const int n = lanes(level[i]);
            std::vector<Value> mask;
            for (int k = 0; k < 2 * n; ++k) mask.push_back(integer(i32(), k));
            next.push_back(LLVMBuildShuffleVector(builder_, level[i], level[i + 1],
                                                  LLVMConstVector(mask.data(), static_cast<unsigned>(2 * n)), ""));
        }
        level = std::move(next);
    }
    return level[0];
}

Value Ir::iota(Type t) const {
    const int n = lanes(t);
    if (n == 1) return integer(t, 0);
    std::vector<Value> all;
    for (int i = 0; i < n; ++i) all.push_back(integer(element(t), i));
    return LLVMConstVector(all.data(), static_cast<unsigned>(n));
}

Value Ir::intrinsic(std::string_view name, std::initializer_list<Type> overloads,
                    std::initializer_list<Value> arguments) {
    const unsigned id = LLVMLookupIntrinsicID(name.data(), name.size());
    std::array<Type, 4> types{};
    size_t n = 0;
    for (Type t : overloads) types[n++] = t;
    Value function = LLVMGetIntrinsicDeclaration(module_, id, types.data(), n);
    return call(function, arguments);
}

Value Ir::call(Value function, std::initializer_list<Value> arguments) {
    std::array<Value, 16> list{};
    unsigned n = 0;
    for (Value v : arguments) list[n++] = v;
    return LLVMBuildCall2(builder_, LLVMGlobalGetValueType(function), function, list.data(), n, "");
}

void Ir::add_attribute(Value function, const char* name) {
    const unsigned kind = LLVMGetEnumAttributeKindForName(name, std::string_view(name).size());
    LLVMAddAttributeAtIndex(function, static_cast<LLVMAttributeIndex>(LLVMAttributeFunctionIndex),
                            LLVMCreateEnumAttribute(context_, kind, 0));
}

Value Ir::begin_function(const char* name, Type result, std::initializer_list<Type> parameters, bool is_private) {
    std::array<Type, 16> list{};
    unsigned n = 0;
    for (Type t : parameters) list[n++] = t;
    Value function = LLVMAddFunction(module_, name, LLVMFunctionType(result, list.data(), n, 0));
    if (is_private) LLVMSetLinkage(function, LLVMInternalLinkage);
    add_function_attributes(function);
    saved_[depth_++] = LLVMGetInsertBlock(builder_);
    at_end_of(LLVMAppendBasicBlockInContext(context_, function, "entry"));
    return function;
}

void Ir::end_function() {
    Block back = saved_[--depth_];
    if (back) at_end_of(back);
}

}  // namespace flexor::codegen::cpu_llvm
