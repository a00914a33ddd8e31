#include "codegen/triton/compiler_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <optional>

#include "support/diagnostic.h"
#include "support/text.h"

extern char** environ;

namespace flexor::codegen::triton {

namespace {

using Clock = std::chrono::steady_clock;

Diagnostic missing(const std::string& what) { return Diagnostic(DiagnosticId::kNoKernelCompiler).found(what); }
Diagnostic failed(const std::string& what) { return Diagnostic(DiagnosticId::kKernelCompilerFailed).found(what); }

// Writing to a process that has ended must not end this one.
class IgnoredPipeSignal {
public:
    IgnoredPipeSignal() {
        sigset_t pipe;
        sigemptyset(&pipe);
        sigaddset(&pipe, SIGPIPE);
        sigset_t pending;
        sigpending(&pending);
        was_pending_ = sigismember(&pending, SIGPIPE) == 1;
        pthread_sigmask(SIG_BLOCK, &pipe, &before_);
    }
    ~IgnoredPipeSignal() {
        if (!was_pending_) {
            sigset_t pipe;
            sigemptyset(&pipe);
            sigaddset(&pipe, SIGPIPE);
            const timespec now{0, 0};
            while (sigtimedwait(&pipe, nullptr, &now) == -1 && errno == EINTR) {
            }
        }
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }

private:
    sigset_t before_;
    bool was_pending_ = false;
};

std::string request_text(const CompileRequest& request) {
    std::string out = "function " + request.function + "\ntarget cuda " + std::to_string(request.target) + "\n";
    for (const auto& [name, type] : request.signature) out += "argument " + name + " " + type + "\n";
    for (const auto& [name, value] : request.constants) out += "constant " + name + " " + std::to_string(value) + "\n";
    for (const std::string& name : request.divisible) out += "divisible " + name + "\n";
    out += "warps " + std::to_string(request.warps) + "\nstages " + std::to_string(request.stages) + "\n";
    return out + "source " + std::to_string(request.source.size()) + "\n" + request.source;
}

}  // namespace

struct CompilerProcess::Impl {
    std::vector<std::string> command;
    double limit_seconds;
    std::mutex mutex;
    std::mutex ending;  // what changes pid and closed holds it
    pid_t pid = -1;
    bool closed = false;
    pid_t owner = -1;  // the process that started it
    int to = -1, from = -1;
    std::string input;                 // read and not used yet
    std::optional<Diagnostic> absent;  // there is no compiler, and there will be none

