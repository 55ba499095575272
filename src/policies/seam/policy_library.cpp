// SPDX-License-Identifier: Apache-2.0
#include "src/policies/seam/policy_library.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

#include "gpusched/plugin/plugin_boundary.hpp"
#include "src/base/nearest_name.hpp"
#include "src/policies/seam/fault_line.hpp"
#include "src/policies/seam/policy_failure.hpp"

namespace gpusched {
namespace {

constexpr std::string_view how_to_build = "docs/own-policy.md tells how to build one";

// What the library tells when something fails.
class ErrorText {
 public:
  char* data() { return text_; }
  static constexpr std::size_t size() { return sizeof text_; }
  [[nodiscard]] std::string text() const { return text_[0] == 0 ? "unknown error" : text_; }

 private:
  char text_[500] = {};
};

struct Library {
  std::string path;  // as written
  const GpuschedPolicyPlugin* plugin = nullptr;
};

// A policy of the library; copies are copies of what the library made.
class LibraryPolicy {
 public:
  LibraryPolicy(const Library& library, void* policy) : library_(&library), policy_(policy) {}
  LibraryPolicy(const LibraryPolicy& other) : library_(other.library_), policy_(other.copied()) {}
  LibraryPolicy(LibraryPolicy&& other) noexcept
      : library_(other.library_), policy_(std::exchange(other.policy_, nullptr)) {}
  LibraryPolicy& operator=(LibraryPolicy other) noexcept {
    std::swap(library_, other.library_);
    std::swap(policy_, other.policy_);
    return *this;
  }
  ~LibraryPolicy() {
    if (policy_ == nullptr) return;
    const FaultLine line(library_->path, "when it was destroyed");
    library_->plugin->destroy(policy_);
  }

  [[nodiscard]] std::string_view name() const { return library_->path; }
  [[nodiscard]] bool clairvoyant() const { return library_->plugin->clairvoyant != 0; }

  void decide(const OracleView& view, Decision& decision) {
    ErrorText error;
    const FaultLine line(library_->path, "in a decision");
    if (library_->plugin->decide(policy_, &view, &decision, error.data(), ErrorText::size()) != 0) {
      throw PolicyFailure(view.now(), error.text());
    }
  }

 private:
  [[nodiscard]] void* copied() const {
    ErrorText error;
    const FaultLine line(library_->path, "when it was copied");
    void* const copy = library_->plugin->copy(policy_, error.data(), ErrorText::size());
    if (copy == nullptr) throw PolicyFailure("failed when it was copied: " + error.text());
    return copy;
  }

