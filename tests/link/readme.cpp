// The lines of README.md about C++, in a program.
#include <cstdio>

#include "flexor/session.h"

int main() {
    const auto written = flexor::Module::from_text(
        ".func main(a: f32[N], b: f32[N]) -> 1\n  LOAD_LOCAL a\n  LOAD_LOCAL b\n  CALL_OP add 2\n  RETURN 1\n");
    if (!written || !written->save("program.flx")) return 1;
    const flexor::Tensor a = flexor::Tensor::empty(flexor::DType::kF32, {1}), b = a;
    *a.data_as<float>() = 2;

    flexor::Expected<flexor::Module> module = flexor::Module::load("program.flx");
    flexor::Session session;
    flexor::Expected<std::vector<flexor::Value>> results = session.run(*module, {a, b});

    std::remove("program.flx");
    return results && *(*results)[0].tensor().data_as<float>() == 4 ? 0 : 1;
}
