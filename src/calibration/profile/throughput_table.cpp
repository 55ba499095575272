// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/profile/throughput_table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>

#include "gpusched/engine/cluster_state.hpp"
#include "src/base/field_parser.hpp"
#include "src/base/strict_json.hpp"
#include "src/calibration/profile/gang_kinds.hpp"
#include "src/calibration/profile/measured_csv.hpp"
#include "src/calibration/profile/step_times.hpp"

namespace gpusched {
namespace {

void note_type(ThroughputTable& table, const std::string& type) {
  if (std::find(table.gpu_types.begin(), table.gpu_types.end(), type) == table.gpu_types.end()) {
    table.gpu_types.push_back(type);
  }
}

void note_throughput(ThroughputTable& table, const std::pair<std::string, std::uint32_t>& gang, const std::string& type,
                     Span span, double throughput) {
  if (span == Span::node) {
    table.rows[gang][type] = throughput;
  } else {
    table.apart[gang][type][static_cast<std::size_t>(span)] = throughput;
  }
}

Result<ThroughputTable> read_csv(std::string_view text, const std::string& path) {
  ThroughputTable table{.file = path, .gpu_types = {}, .rows = {}};
  constexpr std::array<MeasuredColumn, 6> columns{
      {{"family"}, {"gpu_type"}, {"throughput"}, {"gpus", "0"}, {"span", "node"}, {"beside", ""}}};
  const auto read_row = [&](const MeasuredRow& row) -> Result<void> {
    const auto fail = [&](std::size_t which, const char* expected) {
      return Unexpected{Error{.message = expected, .file = path, .line = row.line, .field = columns[which].name}};
    };
    const auto throughput = parse_number(row.cells[2]);
    if (!throughput || *throughput < 0) return fail(2, "expected a number of 0 or more");
    const auto gpus = parse_integer(row.cells[3]);
    if (!gpus || *gpus < 0 || *gpus > 1'000'000) return fail(3, "expected a number of GPUs");
    if (row.cells[1].empty()) return fail(1, "expected a GPU type");
    const auto span = row.cells[4].empty() ? Span::node : value_from_name(span_names, row.cells[4]);
    if (!span) return fail(4, "expected node|islands|nodes|racks|sites");
    note_type(table, row.cells[1]);
    if (!row.cells[5].empty()) {
      if (*gpus > 1 || *span != Span::node) return fail(5, "expected nothing: a gang that shares a GPU has one task");
      table.pairs[{row.cells[0], row.cells[5]}][row.cells[1]] = *throughput;
      return {};
    }
    note_throughput(table, {row.cells[0], static_cast<std::uint32_t>(*gpus)}, row.cells[1], *span, *throughput);
    return {};
  };
  if (auto done = for_each_measured_row(text, path, columns, read_row); !done) return Unexpected{done.error()};
  if (table.rows.empty()) return Unexpected{Error{.message = "expected throughputs below a header", .file = path}};
  return table;
}

// "('ResNet-18 (batch size 16)', 2)" into model and GPUs.
std::optional<std::pair<std::string, std::uint32_t>> pair_of(const std::string& key) {
  const std::size_t comma = key.rfind("', ");
  if (!key.starts_with("('") || !key.ends_with(")") || comma == std::string::npos || comma < 2) return std::nullopt;
  const auto gpus = parse_integer(std::string_view(key).substr(comma + 3, key.size() - comma - 4));
  if (!gpus || *gpus < 1 || *gpus > 1'000'000) return std::nullopt;
  return std::pair(key.substr(2, comma - 2), static_cast<std::uint32_t>(*gpus));
}

// The throughputs of a job of one GPU beside each of `others`: [its own, the other's].
Result<void> note_pairs(ThroughputTable& table, const std::string& family, const std::string& type, const Json& others,
                        const std::string& field) {
  for (const auto& [key, both] : others.items()) {
    if (key == "null") continue;
    const auto beside = pair_of(key);
    const bool are_two = both.is_array() && both.size() == 2 && both[0].is_number() && both[0] >= 0;
    if (!beside || !are_two) {
      return Unexpected{Error{.message = beside ? "expected the throughputs of both jobs" : "expected ('MODEL', GPUS)",
                              .file = table.file,
                              .field = field + "/" + key}};
    }
    if (beside->second == 1) table.pairs[{family, beside->first}][type] = both[0].get<double>();
  }
  return {};
}

Result<ThroughputTable> read_gavel(std::string_view text, const std::string& path) {
  const auto json = parse_json_strictly(text, path);
  if (!json) return Unexpected{json.error()};
  ThroughputTable table{.file = path, .gpu_types = {}, .rows = {}};
  const auto fail = [&](const std::string& field, const char* expected) {
    return Unexpected{Error{.message = expected, .file = path, .field = field}};
  };
  if (!json->is_object()) return fail("", "expected an object of GPU types");
  constexpr std::string_view apart = "_unconsolidated";
  for (const auto& [name, jobs] : json->items()) {
    const bool is_apart = name.ends_with(apart);
    const std::string type = is_apart ? name.substr(0, name.size() - apart.size()) : name;
    if (!jobs.is_object()) return fail("/" + name, "expected an object of jobs");
    if (!is_apart) note_type(table, type);
    for (const auto& [key, others] : jobs.items()) {
      const auto job = pair_of(key);
      const std::string field = "/" + name + "/" + key;
      if (!job) return fail(field, "expected ('MODEL', GPUS)");
      if (!others.is_object() || !others.contains("null") || !others["null"].is_number() || others["null"] < 0) {
        return fail(field + "/null", "expected the throughput of the job alone");
      }
      note_throughput(table, *job, type, is_apart ? Span::nodes : Span::node, others["null"].get<double>());
      if (is_apart || job->second != 1) continue;
      if (auto done = note_pairs(table, job->first, type, others, field); !done) return Unexpected{done.error()};
    }
  }
  if (table.rows.empty()) return fail("", "expected throughputs");
  return table;
}

std::string on_gpus(const std::string& family, std::uint32_t gpus) {
  return "job family '" + family + "' on " + std::to_string(gpus) + (gpus == 1 ? " GPU" : " GPUs");
}

}  // namespace

const std::map<std::string, double>* ThroughputTable::row(const std::string& family, std::uint32_t gpus) const {
  auto found = rows.find({family, gpus});
  if (found == rows.end()) found = rows.find({family, 0});
  return found == rows.end() ? nullptr : &found->second;
}

Result<ThroughputTable> read_throughput_table(const std::string& path, const NameTable* families) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return table_of_step_times(path, families);
  const auto text = read_text_file(path);
  if (!text) return Unexpected{text.error()};
  const std::size_t first = text->find_first_not_of(" \t\r\n");
  return first != std::string::npos && (*text)[first] == '{' ? read_gavel(*text, path) : read_csv(*text, path);
}

