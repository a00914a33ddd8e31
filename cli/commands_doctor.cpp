#include "commands.h"
#include "flexor/session.h"
#include "json_writer.h"
#include "print.h"
#include "program.h"

namespace flexor::cli {

Outcome doctor_command(const Options& options) {
    const std::string report = Session::doctor();
    JsonWriter json;
    json.begin_object();
    for (std::size_t begin = 0; begin < report.size();) {
        const std::size_t end = report.find('\n', begin);
        const std::string line = report.substr(begin, end - begin);
        const std::size_t gap = line.find("  ");
        json.key(line.substr(0, gap)).string(line.substr(line.find_first_not_of(' ', gap)));
        begin = end + 1;
    }
    json.end_object();
    emit(options, report, json);
    return Exit::kDone;
}

}  // namespace flexor::cli
