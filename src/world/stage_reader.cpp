// SPDX-License-Identifier: Apache-2.0
#include "src/world/stage_reader.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/field_parser.hpp"
#include "src/base/json_fields.hpp"
#include "src/base/nearest_name.hpp"
#include "src/base/strict_json.hpp"

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

// Numbers of items in place of those that `of` names.
void read_exceptions(JsonFields& fields, const Json& object, const NameTable& names, StageModel& model,
                     std::vector<std::uint32_t>& items) {
  fields.read_object("of", [&](JsonFields& of) {
    if (!object.contains("of") || !object["of"].is_object()) return;
    for (const auto& [value, entry] : object["of"].items()) {
      const std::uint32_t number = names.find(value);
      if (number == no_index) of.fail(value, "no job has that value" + suggest_nearest(value, names.names()));
      if (number == no_index || number >= items.size()) return;
      of.read_object(value, [&](JsonFields& item) { read_item(item, model.items[items[number]]); });
    }
  });
}

// An item for each value of the column, or one for all jobs.
void read_needs(JsonFields& fields, const char* key, const Json& top, const JobTable& jobs, StageModel& model,
                StageModel::Needs& needs) {
  if (!top.is_object() || !top.contains(key)) return;
  fields.read_object(key, [&](JsonFields& own) {
    const Json& object = top[key];
    if (!object.is_object()) return;
    StageModel::Item item;
    read_item(own, item);
    if (object.contains("by")) own.read_word("by", needs.column, column_names);
    const NameTable* names = needs.column == StageColumn::none ? nullptr : &names_of(jobs, needs.column);
    if (names != nullptr && names->size() <= 1) own.fail("by", "no job of the trace has one");
    const std::uint32_t count = names == nullptr ? 1 : std::max(names->size(), 1u);
    for (std::uint32_t i = 0; i < count; ++i) {
      needs.items.push_back(static_cast<std::uint32_t>(model.items.size()));
      model.items.push_back(item);
    }
    if (names != nullptr) {
      read_exceptions(own, object, *names, model, needs.items);
    } else if (object.contains("of")) {
      own.fail("of", "expected by with it");
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

Result<StageModel> stages_from_json(std::string_view text, const std::string& file, const JobTable& jobs) {
  const auto json = parse_json_strictly(text, file);
  if (!json) return Unexpected{json.error()};
  StageModel model;
  JsonFields fields(*json, file);
  read_seconds(fields, "provision_s", model.provision);
  read_seconds(fields, "keep_alive_s", model.keep_alive);
  double cache_gib = 0, transfer_gib_per_s = 0, storage_gib_per_s = 0, uplink_gib_per_s = 0, checkpoint_gib = 0;
  const auto has = [&](const char* key) { return json->is_object() && json->contains(key); };
  fields.read("cache_gib", cache_gib, 0, most_gib);
  if (has("cache_gib")) model.cache_bytes = std::llround(cache_gib * bytes_per_gib);
  fields.read("transfer_gib_per_s", transfer_gib_per_s, least_rate, most_rate);
  model.transfer_bytes_per_s = transfer_gib_per_s * bytes_per_gib;
  fields.read("storage_gib_per_s", storage_gib_per_s, least_rate, most_rate);
  if (has("storage_gib_per_s")) model.storage_bytes_per_s = storage_gib_per_s * bytes_per_gib;
  fields.read("uplink_gib_per_s", uplink_gib_per_s, least_rate, most_rate);
  if (has("uplink_gib_per_s")) model.uplink_bytes_per_s = uplink_gib_per_s * bytes_per_gib;
  fields.read("checkpoint_gib_per_gpu", checkpoint_gib, 0, most_gib);
  model.checkpoint_bytes_per_gpu = checkpoint_gib * bytes_per_gib;
  read_needs(fields, "images", *json, jobs, model, model.images);
  read_needs(fields, "weights", *json, jobs, model, model.weights);
  if (auto done = fields.finish(); !done) return Unexpected{done.error()};
  if (auto done = check(model, file); !done) return Unexpected{done.error()};
  if (model.transfer_bytes_per_s == 0) model.transfer_bytes_per_s = bytes_per_gib;  // of nothing
  return model;
}

Result<StageModel> read_stages(const std::string& path, const JobTable& jobs) {
  const auto text = read_text_file(path);
  if (!text) return Unexpected{text.error()};
  return stages_from_json(*text, path, jobs);
}

}  // namespace gpusched
