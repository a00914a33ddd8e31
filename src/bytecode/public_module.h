#pragma once
// What stands behind the public flexor::Module.
#include "bytecode/module.h"
#include "flexor/module.h"

namespace flexor {

struct Module::Impl {
    bytecode::ModuleRef module;  // verified
};

namespace bytecode {

inline const ModuleRef& module_ref(const flexor::Module& module) { return module.impl().module; }
flexor::Module public_module(ModuleRef module);

}  // namespace bytecode
}  // namespace flexor
