#include "bytecode/type_text.h"

#include <algorithm>

#include "support/diagnostic.h"
#include "support/text.h"

namespace flexor::bytecode {
namespace {

// "x_1" for axis 1 of parameter x.
std::string symbol_stem(const ParamDecl& param) {
    std::string stem = is_identifier(param.name) ? param.name : "dim";
    for (char& c : stem) c = c == '.' ? '_' : c;
    return stem + "_" + std::to_string(param.dims.size());
}

Status parse_dims(Cursor& cursor, const TypeSymbols& symbols, ParamDecl* param) {
    FLEXOR_TRY(cursor.expect("["));
    if (cursor.accept("...") || cursor.accept("..")) {
        param->any_rank = true;
        return cursor.expect("]");
    }
    while (!cursor.at("]")) {
        if (param->dims.size() == kMaxRank) return cursor.unexpected("a rank of at most " + std::to_string(kMaxRank));
        const bool frozen = cursor.at_name("FROZEN");
        if (frozen) cursor.next();
        // FROZEN without a dim, and '?', stand for a symbol that nothing else names.
        const bool anonymous = cursor.accept("?") || (frozen && (cursor.at(",") || cursor.at("]")));
        if (anonymous) {
            param->dims.push_back(types::Dim::symbol(symbols.fresh(symbol_stem(*param))));
        } else {
            const std::string where = cursor.where();
            FLEXOR_ASSIGN(types::Dim dim, parse_dim(cursor, symbols.named));
            if (dim.is_constant() && dim.constant() < 0) {
                return Diagnostic(DiagnosticId::kBadLiteral)
                    .source(where)
                    .found(std::to_string(dim.constant()))
                    .expected("a size");
            }
            param->dims.push_back(std::move(dim));
        }
        param->frozen.push_back(frozen);
        if (!cursor.accept(",")) break;
    }
    return cursor.expect("]");
}

}  // namespace

Expected<DType> parse_dtype(Cursor& cursor) {
    const std::string_view word = cursor.peek().text;
    std::vector<std::string_view> names;
    for (int d = 0; d < kDTypeCount; ++d) {
        const auto candidate = static_cast<DType>(d);
        names.push_back(dtype_name(candidate));
        if (cursor.peek().kind == TokenKind::kName && word == names.back()) {
            cursor.next();
            return candidate;
        }
    }
    return cursor.unexpected("a dtype").hint(support::near_miss_hint(word, names));
}

Status parse_param_type(Cursor& cursor, const TypeSymbols& symbols, ParamDecl* param) {
    const std::string_view word = cursor.peek().text;
    const bool tensor = cursor.peek(1).kind == TokenKind::kPunctuation && cursor.peek(1).text == "[";
    if (tensor) {
        param->kind = ParamKind::kTensor;
        if (word == "any") {
            param->any_dtype = true;
            cursor.next();
        } else {
            FLEXOR_ASSIGN(param->dtype, parse_dtype(cursor));
        }
        FLEXOR_TRY(parse_dims(cursor, symbols, param));
    } else {
        static constexpr std::pair<std::string_view, ParamKind> kKinds[] = {{"int", ParamKind::kInt},
                                                                            {"float", ParamKind::kFloat},
                                                                            {"bool", ParamKind::kBool},
                                                                            {"str", ParamKind::kString},
                                                                            {"any", ParamKind::kAny}};
        const auto found = std::ranges::find(kKinds, word, &std::pair<std::string_view, ParamKind>::first);
        if (found == std::end(kKinds)) {
            return cursor.unexpected("a type: dtype[dims], any[...], int, float, bool, str or any");
        }
        param->kind = found->second;
        cursor.next();
    }
    param->optional = cursor.accept("?");
    return {};
}

}  // namespace flexor::bytecode
