#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "binding.h"
#include "flexor/session.h"
#include "flexor/stress.h"
#include "interpreter.h"

namespace flexor::python {

namespace {

// Runs `work` without the interpreter lock.
template <class F>
auto unlocked(F&& work) {
    const OtherThreads others;
    return work();
}

// The exception of a foreign function that the run called.
void raise_if_set() {
    if (PyErr_Occurred()) throw nb::python_error();
}

}  // namespace

void bind_session(nb::module_& m) {
    nb::class_<Session>(m, "NativeSession")
        .def(
            "__init__",
            [](Session* self, bool compile, bool compile_behind, bool exact_only, int threads, std::uint64_t soft_limit,
               std::uint64_t hard_limit, bool fuse, bool poison, bool fail_guards, bool end_at_once,
               bool device_graphs) {
                SessionOptions options;
                options.compile = compile;
                options.compile_behind = compile_behind;
                options.exact_only = exact_only;
                options.threads = threads;
                options.soft_limit = soft_limit;
                options.hard_limit = hard_limit;
                options.device_graphs = device_graphs;
                StressOptions stress;
                stress.fuse = fuse;
                stress.poison = poison;
                stress.fail_guards = fail_guards;
                stress.end_at_once = end_at_once;
                new (self) Session(options, stress);
                if (self->error() == nullptr) return;
                const Diagnostic error = *self->error();
                self->~Session();
                raise(error);
            },
            nb::kw_only(), nb::arg("compile") = true, nb::arg("compile_behind") = false, nb::arg("exact_only") = false,
            nb::arg("threads") = 0, nb::arg("soft_limit") = SessionOptions().soft_limit, nb::arg("hard_limit") = 0,
            nb::arg("fuse") = true, nb::arg("poison") = false, nb::arg("fail_guards") = false,
            nb::arg("end_at_once") = false, nb::arg("device_graphs") = true)
        .def("address", [](const Session& s) { return reinterpret_cast<std::uintptr_t>(&s); })
        .def("explain_example",
             [](Session& s, const Module& module, const std::string& function, bool profile) {
                 auto told = unlocked([&]() -> Expected<Explanation> {
                     auto arguments = Session::example_arguments(module, function);
                     if (!arguments) return std::move(arguments).error();
                     return s.explain(module, *arguments, ExplainOptions{.function = function, .profile = profile});
                 });
                 raise_if_set();
                 return take(std::move(told)).text;
             })
        .def("prepare",
             [](Session& s, const Module& module,
                const std::vector<std::tuple<std::string, std::int64_t, std::int64_t>>& ranges,
                const std::string& function, int other_threads, int device, std::uintptr_t stream) {
                 std::vector<SizeRange> sizes;
                 for (const auto& [symbol, lo, hi] : ranges) sizes.push_back({symbol, lo, hi});
                 PrepareOptions options{.function = function, .other_threads = other_threads};
                 if (device >= 0) options.call.device = {DeviceKind::kCuda, static_cast<std::int8_t>(device)};
                 options.call.stream = reinterpret_cast<void*>(stream);
                 const auto done = unlocked([&] { return s.prepare(module, sizes, options); });
                 raise_if_set();
                 check(done);
             })
        .def("require_hooks", [](const Session& s, const Module& module) { check(s.require_hooks(module)); })
        .def("interrupt", [](Session& s) { s.interrupt(); })
        .def("synchronize",
             [](Session& s, int device, std::uintptr_t stream) {
                 const Device place{DeviceKind::kCuda, static_cast<std::int8_t>(device)};
                 check(unlocked([&] { return s.synchronize(place, reinterpret_cast<void*>(stream)); }));
             })
        .def("settle", [](Session& s) { unlocked([&] { s.settle(); }); })
        .def("stats_json", [](const Session& s) { return to_json(s.stats()); })
        .def("prometheus", [](const Session& s) { return to_prometheus(s.stats()); })
        .def("dashboard", [](const Session& s) { return s.dashboard(); })
        .def(
            "events_json",
            [](const Session& s, std::uint64_t after) {
                std::vector<std::string> lines;
                for (const Event& e : s.events(after)) lines.push_back(to_json_line(e));
                return lines;
            },
            nb::arg("after") = 0)
        .def("set_event_sink",
             [](Session& s, nb::object function) {
                 auto callable = std::shared_ptr<nb::object>(new nb::object(std::move(function)), [](nb::object* o) {
                     if (!Py_IsInitialized()) return;
                     nb::gil_scoped_acquire gil;
                     delete o;
                 });
                 s.set_event_sink([callable](const Event& e) {
                     nb::gil_scoped_acquire gil;
                     // An error of the run that is under way must survive the sink.
                     PyObject *type, *value, *trace;
                     PyErr_Fetch(&type, &value, &trace);
                     try {
                         (*callable)(to_json_line(e));
                     } catch (nb::python_error& error) {
                         // A signal that came while the sink ran is meant for the run, which looks for signals again.
                         if (error.matches(PyExc_KeyboardInterrupt))
                             PyErr_SetInterrupt();
                         else
                             error.discard_as_unraisable("flexor event sink");
                     }
                     PyErr_Restore(type, value, trace);
                 });
             })
        .def("reset_stats", &Session::reset_stats)
        .def("trim", &Session::trim)
        .def("clear_cache", &Session::clear_cache);
    m.def("default_session", []() -> Session& { return Session::default_session(); }, nb::rv_policy::reference);
    m.def("function_index",
          [](const Module& module, const std::string& name) { return Session::function_index(module, name); });
    m.def("has_code_generator", [] { return Session::has_code_generator(); });
    m.def("set_device_compiler",
          [](std::vector<std::string> command) { Session::set_device_compiler(std::move(command)); });
    m.def("doctor", [] { return unlocked([] { return Session::doctor(); }); });
}

}  // namespace flexor::python
