// SPDX-License-Identifier: Apache-2.0
/// The networks of learned schedulers, without Torch: their shape, their parameters in one flat vector, and the forward
/// pass that acts. The trainer (src/rl) differentiates the same formulas over the same vector.
///
/// Every token is scored; the logit of an action is alpha x prior + score. An untrained
/// network has scores of zero: its best action is the heuristic's, and it never waits while a job may start.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "gpusched/core/named_value.hpp"
#include "gpusched/core/result.hpp"
#include "gpusched/core/rng.hpp"
#include "gpusched/learn/agenda_options.hpp"
#include "gpusched/learn/observation.hpp"
#include "src/policies/learned/lanes/dense_layer.hpp"

namespace gpusched {

/// How the set of waiting jobs is read.
enum class NetworkKind : std::uint8_t {
  kernel,      ///< each job alone with the global features, all that `index` sees: 26-32-16-8-1
  deepsets,    ///< each job with a context: mean and maximum over the encoded set (Zaheer et al., 2017), groups, global
  attention,   ///< deepsets over tokens that first look at each other (one block of multi-head attention)
  index,       ///< each job alone, linear in the products of `index_terms`: few enough parameters for a direct search
  rank,        ///< the same of `rank_terms`, for mode preempt and nothing else
  sc20_kernel  ///< each job alone, 8 features: 8-32-16-8-1, the 961 parameters of RLScheduler (SC'20)
};

inline constexpr std::array<NamedValue<NetworkKind>, 6> network_kind_names{{
    {"kernel", NetworkKind::kernel},
    {"deepsets", NetworkKind::deepsets},
    {"attention", NetworkKind::attention},
    {"index", NetworkKind::index},
    {"rank", NetworkKind::rank},
    {"kernel@sc20", NetworkKind::sc20_kernel},
}};

struct NetworkSpec {
  NetworkKind kind = NetworkKind::deepsets;
  std::uint32_t width = 32;         ///< of hidden layers; a multiple of heads
  std::uint32_t heads = 4;          ///< attention only
  std::uint32_t critic_width = 64;  ///< of the critic's hidden layers
  std::uint32_t hidden = 0;         ///< index and rank: hidden units that correct the linear score; 0 = none
  double alpha = 3;                 ///< initial weight of the prior; it is learned
  double hold_s = 0;            ///< index and rank, > 0: the weights are an action, which holds for so long (steering)
  std::uint32_t hold_jobs = 0;  ///< the same in submissions instead of seconds; one of the two is 0
  double deviation = 0.1;       ///< of that action's weights when training begins; it is learned
  bool places = false;          ///< index: AgendaOptions::node_speeds' choices are scored by terms of their own
  bool signals = false;         ///< index: AgendaOptions::signals' features are read

  /// Whether the weights are an action that holds for a while.
  [[nodiscard]] bool steers() const { return hold_s > 0 || hold_jobs > 0; }

