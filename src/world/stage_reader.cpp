// SPDX-License-Identifier: Apache-2.0
#include "src/world/stage_reader.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/json_fields.hpp"
#include "src/world/absent_names.hpp"

namespace gpusched {
namespace {

constexpr double most_seconds = 1e9, most_gib = 1e6, least_rate = 1e-6, most_rate = 1e6;

constexpr std::array<NamedValue<StageColumn>, 5> column_names{{{"user", StageColumn::user},
                                                               {"group", StageColumn::group},
                                                               {"vc", StageColumn::vc},
                                                               {"name", StageColumn::name},
                                                               {"family", StageColumn::family}}};

const NameTable& names_of(const JobTable& jobs, StageColumn column) {
  switch (column) {
    case StageColumn::user: return jobs.users();
    case StageColumn::group: return jobs.groups();
    case StageColumn::vc: return jobs.vcs();
    case StageColumn::name: return jobs.names();
    default: return jobs.families();
  }
}

void read_seconds(JsonFields& fields, const char* key, Time& time) {
  double seconds = to_seconds(time);
  fields.read(key, seconds, 0, most_seconds);
  time = from_seconds(seconds);
}

void read_item(JsonFields& fields, StageModel::Item& item) {
  double gib = static_cast<double>(item.bytes) / bytes_per_gib;
  fields.read("gib", gib, 0, most_gib);
  item.bytes = std::llround(gib * bytes_per_gib);
  read_seconds(fields, "unpack_s", item.unpack);
  read_seconds(fields, "load_s", item.load);
}

// Numbers of items in place of those that `of` names. What no job has is read too, and added to `absent`.
void read_exceptions(JsonFields& fields, const NameTable& names, StageModel& model, std::vector<std::uint32_t>& items,
                     std::vector<std::string>& absent) {
  fields.read_members("of", [&](JsonFields& of, const std::string& value, const Json& entry) {
    const std::uint32_t number = names.find(value);
    StageModel::Item nobodys;
    if (number == no_index) absent.push_back(value);
    StageModel::Item& item = number < items.size() ? model.items[items[number]] : nobodys;
    of.read_nested(value, entry, [&](JsonFields& own) { read_item(own, item); });
  });
}

// An item for each value of the column, or one for all jobs.
void read_needs(JsonFields& fields, const char* key, const JobTable& jobs, StagesOfJobs& stages,
                StageModel::Needs& needs, const std::string& file) {
  const Json* object = fields.find(key);
  if (object == nullptr) return;
  fields.read_nested(key, *object, [&](JsonFields& own) {
    StageModel& model = stages.model;
    StageModel::Item item;
    read_item(own, item);
    own.read_word("by", needs.column, column_names);
    if (!own.good()) return;
    const NameTable* names = needs.column == StageColumn::none ? nullptr : &names_of(jobs, needs.column);
    const bool is_unnamed = names != nullptr && names->size() <= 1;
    if (is_unnamed) stages.notes.push_back(file + ": " + own.path() + "/by: no job of the trace has one");
    const std::uint32_t count = names == nullptr ? 1 : std::max(names->size(), 1u);
    for (std::uint32_t i = 0; i < count; ++i) {
      needs.items.push_back(static_cast<std::uint32_t>(model.items.size()));
      model.items.push_back(item);
    }
    if (names == nullptr) {
      if (own.find("of") != nullptr) own.fail("of", "expected by with it");
      return;
    }
    std::vector<std::string> absent;
    read_exceptions(own, *names, model, needs.items, absent);
    if (is_unnamed) return;
    for (std::string& note : absent_names_note(file, own.path() + "/of", absent, names->names())) {
      stages.notes.push_back(std::move(note));
    }
  });
}

Result<void> check(const StageModel& model, const std::string& file) {
  const auto fail = [&](std::string message, std::string field) {
    return Unexpected{Error{.message = std::move(message), .file = file, .field = std::move(field)}};
  };
  const bool moves = model.checkpoint_bytes_per_gpu > 0 || std::any_of(model.items.begin(), model.items.end(),
                                                                       [](const auto& item) { return item.bytes > 0; });
  if (moves && model.transfer_bytes_per_s == 0)
    return fail("is missing, and something is to be moved", "/transfer_gib_per_s");
  const auto takes_time = [](const auto& item) { return item.unpack > Time{} || item.load > Time{}; };
  const bool any = moves || model.provision > Time{} || std::any_of(model.items.begin(), model.items.end(), takes_time);
  if (!any)
    return fail("nothing takes time in it: expected provision_s, images, weights or checkpoint_gib_per_gpu", "");
  return {};
}

}  // namespace

Result<StagesOfJobs> stages_from_json(std::string_view text, const std::string& file, const JobTable& jobs) {
  const auto json = parse_json_strictly(text, file);
  if (!json) return Unexpected{json.error()};
  StagesOfJobs stages;
  StageModel& model = stages.model;
  JsonFields fields(*json, file);
  read_seconds(fields, "provision_s", model.provision);
  read_seconds(fields, "keep_alive_s", model.keep_alive);
  double cache_gib = 0, transfer_gib_per_s = 0, storage_gib_per_s = 0, uplink_gib_per_s = 0, checkpoint_gib = 0;
  fields.read("cache_gib", cache_gib, 0, most_gib);
  if (fields.has("cache_gib")) model.cache_bytes = std::llround(cache_gib * bytes_per_gib);
  fields.read("transfer_gib_per_s", transfer_gib_per_s, least_rate, most_rate);
  model.transfer_bytes_per_s = transfer_gib_per_s * bytes_per_gib;
  fields.read("storage_gib_per_s", storage_gib_per_s, least_rate, most_rate);
  if (fields.has("storage_gib_per_s")) model.storage_bytes_per_s = storage_gib_per_s * bytes_per_gib;
  fields.read("uplink_gib_per_s", uplink_gib_per_s, least_rate, most_rate);
  if (fields.has("uplink_gib_per_s")) model.uplink_bytes_per_s = uplink_gib_per_s * bytes_per_gib;
  fields.read("checkpoint_gib_per_gpu", checkpoint_gib, 0, most_gib);
  model.checkpoint_bytes_per_gpu = checkpoint_gib * bytes_per_gib;
  read_needs(fields, "images", jobs, stages, model.images, file);
  read_needs(fields, "weights", jobs, stages, model.weights, file);
  if (auto done = fields.finish(); !done) return Unexpected{done.error()};
  if (auto done = check(model, file); !done) return Unexpected{done.error()};
  if (model.transfer_bytes_per_s == 0) model.transfer_bytes_per_s = bytes_per_gib;  // of nothing
  return stages;
}

Result<StagesOfJobs> read_stages(const std::string& path, const JobTable& jobs) {
  const auto text = read_text_file(path);
  if (!text) return Unexpected{text.error()};
  return stages_from_json(*text, path, jobs);
}

}  // namespace gpusched