namespace {

// The memory bandwidths of GPU types by the data sheets of the shipped profiles, and which of them were asked for.
class DataSheets {
 public:
  // In GB/s; error: no shipped profile of such a model.
  Result<double> memory_gbs(const std::string& gpu_type) {
    const auto seen = seen_.find(gpu_type);
    if (seen != seen_.end()) return seen->second;
    const auto profile = shipped_profile_of_model(gpu_type);
    if (!profile || !profile->peaks.contains("memory_gbs")) {
      return unexpected("there is no data sheet of GPU type " + gpu_type + " among the shipped profiles");
    }
    const Quantity& found = profile->peaks.at("memory_gbs");
    used.push_back({profile->profile_id, "/peaks/memory_gbs", found.value, found.unit, found.source, found.ref});
    return seen_[gpu_type] = found.value;
  }

  std::vector<UsedValue> used;

 private:
  std::map<std::string, double> seen_;
};

// Sets the rates on MIG instances that were measured: a GPU type named after the card and the profile, as
// A100-40GB_1g.5gb. Instances that were not run at the rate of the job's share.
void set_slices(RuntimeModel& model, std::uint32_t family, const detail::NodeClass& machine, const Cluster& cluster,
                const std::map<std::string, double>& row, double base) {
  const MigModel& card = mig_models[cluster.migs[machine.mig].model];
  for (std::uint32_t p = 0; p < card.profile_count; ++p) {
    const auto measured = row.find(cluster.gpu_types[machine.gpu_type] + "_" + std::string(card.all[p].name));
    if (measured == row.end() || measured->second <= 0) continue;
    const double rate = std::round(measured->second / base * reference_rate);
    model.set_slice(family, machine.gpu_type, p, static_cast<RatePpm>(std::clamp(rate, 1.0, 4e9)));
  }
}

// The throughputs of one kind of gang, gaps filled.
class GangThroughputs {
 public:
  GangThroughputs(const ThroughputTable& table, const std::map<std::string, double>* row, const std::string& reference,
                  ThroughputFallback fallback, DataSheets& sheets)
      : row_(row), fallback_(fallback), sheets_(sheets), known_on_(reference) {
    if (has(reference)) return;
    const auto measured = std::find_if(table.gpu_types.begin(), table.gpu_types.end(),
                                       [&](const std::string& type) { return has(type); });
    if (measured != table.gpu_types.end()) known_on_ = *measured;
  }

