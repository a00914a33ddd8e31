#pragma once
// Whether a dict has changed, without looking into it.
#include <Python.h>

#include <cstdint>

namespace flexor::python {

// The state of one dict, which somebody else keeps alive for the life of this.
class DictVersion {
public:
    explicit DictVersion(PyObject* dict);
    DictVersion(DictVersion&& other) noexcept : dict_(other.dict_) { other.dict_ = nullptr; }
    DictVersion(const DictVersion&) = delete;
    DictVersion& operator=(const DictVersion&) = delete;
    DictVersion& operator=(DictVersion&&) = delete;
    ~DictVersion();

    PyObject* dict() const { return dict_; }
    // Equal only as long as nothing in the dict has changed; 0: unknown.
    std::uint64_t current() const;

    // Equal only as long as nothing in any dict that has a DictVersion has changed; 0: unknown.
    static std::uint64_t of_all();

private:
    PyObject* dict_;
};

}  // namespace flexor::python