    Clock::time_point deadline() const {
        return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit_seconds));
    }

    void stop() {
        if (to >= 0) close(to);
        if (from >= 0) close(from);
        to = from = -1;
        input.clear();
        const std::lock_guard lock(ending);
        if (pid > 0 && owner == getpid()) {
            kill(-pid, SIGKILL);  // the tools that it runs too
            while (waitpid(pid, nullptr, 0) == -1 && errno == EINTR) {
            }
        }
        pid = -1;
    }

    Expected<void> start(Clock::time_point end) {
        int in[2], out[2];
        if (pipe2(in, O_CLOEXEC) != 0) return missing(std::strerror(errno));
        if (pipe2(out, O_CLOEXEC) != 0) {
            close(in[0]);
            close(in[1]);
            return missing(std::strerror(errno));
        }
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, in[0], 0);
        posix_spawn_file_actions_adddup2(&actions, out[1], 1);
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
        std::vector<char*> words;
        for (std::string& word : command) words.push_back(word.data());
        words.push_back(nullptr);
        // A group of its own: an interrupt at the terminal is ours, and whatever it starts ends with it.
        posix_spawnattr_t attributes;
        posix_spawnattr_init(&attributes);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
        posix_spawnattr_setpgroup(&attributes, 0);
        int error = ECANCELED;
        {
            const std::lock_guard lock(ending);
            if (!closed) error = posix_spawnp(&pid, words[0], &actions, &attributes, words.data(), environ);
            if (error != 0) pid = -1;
            owner = getpid();
        }
        posix_spawnattr_destroy(&attributes);
        posix_spawn_file_actions_destroy(&actions);
        close(in[0]);
        close(out[1]);
        to = in[1];
        from = out[0];
        if (error == ECANCELED) {
            stop();
            return failed("the compiler's process has ended");
        }
        if (error != 0) {
            stop();
            return *(absent = missing(command[0] + ": " + std::strerror(error)));
        }
        fcntl(to, F_SETFL, O_NONBLOCK);
        Expected<std::string> first = read_line(end);
        if (!first) {
            stop();
            return std::move(first).error();
        }
        if (first->starts_with("triton ")) return {};
        stop();
        return *(absent = missing(first->starts_with("missing ") ? first->substr(8) : "'" + *first + "'"));
    }

    Expected<void> ready(Clock::time_point end) {
        if (owner != getpid()) stop();  // after a fork the process serves whoever started it
        return pid < 0 ? start(end) : Expected<void>{};
    }

    // Waits until the descriptor is ready.
    Expected<void> wait(int descriptor, short events, Clock::time_point end) const {
        for (;;) {
            const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
            pollfd item{descriptor, events, 0};
            const int ready = left > 0 ? poll(&item, 1, static_cast<int>(std::min<long long>(left, 1'000'000))) : 0;
            if (ready > 0) return {};
            if (ready < 0 && errno == EINTR) continue;
            if (ready < 0) return failed(std::strerror(errno));
            if (left <= 0) return failed("no answer within " + support::text_from_double(limit_seconds) + " s");
        }
    }

    Expected<void> send(const std::string& text, Clock::time_point end) {
        const IgnoredPipeSignal ignored;
        for (std::size_t done = 0; done < text.size();) {
            FLEXOR_TRY(wait(to, POLLOUT, end));
            const ssize_t count = write(to, text.data() + done, text.size() - done);
            if (count >= 0)
                done += static_cast<std::size_t>(count);
            else if (errno != EINTR && errno != EAGAIN)
                return failed("the compiler's process has ended");
        }
        return {};
    }

    Expected<void> receive(Clock::time_point end) {
        FLEXOR_TRY(wait(from, POLLIN, end));
        char buffer[1 << 14];
        const ssize_t count = read(from, buffer, sizeof buffer);
        if (count < 0 && (errno == EINTR || errno == EAGAIN)) return {};
        if (count <= 0) return failed("the compiler's process has ended");
        input.append(buffer, static_cast<std::size_t>(count));
        return {};
    }

    Expected<std::string> read_line(Clock::time_point end) {
        std::size_t at = 0;
        while ((at = input.find('\n')) == std::string::npos) FLEXOR_TRY(receive(end));
        std::string line = input.substr(0, at);
        input.erase(0, at + 1);
        return line;
    }

    Expected<std::string> read_bytes(std::size_t count, Clock::time_point end) {
        while (input.size() < count) FLEXOR_TRY(receive(end));
        std::string bytes = input.substr(0, count);
        input.erase(0, count);
        return bytes;
    }

    struct Answer {
        bool refused = false;
        std::string error;
        runtime::cuda::DeviceCode code;
    };

    Expected<Answer> read_answer(Clock::time_point end) {
        Answer answer;
        FLEXOR_ASSIGN(const std::string first, read_line(end));
        answer.refused = first == "refused";
        if (!answer.refused && first != "ok") return failed("the answer '" + first + "'");
        for (;;) {
            FLEXOR_ASSIGN(const std::string line, read_line(end));
            const std::vector<std::string_view> words = support::split(line, ' ');
            const auto number = [&](std::size_t i) -> std::int64_t {
                return i < words.size() ? support::int_from_text(words[i]).value_or(0) : 0;
            };
            if (words[0] == "name" && words.size() > 1) answer.code.symbol = words[1];
            if (words[0] == "warps") answer.code.warps = static_cast<int>(number(1));
            if (words[0] == "shared") answer.code.shared_bytes = number(1);
            if (words[0] == "scratch") answer.code.scratch_bytes = number(1);
            if (words[0] == "parameters") {
                for (std::size_t i = 1; i < words.size(); ++i) answer.code.parameter_bytes.push_back(number(i));
            }
            if (words[0] != "cubin" && words[0] != "error") continue;
            FLEXOR_ASSIGN(std::string bytes,
                          read_bytes(static_cast<std::size_t>(std::max<std::int64_t>(number(1), 0)), end));
            (answer.refused ? answer.error : answer.code.cubin) = std::move(bytes);
            return answer;
        }
    }

    Expected<Answer> ask(const CompileRequest& request) {
        const Clock::time_point end = deadline();
        FLEXOR_TRY(ready(end));
        FLEXOR_TRY(send(request_text(request), end));
        return read_answer(end);
    }
};

CompilerProcess::CompilerProcess(std::vector<std::string> command, double limit_seconds)
    : impl_(std::make_unique<Impl>()) {
    impl_->command = std::move(command);
    impl_->limit_seconds = limit_seconds;
}

CompilerProcess::~CompilerProcess() { impl_->stop(); }

void CompilerProcess::start() {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->absent || (impl_->pid > 0 && impl_->owner == getpid())) return;
    // What fails here fails at the request again, which tells it.
    if (!impl_->ready(impl_->deadline())) impl_->stop();
}

void CompilerProcess::end() {
    const std::lock_guard lock(impl_->ending);
    impl_->closed = true;
    if (impl_->pid > 0 && impl_->owner == getpid()) kill(-impl_->pid, SIGKILL);
}

Expected<runtime::cuda::DeviceCode> CompilerProcess::compile(const CompileRequest& request) {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->absent) return *impl_->absent;
    Expected<Impl::Answer> answer = impl_->ask(request);
    if (!answer) {
        // What the process would still say belongs to no request.
        impl_->stop();
        return std::move(answer).error();
    }
    if (answer->refused) return failed(request.function + ": " + answer->error);
    return std::move(answer->code);
}

}  // namespace flexor::codegen::triton
