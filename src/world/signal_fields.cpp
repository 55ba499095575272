// SPDX-License-Identifier: Apache-2.0
#include "src/world/signal_fields.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "src/world/power_fields.hpp"

namespace gpusched {
namespace {

// Its file's name.
std::string read_signal_options(JsonFields& own, const JobTable& jobs, SignalOptions& options) {
  constexpr std::array<NamedValue<bool>, 2> words{{{"on_the_clock", false}, {"with_jobs", true}}};
  std::string name;
  bool with_jobs = false;
  double from_h = 0;
  own.require("file");
  own.read("file", name);
  own.read("column", options.column);
  own.read("unit", options.unit);
  own.read_word("begins", with_jobs, words);
  own.read("from_h", from_h, 0, 1e6);
  if (own.has("from_h") && !with_jobs) own.refuse("from_h", "\"begins\": \"with_jobs\" beside it");
  options.from = from_seconds(from_h * 3600);
  if (with_jobs) options.begins_at = jobs.size() == 0 ? Time{} : jobs.trace_begin();
  return name;
}

// Clocks that do not meet: one value of the signal counts from the first job to the last.
std::string span_note(const Signal& signal, const JobTable& jobs) {
  const auto steps = signal.steps();
  if (steps.size() < 2 || jobs.size() == 0) return "";
  const Time first = jobs.submit(JobId{0}), last = jobs.submit(JobId{jobs.size() - 1});
  if (steps.back().time <= first) return "ends before the first job comes, so that its last value counts throughout";
  if (steps.front().time > last) return "begins after the last job came, so that its first value counts until then";
  return "";
}

}  // namespace

std::optional<Signal> read_signal_field(JsonFields& fields, const SignalField& field, const std::string& file,
                                        const JobTable& jobs, std::vector<std::string>& notes,
                                        std::optional<Error>& failed) {
  const Json* value = fields.find(field.key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string() && !value->is_object()) {
    double constant = 0;
    fields.read(field.key, constant, field.least, field.most);
    return Signal(constant);
  }
  SignalOptions options{.kind = field.kind, .midnight_to_zero = jobs.midnight_to_zero()};
  std::string name = value->is_string() ? value->get<std::string>() : "";
  if (value->is_object()) {
    fields.read_nested(field.key, *value, [&](JsonFields& own) { name = read_signal_options(own, jobs, options); });
  }
  if (!fields.good() || failed) return std::nullopt;
  const std::string of_signal = path_beside(file, name);
  auto read = read_signal(of_signal, options);
  if (!read) {
    failed = read.error();
    return std::nullopt;
  }
  const auto steps = read->signal.steps();
  const auto wrong = std::find_if(steps.begin(), steps.end(), [&](const Signal::Step& step) {
    const double number = static_cast<double>(step.micro) / 1e6;
    return number < field.least || number > field.most;
  });
  if (wrong != steps.end()) {
    const auto text = [](double number) { return Json(number).dump(); };
    failed = Error{.message = "expected values from " + text(field.least) + " to " + text(field.most) + ", not " +
                              text(static_cast<double>(wrong->micro) / 1e6),
                   .file = of_signal,
                   .field = read->column};
    return std::nullopt;
  }
  notes.insert(notes.end(), read->notes.begin(), read->notes.end());
  if (const std::string note = span_note(read->signal, jobs); !note.empty() && !options.begins_at) {
    notes.push_back(of_signal + " " + note + "; {\"begins\": \"with_jobs\"} moves it to them");
  }
  return std::move(read->signal);
}

}  // namespace gpusched