  // 0: it cannot run there.
  Result<double> on(const std::string& type) {
    if (row_ != nullptr && row_->contains(type)) return row_->at(type);
    if (fallback_ == ThroughputFallback::none) return 0.0;
    filled_ = true;
    const auto here = sheets_.memory_gbs(type), there = sheets_.memory_gbs(known_on_);
    if (!here) return here;
    if (!there) return there;
    return (has(known_on_) ? row_->at(known_on_) : 1.0) * *here / *there;
  }
  [[nodiscard]] bool filled() const { return filled_; }

 private:
  [[nodiscard]] bool has(const std::string& type) const {
    return row_ != nullptr && row_->contains(type) && row_->at(type) > 0;
  }

  const std::map<std::string, double>* row_;
  ThroughputFallback fallback_;
  DataSheets& sheets_;
  std::string known_on_;
  bool filled_ = false;
};

}  // namespace

Result<CalibratedRuntime> runtime_model_from_throughputs(const ThroughputTable& table, const std::string& reference,
                                                         const JobTable& jobs, const Cluster& cluster,
                                                         ThroughputFallback fallback, const JobChanges& changes) {
  const auto fail = [&](const std::string& message) {
    return Unexpected{Error{.message = message, .file = table.file}};
  };
  const std::string& measured_on = reference.empty() ? table.gpu_types.front() : reference;
  const ClusterState machines(cluster, jobs.gpu_specs(), Rng{});
  const auto anyone = static_cast<std::uint32_t>(cluster.vcs.size());
  RuntimeModel model(jobs.families().size(), static_cast<std::uint32_t>(cluster.gpu_types.size()));
  DataSheets sheets;
  std::string example;
  std::size_t filled = 0;
  for (const auto& [number, shape] : kinds_of_gangs(jobs, changes)) {
    const std::string& family = jobs.families()[number];
    const std::uint32_t gpus = gpus_of_gang(shape);
    const std::string gang = on_gpus(family, gpus);
    const std::map<std::string, double>* const row = table.row(family, gpus);
    if (row == nullptr && fallback == ThroughputFallback::none) return fail(gang + " has no throughput");
    GangThroughputs throughputs(table, row, measured_on, fallback, sheets);
    const auto base = throughputs.on(measured_on);
    if (!base) return fail(gang + ": " + base.error().message);
    if (*base <= 0) return fail(gang + " has no throughput on the reference, GPU type " + measured_on);
    for (const std::uint32_t place : machines.allowed_classes(shape, anyone)) {
      const detail::NodeClass& machine = machines.node_class(place);
      if (machine.gpus == 0) continue;
      const std::string& type = cluster.gpu_types[machine.gpu_type];
      const auto throughput = throughputs.on(type);
      if (!throughput) return fail(gang + ": " + throughput.error().message);
      if (*throughput <= 0) {
        const bool is_told = row != nullptr && row->contains(type);
        if (!is_told) return fail(gang + " has no throughput on GPU type " + type + ", which it may use");
        return fail(gang + " cannot run on GPU type " + type +
                    " (a throughput of 0), which its jobs may use: name the GPU types that they may use in the trace");
      }
      const double rate = std::round(*throughput / *base * reference_rate);
      const auto ppm = static_cast<RatePpm>(std::clamp(rate, 1.0, 4e9));
      if (shape.is_share()) {
        model.set(number, machine.gpu_type, ppm);
        model.set_throughput(number, 0, machine.gpu_type, *base, *throughput);
        if (machine.mig != no_index && row != nullptr) {
          set_slices(model, number, machine, cluster, *row, *base);
        }
      } else {
        model.set_for_gang(number, gpus, machine.gpu_type, ppm);
        model.set_throughput(number, gpus, machine.gpu_type, *base, *throughput);
      }
    }
    if (throughputs.filled() && filled++ == 0) example = gang;
  }
  CalibratedRuntime runtime{.model = std::move(model), .used = std::move(sheets.used)};
  if (filled > 0) {
    runtime.notes.push_back(table.file + " lacks throughputs of " + std::to_string(filled) +
                            (filled == 1 ? " kind" : " kinds") + " of gangs (" + example +
                            "): assumed from memory bandwidths of data sheets");
  }
  return runtime;
}