  friend bool operator==(const NetworkSpec&, const NetworkSpec&) = default;
};

/// Where everything lies in the flat vector. The policy comes first, the critic last.
struct NetworkLayout {
  std::size_t alpha = 0;
  DenseLayer encode1, encode2;        ///< job features -> width -> width; kernel: job and global -> 32 -> 16
  DenseLayer query, key, value, mix;  ///< attention; mix follows the heads
  DenseLayer group;                   ///< group features -> width / 2
  DenseLayer context;                 ///< pooled jobs and groups, global -> width
  DenseLayer score1, score2;  ///< [job, context] -> width -> 1; kernel: 16 -> 8 -> 1; index and rank: score2 alone
  DenseLayer wait;            ///< context -> 1; index: index_wait_features -> 1
  /// NetworkSpec::signals: signals -> 1, for WAIT, and to the weight of a job's log_known
  DenseLayer signal_wait, signal_known;
  DenseLayer place, place_wait;   ///< NetworkSpec::places: place_terms -> 1, place_wait_features -> 1
  DenseLayer correct1, correct2;  ///< NetworkSpec::hidden: terms (index: and global) -> hidden -> 1, added to the score
  DenseLayer steer1, steer2;      ///< steers(): global -> width -> what is added to each weight
  std::size_t log_deviation = 0;  ///< steers(): from here on, one for each weight
  std::size_t steered_begin = 0, steered = 0;  ///< steers(): the weights that an action sets
  DenseLayer critic1, critic2, critic3;
  std::size_t policy_size = 0;  ///< parameters that acting needs
  std::size_t size = 0;
};

/// Features of a job that the network sc20_kernel reads: the first ones.
inline constexpr std::uint32_t sc20_kernel_features = 8;
/// A product that the index network weighs: a feature of the job times another one, a global feature, or 1. Features
/// are normalised first. Every factor is also a term of its own, so that the normaliser's shifts can be absorbed.
struct IndexTerm {
  enum Times : std::uint8_t { one, job, global };
  std::uint8_t feature;
  Times times = one;
  std::uint8_t by = 0;
};
inline constexpr std::array<IndexTerm, 22> index_terms{{
    {log_known},
    {log_gpus},
    {gpus_over_total},
    {log_wait},
    {log_slowdown},
    {user_share},
    {fills_nodes},
    {log_known, IndexTerm::job, log_known},
    {log_known, IndexTerm::job, log_gpus},
    {log_known, IndexTerm::job, gpus_over_total},
    {log_gpus, IndexTerm::job, log_gpus},
    {fits_now},
    {fits_now, IndexTerm::job, log_known},
    {fits_now, IndexTerm::job, gpus_over_total},
    {fits_now, IndexTerm::global, free_fraction},
    {fits_now, IndexTerm::global, log_queue},
    {log_earliest_start},
    {log_earliest_start, IndexTerm::job, log_earliest_start},
    {log_earliest_start, IndexTerm::job, log_known},
    {log_earliest_start, IndexTerm::job, gpus_over_total},
    {log_earliest_start, IndexTerm::global, free_fraction},
    {log_earliest_start, IndexTerm::global, log_queue},
}};
/// Products of RankFeature, which the rank network weighs.
inline constexpr std::array<IndexTerm, 24> rank_terms{{
    {rank_running},
    {rank_service},
    {rank_wait},
    {rank_gpus},
    {rank_known},
    {rank_left},
    {rank_overrun},
    {rank_ending},
    {rank_attempts},
    {rank_running, IndexTerm::job, rank_service},
    {rank_running, IndexTerm::job, rank_gpus},
    {rank_running, IndexTerm::job, rank_left},
    {rank_service, IndexTerm::job, rank_service},
    {rank_service, IndexTerm::job, rank_gpus},
    {rank_service, IndexTerm::job, rank_known},
    {rank_service, IndexTerm::job, rank_wait},
    {rank_gpus, IndexTerm::job, rank_gpus},
    {rank_gpus, IndexTerm::job, rank_known},
    {rank_gpus, IndexTerm::job, rank_wait},
    {rank_gpus, IndexTerm::job, rank_ending},
    {rank_known, IndexTerm::job, rank_known},
    {rank_wait, IndexTerm::job, rank_wait},
    {rank_left, IndexTerm::job, rank_gpus},
    {rank_ending, IndexTerm::job, rank_service},
}};
/// Global features that WAIT's score is linear in.
inline constexpr std::array<std::uint8_t, 2> index_wait_features{free_fraction, log_queue};
/// Products of PlaceFeature, which the index network weighs in a choice of GPU types. What is alike in all tokens of a
/// choice tells whether to wait.
inline constexpr std::array<IndexTerm, 22> place_terms{{
    {place_log_wait},
    {place_log_here},
    {place_log_best},
    {place_log_gpus},
    {place_rate},
    {place_free_rate},
    {place_speed},
    {place_type_free},
    {place_log_until},
    {place_keener},
    {place_one_node},
    {place_rate, IndexTerm::job, place_rate},
    {place_rate, IndexTerm::job, place_log_here},
    {place_rate, IndexTerm::job, place_log_until},
    {place_rate, IndexTerm::job, place_keener},
    {place_rate, IndexTerm::global, log_queue},
    {place_rate, IndexTerm::global, log_queued_work},
    {place_rate, IndexTerm::global, free_fraction},
    {place_log_until, IndexTerm::job, place_log_best},
    {place_log_until, IndexTerm::global, log_queue},
    {place_keener, IndexTerm::job, place_type_free},
    {place_keener, IndexTerm::global, log_queue},
}};
/// Global features that the score of WAIT is linear in there.
inline constexpr std::array<std::uint8_t, 2> place_wait_features{log_queue, log_queued_work};
/// What the critic reads: mean job and group tokens, global and privileged features.
inline constexpr std::uint32_t critic_inputs = std::uint32_t{job_features} + std::uint32_t{group_features} +
                                               std::uint32_t{global_features} + std::uint32_t{privileged_features};

/// The network rank, and no other, gives the order that mode preempt asks for.
constexpr bool matches(NetworkKind kind, ActionMode mode) {
  return (kind == NetworkKind::rank) == (mode == ActionMode::preempt);
}

/// The network that an agent of these options has: index scores the choices of node_speeds by terms of their own, and
/// reads signals.
constexpr NetworkSpec for_agenda(NetworkSpec spec, const AgendaOptions& agenda) {
  spec.places = spec.kind == NetworkKind::index && agenda.node_speeds;
  spec.signals = spec.kind == NetworkKind::index && agenda.signals;
  return spec;
}

/// Preconditions: width and heads positive, width a multiple of heads and even.
NetworkLayout layout_of(const NetworkSpec& spec);

/// Shifts and scales of the inputs, saved with the model.
struct Normaliser {
  std::vector<float> job_mean = std::vector<float>(job_features, 0.0f);
  std::vector<float> job_scale = std::vector<float>(job_features, 1.0f);
  std::vector<float> global_mean = std::vector<float>(global_features, 0.0f);
  std::vector<float> global_scale = std::vector<float>(global_features, 1.0f);

