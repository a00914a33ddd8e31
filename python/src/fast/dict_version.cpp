#include "fast/dict_version.h"

#include <unordered_map>

namespace flexor::python {

#if PY_VERSION_HEX < 0x030C0000

DictVersion::DictVersion(PyObject* dict) : dict_(dict) {}
DictVersion::~DictVersion() = default;
std::uint64_t DictVersion::current() const { return reinterpret_cast<PyDictObject*>(dict_)->ma_version_tag; }
std::uint64_t DictVersion::of_all() { return 0; }

#else

namespace {

struct Watched {
    std::uint64_t version = 1;
    int users = 0;
};
// Guarded by the interpreter lock, as dicts are.
std::unordered_map<PyObject*, Watched>& watched() {
    static auto* map = new std::unordered_map<PyObject*, Watched>;  // dicts change until the process ends
    return *map;
}
std::uint64_t changes = 1;

int note_change(PyDict_WatchEvent, PyObject* dict, PyObject*, PyObject*) {
    const auto found = watched().find(dict);
    if (found != watched().end()) {
        ++found->second.version;
        ++changes;
    }
    return 0;
}

// Negative where all watchers of the interpreter are taken.
int watcher() {
    static const int id = [] {
        const int made = PyDict_AddWatcher(note_change);
        if (made < 0) PyErr_Clear();
        return made;
    }();
    return id;
}

}  // namespace

DictVersion::DictVersion(PyObject* dict) : dict_(dict) {
    if (watcher() < 0) return;
    Watched& state = watched()[dict];
    if (state.users++ == 0 && PyDict_Watch(watcher(), dict) != 0) PyErr_Clear();
}

DictVersion::~DictVersion() {
    if (dict_ == nullptr || watcher() < 0) return;
    const auto found = watched().find(dict_);
    if (found == watched().end() || --found->second.users > 0) return;
    watched().erase(found);
    if (PyDict_Unwatch(watcher(), dict_) != 0) PyErr_Clear();
}

std::uint64_t DictVersion::current() const {
    if (watcher() < 0) return 0;
#if PY_VERSION_HEX >= 0x030D0000
    // An object that holds its attributes itself, and the dict that shows them, changes without a word to watchers.
    if (reinterpret_cast<PyDictObject*>(dict_)->ma_values != nullptr) return 0;
#endif
    return watched().at(dict_).version;
}

std::uint64_t DictVersion::of_all() { return watcher() < 0 ? 0 : changes; }

#endif

}  // namespace flexor::python