namespace {

// The throughput of a job of one GPU; 0: it cannot run there.
double alone_on(const ThroughputTable& table, const std::string& family, const std::string& type) {
  const std::map<std::string, double>* const row = table.row(family, 1);
  const bool known = row != nullptr && row->contains(type);
  return known ? row->at(type) : 0;
}

// What a task of a family adds to the time of one of another on a GPU of that type, in millionths of it; nothing where
// it was not measured.
std::optional<std::uint32_t> measured_extra(const ThroughputTable& table, const std::string& own,
                                            const std::string& beside, const std::string& type) {
  const auto pair = table.pairs.find({own, beside});
  if (pair == table.pairs.end()) return std::nullopt;
  const auto measured = pair->second.find(type);
  if (measured == pair->second.end() || measured->second <= 0) return std::nullopt;
  const double extra = std::round((alone_on(table, own, type) / measured->second - 1) * reference_rate);
  return static_cast<std::uint32_t>(std::clamp(extra, 0.0, 4e9));
}

// By number, the families with a job that asks for a share of a GPU.
std::vector<std::uint32_t> families_of_shares(const JobTable& jobs) {
  std::set<std::uint32_t> families;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    if (jobs.shape(JobId{i}).is_share()) families.insert(jobs.family(JobId{i}));
  }
  return {families.begin(), families.end()};
}

}  // namespace

Result<void> add_measured_pairs(CalibratedRuntime& runtime, const ThroughputTable& table, const JobTable& jobs,
                                const Cluster& cluster) {
  if (table.pairs.empty()) {
    return Unexpected{
        Error{.message = "has no throughputs of jobs that share a GPU: no column beside", .file = table.file}};
  }
  const std::vector<std::uint32_t> families = families_of_shares(jobs);
  std::size_t assumed = 0;
  std::string example;
  for (std::uint32_t type = 0; type < cluster.gpu_types.size(); ++type) {
    for (const std::uint32_t own : families) {
      if (alone_on(table, jobs.families()[own], cluster.gpu_types[type]) <= 0) continue;  // it cannot run there
      for (const std::uint32_t beside : families) {
        const auto extra =
            measured_extra(table, jobs.families()[own], jobs.families()[beside], cluster.gpu_types[type]);
        runtime.model.set_extra(own, beside, type, extra.value_or(reference_rate));
        if (extra || assumed++ > 0) continue;
        example =
            "'" + jobs.families()[own] + "' beside '" + jobs.families()[beside] + "' on " + cluster.gpu_types[type];
      }
    }
  }
  if (assumed > 0) {
    runtime.notes.push_back(table.file + " lacks throughputs of " + std::to_string(assumed) +
                            (assumed == 1 ? " pair" : " pairs") + " of families on a GPU (" + example +
                            "): assumed to take equal turns");
  }
  return {};
}

namespace {

// Of a gang on GPUs of one type; without slowdown where the table does not know it apart.
SpanSpeeds measured_speeds(const ThroughputTable& table, const std::string& family, std::uint32_t gpus,
                           const std::string& type, Span base) {
  const std::map<std::string, double>* const together = table.row(family, gpus);
  auto apart = table.apart.find({family, gpus});
  if (apart == table.apart.end()) apart = table.apart.find({family, 0});
  if (together == nullptr || apart == table.apart.end()) return no_slowdown;
  const auto alone = together->find(type);
  const auto spans = apart->second.find(type);
  if (alone == together->end() || alone->second <= 0 || spans == apart->second.end()) return no_slowdown;
  SpanSpeeds speeds = no_slowdown;
  for (std::size_t span = 1; span < span_count; ++span) {
    const double ppm = std::round(spans->second[span] / alone->second * reference_rate);
    speeds[span] = ppm > 0 ? static_cast<RatePpm>(std::min(ppm, 4e9)) : speeds[span - 1];
  }
  return relative_to(speeds, base);
}

}  // namespace

Result<SpanModel> span_model_of_throughputs(const ThroughputTable& table, SpanReference reference, const JobTable& jobs,
                                            const Cluster& cluster, const JobChanges& changes) {
  if (table.apart.empty()) {
    return Unexpected{Error{.message = "has no throughputs of gangs that are apart: no column span of other than node",
                            .file = table.file}};
  }
  const GpusTogether together = gpus_together(cluster);
  const auto types = static_cast<std::uint32_t>(cluster.gpu_types.size());
  SpanModel model(jobs.families().size(), types);
  for (const auto& [family, shape] : kinds_of_gangs(jobs, changes)) {
    if (shape.is_share()) continue;
    const std::uint32_t gpus = gpus_of_gang(shape);
    const Span base = reference == SpanReference::node ? Span::node : narrowest_span(together, gpus);
    for (std::uint32_t type = 0; type < types; ++type) {
      model.set_for_gang(family, gpus, type,
                         measured_speeds(table, jobs.families()[family], gpus, cluster.gpu_types[type], base));
    }
  }
  return model;
}

}  // namespace gpusched
