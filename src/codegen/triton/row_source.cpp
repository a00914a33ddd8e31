#include "codegen/triton/body_writer.h"
#include "support/check.h"

namespace flexor::codegen::triton {

KernelSource write_row_kernel(const loopir::Kernel& kernel, const RowLayout& layout, Form form, int chunks) {
    FLEXOR_CHECK(kernel.kind == loopir::KernelKind::kRow);
    if (layout.elementwise) form = Form::kResident;
    SourceText text(kernel);
    FLEXOR_CHECK(chunks == 1 || (form == Form::kResident && may_chunk(layout)));
    BodyNames names;
    names.chunks = chunks;
    BodyWriter body(kernel, layout, form, text, names);
    text.constant("BLOCK_0");
    text.constant("BLOCK_1");
    const std::string stages = ", num_stages=" + text.constant("STAGES") + "):";
    body.write_prologue();
    if (form != Form::kSplit) {
        body.open("for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0)" + stages);
        body.write_coordinates("tile");
        for (std::uint32_t pass = 0; pass < body.passes(); ++pass) body.write_pass(pass);
        body.close();
        return text.finish();
    }
    FLEXOR_CHECK(may_split(layout));
    std::string parts = text.constant("PARTS");
    if (!layout.loops.empty()) {
        body.line("PARTS_ALL: tl.constexpr = PARTS * " + text.constant("PARTS_OUTER"));
        parts = "PARTS_ALL";
    }
    body.open("for unit in tl.range(tl.program_id(0), tiles * " + parts + ", tl.num_programs(0)" + stages);
    body.line("tile = unit // " + parts);
    body.line("part_all = unit % " + parts);
    body.line("part = part_all % PARTS");
    if (!layout.loops.empty()) body.line("part_outer = part_all // PARTS");
    body.write_coordinates("tile");
    body.write_part();
    body.write_joined();
    body.close();
    return text.finish();
}

}  // namespace flexor::codegen::triton
