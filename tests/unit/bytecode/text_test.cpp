// What the text tests cannot state: hints, listings, .npy files.
#include "bytecode/text.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "bytecode/verify.h"

namespace flexor::bytecode {
namespace {

std::string hint(std::string_view body) {
    const Expected<Module> module = assemble(".func main(query: f32[Seq]) -> 1\n" + std::string(body), "dir/test.fasm");
    if (module) return "none";
    EXPECT_EQ(module.error().where().source, "dir/test.fasm:2");
    return module.error().hint();
}

TEST(Text, HintsAtNearMisses) {
    EXPECT_EQ(hint("  LOAD_LOCL query\n"), "did you mean 'LOAD_LOCAL'?");
    EXPECT_EQ(hint("  LOAD_LOCAL qeury\n"), "did you mean 'query'?");
    EXPECT_EQ(hint("  SOFTPLUSS\n"), "did you mean 'SOFTPLUS'?");
    EXPECT_EQ(hint("  CALL_OP reshape 1 shape=[seq]\n"), "did you mean 'Seq'?");
    EXPECT_EQ(hint("  SCALAR flor_div\n"), "did you mean 'floor_div'?");
    EXPECT_EQ(hint(".symbl S\n"), "did you mean '.symbol'?");
}

TEST(Text, PrintsWithPcsAndWithoutPositions) {
    const Expected<Module> module = assemble(
        ".func main(x: f32[N]) -> 1\nagain: LOOP_HEAD\n LOAD_LOCAL x\n BRANCH_IF_TRUE again\n LOAD_LOCAL x\n RETURN "
        "1\n",
        "t.fasm");
    ASSERT_TRUE(module.has_value());
    EXPECT_EQ(disassemble(*module, {.positions = false, .pcs = true}),
              ".symbol N in 0..inf\n"
              "\n"
              ".func main(x: f32[N]) -> 1\n"
              "L0:\n"
              "     0  LOOP_HEAD\n"
              "     1  LOAD_LOCAL   x\n"
              "     2  BRANCH_IF_TRUE L0\n"
              "     3  LOAD_LOCAL   x\n"
              "     4  RETURN       1\n");
}

TEST(Text, SpellsTypesOfParametersAsItReadsThem) {
    const Expected<Module> module = assemble(
        ".func main(x: f32[N, FROZEN S]?, y: any[...], name: str, n: int?) -> 1\n LOAD_LOCAL x\n RETURN 1\n", "t");
    ASSERT_TRUE(module.has_value());
    const auto& params = module->functions[0].params;
    EXPECT_EQ(type_text(*module, params[0]), "f32[N, FROZEN S]?");
    EXPECT_EQ(type_text(*module, params[1]), "any[...]");
    EXPECT_EQ(type_text(*module, params[2]), "str");
    EXPECT_EQ(to_string(*module, params[3]), "n: int?");
}

TEST(Text, LeavesOutDefaultsOfVerifiedModulesAndLargeWeights) {
    Expected<Module> module = assemble(
        ".weight w f32[2048] = normal(1)\n"
        ".func main(x: f32[N]) -> 1\n LOAD_LOCAL x\n CALL_OP reduce_sum 1 keepdim=true, axes=all\n RETURN 1\n",
        "t.fasm");
    ASSERT_TRUE(module.has_value());
    Expected<ModuleRef> verified = verify(*std::move(module));
    ASSERT_TRUE(verified.has_value()) << verified.error().to_string();
    const std::string listing = disassemble(**verified);
    EXPECT_NE(listing.find("CALL_OP      reduce_sum 1 keepdim=true\n"), std::string::npos) << listing;
    EXPECT_NE(listing.find(".weight w f32[2048] = omitted  ; 8.0 KiB\n"), std::string::npos) << listing;
    const Expected<Module> again = assemble(listing, "listing");
    ASSERT_FALSE(again.has_value());
    EXPECT_EQ(again.error().code(), "E0803");
    const Expected<Module> whole = assemble(disassemble(**verified, {.weight_bytes = 8192}), "listing");
    ASSERT_TRUE(whole.has_value());
    EXPECT_TRUE(same_program(*verify(*whole).value(), **verified));
}

TEST(Text, ReadsNpyFilesBesideTheText) {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("flexor_npy_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder);
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
    header.resize(117, ' ');
    header += '\n';
    const float values[] = {1, 2, 3, 4, 5, 6};
    {
        std::ofstream file(folder / "w.npy", std::ios::binary);
        file.write("\x93NUMPY\x01\x00", 8);
        file.put(static_cast<char>(header.size())).put(0);
        file << header;
        file.write(reinterpret_cast<const char*>(values), sizeof values);
    }
    const std::string name = (folder / "m.fasm").string();
    const auto code = [&](const std::string& type, AssembleOptions options) {
        const Expected<Module> module = assemble(".weight w " + type + " = file \"w.npy\"\n", name, options);
        if (!module) return module.error().code();
        EXPECT_EQ(module->weights[0].tensor.data_as<float>()[5], 6);
        return std::string("none");
    };
    EXPECT_EQ(code("f32[2, 3]", {}), "none");
    EXPECT_EQ(code("f32[3, 2]", {}), "E0301");
    EXPECT_EQ(code("f64[2, 3]", {}), "E0301");
    EXPECT_EQ(code("f32[2, 3]", {.read_files = false}), "E0201");
    std::filesystem::resize_file(folder / "w.npy", 140);
    EXPECT_EQ(code("f32[2, 3]", {}), "E0203");
    std::ofstream(folder / "w.npy") << "something else";
    EXPECT_EQ(code("f32[2, 3]", {}), "E0205");
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace flexor::bytecode
