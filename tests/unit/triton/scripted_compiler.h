#pragma once
// A script in the compiler's place. Its machine code is a text that the fake driver understands, which tells what was asked
// for; files in a folder of the test's make it wait or refuse.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace flexor::tests {

class ScriptedCompiler {
public:
    ScriptedCompiler() {
        char name[] = "/tmp/flexor_compiler_XXXXXX";
        folder_ = mkdtemp(name);
    }
    ~ScriptedCompiler() { std::filesystem::remove_all(folder_); }
    ScriptedCompiler(const ScriptedCompiler&) = delete;
    ScriptedCompiler& operator=(const ScriptedCompiler&) = delete;

    // Code of the form "parameters 8 8;EVEN_0=1 EVEN_1=0 x,y,": sizes, constants, divisible arguments.
    std::vector<std::string> command() const {
        return {"/bin/sh", "-c", R"sh(folder=$0
echo triton 3.6.0
sizes= constants= divisible= count=0
while read -r key a b; do
  case $key in
    argument) case $b in i32) sizes="$sizes 4";; *) sizes="$sizes 8";; esac;;
    constant) constants="$constants$a=$b ";;
    divisible) divisible="$divisible$a,";;
    source)
      head -c $a >/dev/null
      code="parameters$sizes 8 8;$constants$divisible"
      count=$((count + 1))
      : >"$folder/asked-$$-$count"
      while [ -e "$folder/hold" ] || { [ -e "$folder/hold-general" ] && [ -z "$divisible" ]; }; do sleep 0.005; done
      if [ -e "$folder/refuse" ]; then printf 'refused\nerror 4\nnope'
      else printf 'ok\nname sym\nwarps 4\nshared 0\nscratch 0 1\nparameters%s 8 8\ncubin %s\n%s' "$sizes" ${#code} "$code"
      fi
      sizes= constants= divisible=;;
  esac
done)sh",
                folder_};
    }
    void set(const std::string& file) const { std::ofstream(folder_ + "/" + file) << ""; }
    void clear(const std::string& file) const { std::filesystem::remove(folder_ + "/" + file); }
    // Requests that a process has begun with.
    std::size_t begun() const {
        std::size_t count = 0;
        for (const auto& item : std::filesystem::directory_iterator(folder_))
            count += item.path().filename().string().starts_with("asked") ? 1 : 0;
        return count;
    }

private:
    std::string folder_;
};

}  // namespace flexor::tests