  friend bool operator==(const Normaliser&, const Normaliser&) = default;

  /// Mean and 1 / standard deviation over these observations (features that hardly vary keep scale 1).
  static Normaliser fit(std::span<const Observation> observations);
};

/// Normaliser::fit() over observations that are not all there at once.
class NormaliserFit {
 public:
  void add(const Observation& observation);
  [[nodiscard]] Normaliser normaliser() const;

 private:
  struct Columns {
    std::vector<double> sum, squares;
    double rows = 0;
  };
  static void add(const std::vector<float>& values, Columns& columns);
  static void scale(const Columns& columns, std::vector<float>& mean, std::vector<float>& scale);

  Columns jobs_{.sum = std::vector<double>(job_features), .squares = std::vector<double>(job_features)};
  Columns global_{.sum = std::vector<double>(global_features), .squares = std::vector<double>(global_features)};
};

/// Logits of every action of every state, as Observation::mask counts them; masked ones are `masked_logit`, the others
/// finite and above it.
/// Precondition: `parameters` has at least layout.policy_size entries.
void forward_policy(const NetworkSpec& spec, std::span<const float> parameters, const Normaliser& normaliser,
                    const Observation& observation, std::vector<float>& logits);

/// steers(): the mean action in every state, [states x layout.steered]. An action is drawn around it, each weight
/// with its own deviation, and held_parameters() of it act while it holds (held_action.hpp).
void forward_steering(const NetworkSpec& spec, std::span<const float> parameters, const Normaliser& normaliser,
                      const Observation& observation, std::vector<float>& means);

/// The parameters with the weights that an action sets.
std::vector<float> held_parameters(const NetworkSpec& spec, std::span<const float> parameters,
                                   std::span<const float> action);

/// An action drawn around its mean.
void draw_action(const NetworkSpec& spec, std::span<const float> parameters, std::span<float> mean, Rng& rng);

/// Natural logarithm of the density of `action` around `mean`.
double log_density(const NetworkSpec& spec, std::span<const float> parameters, std::span<const float> mean,
                   std::span<const float> action);

/// The critic's value of every state, in units of its own normalisation.
void forward_critic(const NetworkSpec& spec, std::span<const float> parameters, const Normaliser& normaliser,
                    const Observation& observation, std::vector<float>& values);

/// Writes what the critic reads of every state: [states x critic_inputs].
void critic_features(const Normaliser& normaliser, const Observation& observation, std::vector<float>& out);

/// The logit of an action that is not allowed. exp() of it is exactly 0; it is finite, so that 0 x logit is 0.
inline constexpr float masked_logit = -1e30f;

}  // namespace gpusched
