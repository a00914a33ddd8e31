#pragma once
// Which arguments an entry of a jitted function serves, and what it reads beside them.
//
// Python hands both over as lists of tuples, one step each, in the order in which the program has its inputs:
//   ("from", i, None)        the object is the call's i-th value: positional ones, then those by keyword
//   ("from", -1, object)     the object is a default
//   ("number", class)        an int of 64 bits, a float or a bool: an input
//   ("tensor", class, dtype, rank, device)   an input, no other argument's object; device -1: the CPU, else CUDA's number
//   ("again", n)             the object of the n-th input
//   ("value", object)        equal and of the same class, as is_same has it
//   ("equal", object)        of the same class and ==
//   ("same", object)         this object
//   ("tuple", class, n), ("list", class, n)   followed by the steps of n elements
//   ("dict", keys)           followed by the steps of its values
//   ("object", class)        one that Python opens (Inputs::open)
// of what is read on the way ("live"): (kind, holder, key, class, dtype, sizes, device), dtype and sizes None for numbers,
// of what is found in objects of the arguments ("argument", None, number, class, dtype, rank, device); and of
// weights that were packed: (kind, holder, key, tensor, address, version), version None where it counts none.
#include <Python.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fast/program.h"
#include "fast/references.h"

namespace flexor::python {

// A new tuple of borrowed objects; null with a Python error set.
PyObject* tuple_of(std::span<PyObject* const> borrowed);

// The inputs of a run as they are collected: values, and the objects that they were read from (borrowed from the call,
// or kept by `owned`). Few of them lie in here: an allocation costs as much as reading an array.
class Inputs {
public:
    // Of a program with `most` inputs.
    Inputs(const Program& program, std::size_t most);
    Inputs(const Inputs&) = delete;
    Inputs& operator=(const Inputs&) = delete;

    // Reads an object as the next input; false, without an error, if it cannot be read.
    bool add(PyObject* object);
    // The same, of an object that nobody else keeps. Takes over the reference.
    bool add_owned(PyObject* object);
    std::span<const Value> values() const { return {values_, count_}; }
    std::span<PyObject* const> objects() const { return {objects_, count_}; }

    // Hands the objects and the lists and dicts among the arguments to `opener`, a function of Python's of two tuples that
    // gives (objects found, inputs found) or None: then, and where it raises, false without an error.
    bool open(PyObject* opener);

    Framework framework = Framework::kNone;
    std::vector<PyObject*> roots, containers;  // borrowed from the call, in the order of the arguments
    PyObject* found = nullptr;                 // what `open` has found, kept by `owned_`
    PyObject* leaves = nullptr;                // a tuple

private:
    static constexpr std::size_t kInline = 8;
    const Program& program_;
    std::size_t count_ = 0;
    Value* values_;
    PyObject** objects_;
    Value inline_values_[kInline];
    PyObject* inline_objects_[kInline];
    std::vector<Value> many_values_;
    std::vector<PyObject*> many_objects_;
    References owned_;
};

class ArgumentPlan {
public:
    // From the list of steps; null with a Python error set.
    static std::unique_ptr<ArgumentPlan> parse(PyObject* steps, References& references);
    // Appends the inputs of a call; false, without an error, if the plan does not serve it.
    bool match(PyObject* const* arguments, Inputs& inputs) const;

private:
    enum class Kind : std::uint8_t {
        kFrom,
        kNumber,
        kTensor,
        kAgain,
        kValue,
        kEqual,
        kSame,
        kSequence,
        kDict,
        kObject
    };
    struct Step {
        Kind kind;
        PyObject* object = nullptr;  // class, expected object, default or keys
        Py_ssize_t number = 0;       // place, length, input or rank
        DType dtype = DType::kF32;
        Device device = {};
    };
    bool match_one(PyObject* object, const Step*& step, Inputs& inputs) const;
    std::vector<Step> steps_;
};

// Where an object is found anew at every call: flexor.frontend.cpython.guards.Place. kArgument: among Inputs::leaves.
struct Place {
    enum class Kind : std::uint8_t { kItem, kElement, kCell, kAttribute, kObject, kArgument };
    Kind kind = Kind::kObject;
    PyObject* holder = nullptr;
    PyObject* key = nullptr;

    // False with a Python error set.
    static bool parse(const char* kind, PyObject* holder, PyObject* key, References& references, Place& out);
    // A new reference, or null with a Python error set.
    PyObject* object() const;
};

class LivePlan {
public:
    static std::unique_ptr<LivePlan> parse(PyObject* places, References& references);
    bool fetch(Inputs& inputs) const;

private:
    struct Input {
        Place place;
        PyObject* cls = nullptr;
        std::optional<DType> dtype;
        std::vector<std::int64_t> sizes;
        Py_ssize_t leaf = 0;   // of a kArgument,
        std::size_t rank = 0;  // whose sizes may be any
        Device device = {};
    };
    std::vector<Input> inputs_;
};

// Weights that a program holds packed.
class PackedPlan {
public:
    static std::unique_ptr<PackedPlan> parse(PyObject* weights, References& references);
    // Whether each tensor is where it was found, with the memory and the version that it had, and none of them collects
    // gradients at the moment. No error stays set.
    bool are_current() const;

private:
    struct Weight {
        Place place;
        PyObject* tensor = nullptr;
        const void* address = nullptr;
        std::int64_t version = -1;  // -1: counts none
    };
    std::vector<Weight> weights_;
};

}  // namespace flexor::python