  const Library* library_;
  void* policy_;
};

// What dlerror() says, without the path in front of it.
std::string load_error(const std::string& path) {
  const char* const said = dlerror();
  std::string text = said == nullptr ? "unknown error" : said;
  if (text.starts_with(path + ": ")) text.erase(0, path.size() + 2);
  return text;
}

std::string differs(const char* what, const char* theirs, const char* ours) {
  return std::string("was built with ") + what + " " + theirs + ", this program with " + ours;
}

// Why the library does not belong to this program; empty if it does. Struct size and version come before all else.
std::string mismatch(const GpuschedPolicyPlugin& plugin) {
  if (plugin.version != GPUSCHED_PLUGIN_VERSION) {
    return "was built for version " + std::to_string(plugin.version) +
           " of the boundary of policies, this program has " + std::to_string(GPUSCHED_PLUGIN_VERSION);
  }
  if (plugin.struct_size != sizeof(GpuschedPolicyPlugin)) {
    return "describes its policy in " + std::to_string(plugin.struct_size) + " bytes, this program expects " +
           std::to_string(sizeof(GpuschedPolicyPlugin));
  }
  const auto same = [](const char* a, const char* b) { return std::strcmp(a, b) == 0; };
  if (!same(plugin.library_version, GPUSCHED_VERSION)) {
    return differs("gpusched", plugin.library_version, GPUSCHED_VERSION);
  }
  if (!same(plugin.compiler, detail::plugin_compiler)) {
    return differs("the compiler", plugin.compiler, detail::plugin_compiler);
  }
  if (!same(plugin.standard_library, detail::plugin_standard_library)) {
    return differs("the standard library", plugin.standard_library, detail::plugin_standard_library);
  }
  if (!same(plugin.build, detail::plugin_build)) return differs("the setting", plugin.build, detail::plugin_build);
  if (!same(plugin.headers, GPUSCHED_HEADERS_HASH)) {
    return differs("other headers of gpusched:", std::string(plugin.headers, 12).c_str(),
                   std::string(GPUSCHED_HEADERS_HASH, 12).c_str());
  }
  if (!std::equal(std::begin(plugin.sizes), std::end(plugin.sizes), detail::state_sizes)) {
    return "was built with compiler options that change the layout of gpusched's types";
  }
  return {};
}

ParameterInfo parameter_of(const GpuschedParameter& given) {
  ParameterInfo parameter{.name = given.name, .fallback = given.fallback, .meaning = given.meaning};
  if (given.kind == gpusched_number) {
    parameter.least = given.least;
    parameter.most = given.most;
  } else if (given.kind == gpusched_flag) {
    parameter.fallback = given.fallback != 0;
  } else {
    parameter.fallback = std::string(given.fallback_word);
    std::string_view words = given.words == nullptr ? "" : given.words;
    while (!words.empty()) {
      const std::size_t end = std::min(words.find('|'), words.size());
      parameter.words.emplace_back(words.substr(0, end));
      words.remove_prefix(std::min(end + 1, words.size()));
    }
  }
  return parameter;
}

// What is wrong with the parameters that a library declares; empty if nothing is.
std::string flaw_of(const GpuschedPolicyPlugin& plugin) {
  std::vector<std::string> known;
  for (std::uint32_t i = 0; i < plugin.parameter_count; ++i) {
    const GpuschedParameter& given = plugin.parameters[i];
    if (given.name == nullptr || *given.name == 0 || given.meaning == nullptr) return "a name and a meaning";
    const std::string name = given.name;
    if (std::find(known.begin(), known.end(), name) != known.end()) return "'" + name + "' only once";
    known.push_back(name);
    if (given.kind > gpusched_word) return "'" + name + "' as a flag, a number or a word";
    if (given.kind == gpusched_number && !(given.fallback >= given.least && given.fallback <= given.most)) {
      return "a default of '" + name + "' in its range";
    }
    if (given.kind != gpusched_word) continue;
    if (given.fallback_word == nullptr) return "a default of '" + name + "'";
    const std::vector<std::string> words = parameter_of(given).words;
    if (!words.empty() && std::find(words.begin(), words.end(), given.fallback_word) == words.end()) {
      return "a default of '" + name + "' that is one of its words";
    }
  }
  return {};
}

std::vector<GpuschedValue> values_of(const GpuschedPolicyPlugin& plugin, const PolicyParameters& parameters) {
  std::vector<GpuschedValue> values(plugin.parameter_count);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const GpuschedParameter& declared = plugin.parameters[i];
    if (declared.kind == gpusched_flag) values[i].number = parameters.flag(declared.name) ? 1 : 0;
    if (declared.kind == gpusched_number) values[i].number = parameters.number(declared.name);
    if (declared.kind == gpusched_word) values[i].word = parameters.word(declared.name).c_str();
  }
  return values;
}

Result<AnyPolicy> make_from(const Library& library, const PolicyParameters& parameters, const PolicyContext& context) {
  const std::vector<GpuschedValue> values = values_of(*library.plugin, parameters);
  const GpuschedPolicyRun run{.cluster = context.cluster,
                              .seed = context.seed,
                              .values = values.data(),
                              .value_count = static_cast<std::uint32_t>(values.size())};
  ErrorText error;
  const FaultLine line(library.path, "when it was made");
  void* const policy = library.plugin->make(&run, error.data(), ErrorText::size());
  if (policy == nullptr) return unexpected("policy " + library.path + " could not be made: " + error.text());
  return AnyPolicy(LibraryPolicy(library, policy));
}

PolicyInfo row_of(const Library& library) {
  PolicyInfo row{.name = library.path,
                 .summary = library.plugin->summary,
                 .source = std::string(library.plugin->name) + ", a library outside the tree",
                 .complexity = "its author knows"};
  for (std::uint32_t i = 0; i < library.plugin->parameter_count; ++i) {
    row.parameters.push_back(parameter_of(library.plugin->parameters[i]));
  }
  row.make = [&library](const PolicyParameters& parameters, const PolicyContext& context) {
    return make_from(library, parameters, context);
  };
  row.preemptive = library.plugin->preemptive != 0;
  row.files = [path = library.path](const PolicySpec&) { return std::vector<std::string>{path}; };
  return row;
}

Result<const GpuschedPolicyPlugin*> open_library(const std::string& path) {
  const auto fail = [&](std::string why) { return Unexpected{Error{.message = std::move(why), .file = path}}; };
  std::error_code why;
  if (!std::filesystem::exists(path, why)) return fail("no such file");
  if (!std::filesystem::is_regular_file(path, why)) return fail("is no file");
  // A name without a slash would be looked for in the system's folders.
  const std::string absolute = std::filesystem::absolute(path, why).string();
  const FaultLine line(path, "while it was loaded");
  void* const library = dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return fail("cannot be loaded as a library: " + load_error(absolute));
  const auto entry = reinterpret_cast<GpuschedPolicyEntry>(dlsym(library, GPUSCHED_PLUGIN_ENTRY));
  if (entry == nullptr) {
    return fail("is a library without a policy of gpusched (no function " GPUSCHED_PLUGIN_ENTRY "); " +
                std::string(how_to_build));
  }
  const GpuschedPolicyPlugin* const plugin = entry();
  if (plugin == nullptr) return fail(GPUSCHED_PLUGIN_ENTRY "() returned nothing");
  if (const std::string wrong = mismatch(*plugin); !wrong.empty()) return fail(wrong + "; build it again");
  if (plugin->name == nullptr || plugin->summary == nullptr) return fail("names no policy");
  if (const std::string expected = flaw_of(*plugin); !expected.empty()) {
    return fail("declares its parameters wrongly: expected " + expected);
  }
  return plugin;
}

// A library and its row, or why there is none.
struct Loaded {
  Library library;
  PolicyInfo row;
  Error error;
};

void load(Loaded& loaded, const std::string& path) {
  const auto plugin = open_library(path);
  if (!plugin) {
    loaded.error = plugin.error();
    return;
  }
  loaded.library = {.path = path, .plugin = *plugin};
  loaded.row = row_of(loaded.library);
}

}  // namespace

bool names_policy_library(std::string_view name) {
  return name.ends_with(".so") || name.starts_with('/') || name.starts_with("./") || name.starts_with("../");
}

Result<const PolicyInfo*> policy_of_library(const std::string& path) {
  // Of the process, as what dlopen() loads is.
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<Loaded>> all;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Loaded>& loaded = all[path];
  if (loaded == nullptr) {
    loaded = std::make_unique<Loaded>();
    load(*loaded, path);
  }
  if (loaded->library.plugin == nullptr) return Unexpected{loaded->error};
  return &loaded->row;
}

}  // namespace gpusched
