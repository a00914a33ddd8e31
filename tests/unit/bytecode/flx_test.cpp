#include "bytecode/flx.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "bytecode/flx_format.h"
#include "bytecode/public_module.h"
#include "bytecode/text.h"
#include "bytecode/verify.h"

namespace flexor::bytecode {
namespace {

Module sample() {
    Expected<Module> module = assemble(
        ".symbol S in 1..512\n"
        ".meta producer test\n"
        ".weight w f32[4, 3] = normal(1)\n"
        ".weight b bf16[5] = ones\n"
        ".func main(x: f32[B, FROZEN S, 4], n: int?) -> (out)\n"
        "  LOAD_LOCAL x\n"
        "  LOAD_WEIGHT w\n"
        "  CALL_OP matmul 2\n"
        "  CALL_OP reshape 1 shape=[B*S, 3]\n"
        "  LOAD_CONST \"text\"\n"
        "  POP\n"
        "  LOAD_CONST [1, 2]\n"
        "  POP\n"
        "  LOAD_CONST -1\n"
        "  LOAD_CONST 2.5\n"
        "  SCALAR floor_div\n"
        "  CALL_FOREIGN log 1\n"
        "  POP\n"
        "  RETURN 1\n",
        "sample.fasm");
    EXPECT_TRUE(module.has_value()) << (module ? "" : module.error().to_string());
    return *std::move(module);
}

// A folder of its own that is gone after the test.
class Folder {
public:
    Folder() : path_(std::filesystem::temp_directory_path() / ("flexor_flx_" + std::to_string(::getpid()))) {
        std::filesystem::create_directories(path_);
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    std::string file(const std::string& name) const { return (path_ / name).string(); }
    std::size_t files() const {
        return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
    }

private:
    std::filesystem::path path_;
};

std::string code(const std::vector<std::byte>& bytes) {
    const Expected<Module> module = read_flx(bytes, nullptr);
    return module ? "none" : module.error().code();
}

TEST(Flx, ReadsBackWhatItWrote) {
    const Module module = sample();
    const std::vector<std::byte> bytes = write_flx(module);
    const Expected<Module> again = read_flx(bytes, nullptr);
    ASSERT_TRUE(again.has_value()) << again.error().to_string();
    EXPECT_TRUE(same_program(module, *again)) << disassemble(*again);
    EXPECT_EQ(write_flx(*again), bytes);
    EXPECT_TRUE(verify(*again).has_value());
}

TEST(Flx, MapsWeightsWithoutCopyAndWritesStayPrivate) {
    const Folder folder;
    const std::string path = folder.file("m.flx");
    ASSERT_TRUE(save_flx(sample(), path).has_value());
    EXPECT_EQ(folder.files(), 1U);  // no temporary file is left
    {
        Expected<Module> module = load_flx(path);
        ASSERT_TRUE(module.has_value()) << module.error().to_string();
        EXPECT_TRUE(same_program(*module, sample()));
        for (const Weight& weight : module->weights) {
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(weight.tensor.data()) % kTensorAlignment, 0U);
            EXPECT_NE(weight.tensor.storage()->deleter, nullptr);
        }
        Tensor kept = module->weights[0].tensor;
        *module = Module{};
        kept.data_as<float>()[0] = 42;  // the mapping lives as long as one weight does
        EXPECT_EQ(kept.data_as<float>()[0], 42);
    }
    const Expected<Module> again = load_flx(path);
    ASSERT_TRUE(again.has_value());
    EXPECT_TRUE(same_program(*again, sample()));
}

TEST(Flx, RefusesDamagedFiles) {
    const std::vector<std::byte> good = write_flx(sample());
    EXPECT_EQ(code({}), "E0202");
    EXPECT_EQ(code(std::vector<std::byte>(100)), "E0202");
    EXPECT_EQ(code({good.begin(), good.begin() + 20}), "E0203");
    EXPECT_EQ(code({good.begin(), good.end() - 1}), "E0203");
    std::vector<std::byte> newer = good;
    newer[8] = std::byte{9};
    EXPECT_EQ(code(newer), "E0703");
    std::vector<std::byte> flipped = good;
    flipped[good.size() - 64] ^= std::byte{1};
    EXPECT_EQ(code(flipped), "E0204");
    std::vector<std::byte> head = good;
    head[40] ^= std::byte{1};
    EXPECT_EQ(code(head), "E0204");
    std::vector<std::byte> renamed = good;
    renamed[flx::kHeaderBytes] = std::byte{'S'};  // no section "strings"
    flx::seal(renamed);
    EXPECT_EQ(code(renamed), "E0205");
}

TEST(Flx, SurvivesEveryTruncationAndEveryFlippedBit) {
    const std::vector<std::byte> good = write_flx(sample());
    std::uint32_t sections = 0;
    std::memcpy(&sections, good.data() + 12, sizeof sections);
    ASSERT_EQ(sections, 8U);
    std::uint64_t data_offset = 0;
    std::memcpy(&data_offset, good.data() + flx::kHeaderBytes + 7 * flx::kTableRowBytes + 8, sizeof data_offset);
    for (std::size_t size = 0; size < good.size(); ++size) {
        EXPECT_NE(code({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)}), "none");
    }
    int read = 0;
    for (std::size_t i = 8; i < data_offset; ++i) {
        for (const int bit : {0, 3, 7}) {
            std::vector<std::byte> bytes = good;
            bytes[i] ^= static_cast<std::byte>(1 << bit);
            flx::seal(bytes);
            Expected<Module> module = read_flx(bytes, nullptr);
            if (!module) continue;
            ++read;
            Expected<ModuleRef> verified = verify(*std::move(module));
            if (verified) {
                EXPECT_FALSE(disassemble(**verified).empty());
            }
        }
    }
    EXPECT_GT(read, 0);  // names and numbers may change without making the file malformed
}

TEST(Flx, DoesNotReplaceAFileThatItCannotWrite) {
    const Folder folder;
    const Status status = save_flx(sample(), folder.file("no/such/folder/m.flx"));
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code(), "E0206");
    const Expected<Module> missing = load_flx(folder.file("missing.flx"));
    ASSERT_FALSE(missing.has_value());
    EXPECT_EQ(missing.error().code(), "E0201");
}

