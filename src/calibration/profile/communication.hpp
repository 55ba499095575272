// SPDX-License-Identifier: Apache-2.0
/// How job families communicate, and how much slower that makes their gangs when they are apart.
///
/// A training step is computed as m micro-batches pass the p stages of a pipeline, in m + p - 1 turns of
///   compute / m + layers / p x all-reduces a layer x all-reduce(t) + 2 messages to the next stage (p > 1),
/// so that (p - 1) / (m + p - 1) of it is the pipeline's bubble (Narayanan et al., SC'21, section 2.2; GPipe, 2019),
/// and ends with the all-reduce of the gradients between the d = n / (t p) replicas, as far as computing does not hide
/// it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpusched/core/named_value.hpp"
#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_changes.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/data/runtime_model.hpp"
#include "src/calibration/profile/span_speeds.hpp"

namespace gpusched {

/// How an all-reduce is done.
enum class AllReduce : std::uint8_t {
  ring,  ///< 2 (n - 1) steps of a part of B / n each (Patarasuk and Yuan, JPDC 69, 2009)
  tree,  ///< a reduction and a broadcast along a binomial tree, ceil(log2 n) steps of all B bytes each (Thakur,
         ///< Rabenseifner and Gropp, IJHPCA 19, 2005)
};
inline constexpr std::array<NamedValue<AllReduce>, 2> all_reduce_names{
    {{"ring", AllReduce::ring}, {"tree", AllReduce::tree}}};

/// Microseconds that a message of so many bytes takes: latency + bytes / bandwidth.
double message_us(double bytes, const LinkClass& link);

/// Microseconds of an all-reduce of `bytes` on each of `gpus` GPUs, any two neighbours of which are joined by `link`;
/// 0 for one GPU.
double all_reduce_us(AllReduce algorithm, std::uint64_t gpus, double bytes, const LinkClass& link);

/// How gangs of a family work, each on its GPU; the defaults communicate nothing.
struct FamilyCommunication {
  double compute_ms = 0;   ///< of a step, on the device that the trace's run times are of, without waits
  double gradient_mb = 0;  ///< 1e6 bytes that a GPU gives to the all-reduce of a step
  AllReduce all_reduce = AllReduce::ring;  ///< of the gradients and of tensor parallelism
  double overlap = 0;                ///< the part of compute_ms behind which that of the gradients can hide, 0 to 1
  std::uint32_t tensor_gpus = 1;     ///< t: GPUs that share each layer
  double layers = 0;                 ///< of the whole model
  double all_reduces_per_layer = 4;  ///< of a micro-batch, 2 forward and 2 backward (Megatron-LM, 2019)
  double tensor_mb = 0;              ///< of each of these
  std::uint32_t stages = 1;          ///< p
  std::uint32_t microbatches = 1;    ///< m
  double activation_mb = 0;          ///< of a micro-batch, to the next stage and back
  bool skewed = false;               ///< a few very large tensors: Placement::skew keeps its gangs together
};

/// What gangs communicate over.
struct Fabric {
  std::vector<LinkClass> links = {};  ///< of each Span
  GpusTogether together = {};
};

/// Microseconds of a step of a gang of `gpus` whose tasks are `span` apart, at `rate` times the speed of the reference.
/// Groups lie as in Megatron-LM: tensor innermost, then data, then pipeline, each on as few nodes as hold it; a group
/// that is the whole gang spans what the gang spans. Precondition: `gpus` is a multiple of tensor_gpus x stages, the
/// fabric has a link for `span`.
double step_us(const FamilyCommunication& family, std::uint32_t gpus, Span span, double rate, const Fabric& fabric);

/// In a table, the name of all families without a row.
inline constexpr std::string_view any_other_family = "*";

/// Families by name; "*" stands for all that have no row.
struct CommunicationTable {
  std::string file;  ///< for messages
  /// By family and GPUs of the gang (0: a gang of any size).
  std::map<std::pair<std::string, std::uint32_t>, FamilyCommunication> rows;

  /// The row of a gang: its own, else that of any size, else those of "*"; null where there is none.
  [[nodiscard]] const FamilyCommunication* row(const std::string& family, std::uint32_t gpus) const;
};

/// Reads {"families": [{"family": "bert", "gpus": 16, "compute_ms": 250, "gradient_mb": 1340, "all_reduce": "ring",
/// "overlap": 0.5, "tensor": {"gpus": 8, "layers": 24, "all_reduces_per_layer": 4, "mb": 8}, "pipeline": {"stages": 2,
/// "microbatches": 8, "activation_mb": 8}, "skewed": false}]}, strictly; only `family` and `compute_ms` are needed.
/// Errors carry the JSON path. `file` is for messages only.
Result<CommunicationTable> communication_from_json(std::string_view text, const std::string& file);
/// communication_from_json() of a file.
Result<CommunicationTable> read_communication(const std::string& path);

/// How fast the gangs of `jobs`, and of the sizes that `changes` give them, are at each span on `cluster`: the time of
/// their step at `reference` over that at the span, on each GPU type at the rate that `devices` gives. Tasks that share
/// a GPU communicate nothing. Errors, in one line: a cluster without links, a family without a row, a gang that is no
/// multiple of its family's groups.
Result<SpanModel> span_model_of_communication(const CommunicationTable& table, SpanReference reference,
                                              const RuntimeModel& devices, const JobTable& jobs, const Cluster& cluster,
                                              const JobChanges& changes = {});

}  // namespace gpusched
