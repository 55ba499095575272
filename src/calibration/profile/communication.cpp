// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/profile/communication.hpp"

#include <algorithm>
#include <bit>

#include "src/base/json_fields.hpp"
#include "src/base/number_text.hpp"
#include "src/base/strict_json.hpp"
#include "src/calibration/profile/gang_kinds.hpp"

namespace gpusched {
namespace {

constexpr double bytes_per_mb = 1e6;
constexpr double us_per_ms = 1e3;
constexpr double bytes_per_us_of_gb_per_s = 1e3;

const LinkClass& link_at(const Fabric& fabric, Span span) { return fabric.links[static_cast<std::size_t>(span)]; }

void read_family(JsonFields& fields, CommunicationTable& table) {
  std::string family;
  std::uint32_t gpus = 0;
  FamilyCommunication row;
  constexpr double most_ms = 1e9, most_mb = 1e9, most_layers = 1e6, most_gpus = 1e6;
  fields.require("family");
  fields.require("compute_ms");
  fields.read("family", family);
  fields.read("gpus", gpus, 1, most_gpus);
  fields.read("compute_ms", row.compute_ms, 1e-6, most_ms);
  fields.read("gradient_mb", row.gradient_mb, 0, most_mb);
  fields.read_word("all_reduce", row.all_reduce, all_reduce_names);
  fields.read("overlap", row.overlap, 0, 1);
  fields.read_object("tensor", [&](JsonFields& tensor) {
    tensor.read("gpus", row.tensor_gpus, 1, most_gpus);
    tensor.read("layers", row.layers, 0, most_layers);
    tensor.read("all_reduces_per_layer", row.all_reduces_per_layer, 0, most_layers);
    tensor.read("mb", row.tensor_mb, 0, most_mb);
  });
  fields.read_object("pipeline", [&](JsonFields& pipeline) {
    pipeline.read("stages", row.stages, 1, most_gpus);
    pipeline.read("microbatches", row.microbatches, 1, most_gpus);
    pipeline.read("activation_mb", row.activation_mb, 0, most_mb);
  });
  fields.read("skewed", row.skewed);
  if (fields.good() && !table.rows.emplace(std::pair(family, gpus), row).second) {
    fields.fail("family", "'" + family + "'" + (gpus == 0 ? "" : " on " + counted(gpus, "GPU")) + " has a row already");
  }
}

std::string gang_text(const std::string& family, std::uint32_t gpus) {
  return "job family '" + family + "' on " + counted(gpus, "GPU");
}

// Why the gang cannot work as its row says; empty where it can.
std::string misfit(const FamilyCommunication& row, std::uint32_t gpus) {
  const std::uint64_t group = std::uint64_t{row.tensor_gpus} * row.stages;
  if (gpus % group == 0) return {};
  return std::to_string(gpus) + " is no multiple of " + std::to_string(row.tensor_gpus) + " tensor-parallel GPUs x " +
         std::to_string(row.stages) + " stages; give gangs of " + counted(gpus, "GPU") + " a row of their own";
}

SpanSpeeds speeds_of(const FamilyCommunication& row, std::uint32_t gpus, double rate, SpanReference reference,
                     const Fabric& fabric) {
  const Span base = reference == SpanReference::node ? Span::node : narrowest_span(fabric.together, gpus);
  const double alone = step_us(row, gpus, base, rate, fabric);
  SpanSpeeds speeds = no_slowdown;
  for (std::size_t span = static_cast<std::size_t>(base) + 1; span < span_count; ++span) {
    if (fabric.links[span].bandwidth_gb_per_s <= 0) continue;  // nothing is that far apart
    const double part = alone / step_us(row, gpus, static_cast<Span>(span), rate, fabric);
    speeds[span] = static_cast<RatePpm>(std::clamp(std::round(part * reference_rate), 1.0, 4e9));
  }
  return speeds;
}

}  // namespace

double message_us(double bytes, const LinkClass& link) {
  return link.latency_us + bytes / (link.bandwidth_gb_per_s * bytes_per_us_of_gb_per_s);
}

double all_reduce_us(AllReduce algorithm, std::uint64_t gpus, double bytes, const LinkClass& link) {
  if (gpus < 2) return 0;
  if (algorithm == AllReduce::ring) {
    return 2 * static_cast<double>(gpus - 1) * message_us(bytes / static_cast<double>(gpus), link);
  }
  return 2 * static_cast<double>(std::bit_width(gpus - 1)) * message_us(bytes, link);
}

double step_us(const FamilyCommunication& family, std::uint32_t gpus, Span span, double rate, const Fabric& fabric) {
  const auto link_of_group = [&](std::uint32_t group) -> const LinkClass& {
    return link_at(fabric, group == gpus ? span : std::min(span, narrowest_span(fabric.together, group)));
  };
  const double compute = family.compute_ms * us_per_ms / rate;
  const double stages = family.stages, microbatches = family.microbatches;
  double turn = compute / microbatches;
  if (family.tensor_gpus > 1) {
    turn += family.layers / stages * family.all_reduces_per_layer *
            all_reduce_us(family.all_reduce, family.tensor_gpus, family.tensor_mb * bytes_per_mb,
                          link_of_group(family.tensor_gpus));
  }
  if (family.stages > 1) turn += 2 * message_us(family.activation_mb * bytes_per_mb, link_at(fabric, span));
  double gradients = 0;
  const std::uint32_t replicas = gpus / family.tensor_gpus / family.stages;
  if (replicas > 1 && family.gradient_mb > 0) {
    gradients = all_reduce_us(family.all_reduce, replicas, family.gradient_mb * bytes_per_mb,
                              link_of_group(gpus / family.stages));
  }
  return (microbatches + stages - 1) * turn + std::max(0.0, gradients - family.overlap * compute);
}

const FamilyCommunication* CommunicationTable::row(const std::string& family, std::uint32_t gpus) const {
  for (const std::string& name : {family, std::string(any_other_family)}) {
    for (const std::uint32_t size : {gpus, 0u}) {
      if (const auto found = rows.find({name, size}); found != rows.end()) return &found->second;
    }
  }
  return nullptr;
}

Result<CommunicationTable> communication_from_json(std::string_view text, const std::string& file) {
  const auto json = parse_json_strictly(text, file);
  if (!json) return Unexpected{json.error()};
  CommunicationTable table{.file = file, .rows = {}};
  JsonFields fields(*json, file);
  fields.require("families");
  fields.read_objects("families", [&](JsonFields& family, std::size_t) { read_family(family, table); });
  if (table.rows.empty()) fields.refuse("families", "a list of at least one family");
  if (auto done = fields.finish(); !done) return Unexpected{done.error()};
  return table;
}

Result<CommunicationTable> read_communication(const std::string& path) {
  const auto text = read_text_file(path);
  if (!text) return Unexpected{text.error()};
  return communication_from_json(*text, path);
}

Result<SpanModel> span_model_of_communication(const CommunicationTable& table, SpanReference reference,
                                              const RuntimeModel& devices, const JobTable& jobs, const Cluster& cluster,
                                              const JobChanges& changes) {
  const auto fail = [&](const std::string& message) {
    return Unexpected{Error{.message = message, .file = table.file}};
  };
  if (cluster.links.empty()) {
    return unexpected("needs the links of the cluster: give a cluster file with \"links\"");
  }
  const Fabric fabric{.links = cluster.links, .together = gpus_together(cluster)};
  const auto types = static_cast<std::uint32_t>(cluster.gpu_types.size());
  SpanModel model(jobs.families().size(), types);
  for (const auto& [family, shape] : kinds_of_gangs(jobs, changes)) {
    const std::string& name = jobs.families()[family];
    const std::uint32_t gpus = gpus_of_gang(shape);
    const FamilyCommunication* const row = table.row(name, gpus);
    if (row == nullptr) return fail(gang_text(name, gpus) + " has no row, and there is none of family '*'");
    if (row->skewed) model.mark_skewed(family);
    if (gpus == 1) continue;
    if (const std::string why = misfit(*row, gpus); !why.empty()) return fail(gang_text(name, gpus) + ": " + why);
    const std::span<const RatePpm> rates = devices.rates(family, shape);
    for (std::uint32_t type = 0; type < types; ++type) {
      const double rate = type < rates.size() ? static_cast<double>(rates[type]) / reference_rate : 1;
      model.set_for_gang(family, gpus, type, speeds_of(*row, gpus, rate, reference, fabric));
    }
  }
  return model;
}

}  // namespace gpusched