TEST(PublicModule, LoadsBothFormsAndTellsWhatItTakes) {
    const Folder folder;
    const Expected<flexor::Module> module = flexor::Module::from_text(disassemble(sample()), "sample.fasm");
    ASSERT_TRUE(module.has_value()) << module.error().to_string();
    ASSERT_TRUE(module->save(folder.file("a.flx")).has_value());
    ASSERT_TRUE(module->save(folder.file("a.fasm")).has_value());
    const Expected<flexor::Module> binary = flexor::Module::load(folder.file("a.flx"));
    const Expected<flexor::Module> text = flexor::Module::load(folder.file("a.fasm"));
    ASSERT_TRUE(binary && text);
    EXPECT_TRUE(same_program(*module_ref(*binary), *module_ref(*text)));
    const std::vector<ArgumentInfo> inputs = binary->inputs();
    ASSERT_EQ(inputs.size(), 2U);
    EXPECT_EQ(inputs[0].to_string(), "x: f32[B, FROZEN S in 1..512, 4]");
    EXPECT_EQ(inputs[0].dims[1].hi, 512);
    EXPECT_EQ(inputs[1].to_string(), "n: int?");
    EXPECT_EQ(binary->outputs()[0].to_string(), "out: f32[S*B, 3]");
    EXPECT_EQ(binary->metadata().at("producer"), "test");
    EXPECT_EQ(binary->weights()[0].bytes, 48U);
    EXPECT_EQ(binary->hooks(), std::vector<std::string>{"log"});
    EXPECT_FALSE(binary->weight("missing").defined());
    EXPECT_TRUE(binary->inputs("missing").empty());
    std::ofstream(folder.file("bad.flx")) << "not a module";
    const Expected<flexor::Module> bad = flexor::Module::load(folder.file("bad.flx"));
    ASSERT_FALSE(bad.has_value());
    EXPECT_EQ(bad.error().code(), "E0202");
}

}  // namespace
}  // namespace flexor::bytecode
