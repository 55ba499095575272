// SPDX-License-Identifier: Apache-2.0
// Hierarchical dominant resource fairness (Bhattacharya et al., "Hierarchical Scheduling for Diverse Datacenter
// Workloads", SoCC'13): queues, then the users of each.
#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/policies/fair/hierarchical_shares.hpp"
#include "src/policies/queues/owners.hpp"
#include "src/policies/queues/ranked_classes.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {
namespace {

// From the root down, the child of the lowest share among those with a job that fits goes next; ties go to the lower
// share one level deeper, then to the earliest job. Virtual clusters are queues, and dots in their names separate the
// queues above them.
class HierarchicalDrf {
 public:
  static constexpr std::size_t most_levels = 8;  // queues above each other

  HierarchicalDrf(HierarchicalShares shares, const NameTable& vcs, const OwnerWeights& weights)
      : shares_(std::move(shares)) {
    for (const std::string& name : vcs.names()) add_queue(name, vcs, weights);
  }

  [[nodiscard]] std::string_view name() const { return "hdrf"; }

  void decide(const View& view, Decision& decision) {
    decision.keep_order();
    for (const Event& event : view.events()) note(view.at(event), event);
    shares_.refresh();
    reorder_queues();
    const auto may_fit = [&](const RankedClasses::Kind& kind) {
      return view.cluster().may_fit(view.shape_of_demand(kind.second), kind.first);
    };
    shares_.has_fallen();  // before any turn
    waiting_.start_best(ByPath{this}, may_fit, [&](const Class& jobs) {
      const JobId job = jobs.first();
      if (decision.start(job, view.options().placement) != Verdict::ok) return Attempt::no_room;
      const std::uint32_t user = jobs.member;
      shares_.started(user, view.shape(job));
      shares_.refresh();
      reorder_queues();
      waiting_.reorder_member(user, ByPath{this});
      return shares_.has_fallen() ? Attempt::started_anew : Attempt::started;
    });
  }

 private:
  using Class = RankedClasses::Class;

  // A queue with waiting jobs is a party, the users of one are its members.
  struct ByPath : RankedOrder {
    struct Score {
      std::array<std::int64_t, most_levels + 1> path = {};  // shares from the top down, the user's last
      QueuePlace first = {};
      // NOLINTNEXTLINE(modernize-use-nullptr): as Shape's
      friend auto operator<=>(const Score&, const Score&) = default;
    };
    explicit ByPath(HierarchicalDrf* of) : policy(of) {}
    [[nodiscard]] std::int64_t major(const Class& jobs) const { return policy->shares_.share(jobs.member); }
    [[nodiscard]] static std::int64_t minor(const Class&) { return 0; }
    [[nodiscard]] double standing(std::uint32_t vc) const {
      return static_cast<double>(policy->shares_.share(policy->queues_[vc].front()));
    }
    [[nodiscard]] Score score(const Class& jobs) const {
      Score score{.first = jobs.jobs.front()};
      const std::vector<std::uint32_t>& queues = policy->queues_[jobs.party];
      for (std::size_t level = 0; level < queues.size(); ++level) {
        score.path[level] = policy->shares_.share(queues[level]);
      }
      score.path[queues.size()] = jobs.rank.major;
      return score;
    }
    [[nodiscard]] Score bound(const RankedClasses::Least& least) const {
      Score score{.path = {static_cast<std::int64_t>(least.standing)}, .first = least.oldest};
      if (!policy->is_flat_) return score;
      score.path[1] = least.rank.major;
      score.first = least.rank.first;
      return score;
    }

    HierarchicalDrf* policy;
  };

  void add_queue(const std::string& name, const NameTable& vcs, const OwnerWeights& weights) {
    std::vector<std::uint32_t> path;
    for (std::size_t end = name.find('.'); end != std::string::npos; end = name.find('.', end + 1)) {
      path.push_back(node_of(name.substr(0, end), path, vcs, weights));
    }
    path.push_back(node_of(name, path, vcs, weights));
    is_flat_ = is_flat_ && path.size() == 1;
    if (path.front() >= below_.size()) below_.resize(path.front() + 1);
    below_[path.front()].push_back(static_cast<std::uint32_t>(queues_.size()));
    queues_.push_back(std::move(path));
  }

  std::uint32_t node_of(const std::string& queue, const std::vector<std::uint32_t>& above, const NameTable& vcs,
                        const OwnerWeights& weights) {
    const auto [known, added] = nodes_.try_emplace(queue, 0);
    if (!added) return known->second;
    const std::uint32_t vc = vcs.find(queue);
    const std::uint32_t parent = above.empty() ? HierarchicalShares::root : above.back();
    return known->second = shares_.add(parent, vc == no_index ? 1000 : weights.milli(vc));
  }

  void note(const View& view, const Event& event) {
    if (event.job == no_job) return;
    const std::uint32_t user = user_of(view, event.job);
    if (leaves_cluster(event.kind)) {
      shares_.left(user, view.shape(event.job));
      waiting_.reorder_member(user, ByPath{this});
    }
    if (event.kind == EventKind::withdraw) {
      shares_.withdrawn(user, view.shape(event.job));
      waiting_.erase(view, event.job, ByPath{this});
    }
    if (event.kind == EventKind::reprioritize && view.phase(event.job) == JobPhase::pending) {
      waiting_.reprioritize(view, event.job, view.vc(event.job), user, ByPath{this});
    }
    if (!enters_queue(event.kind)) return;
    shares_.submitted(user, view.shape(event.job));
    waiting_.push(view, event.job, view.vc(event.job), user, ByPath{this});
  }

  // The node of the user in the job's queue.
  std::uint32_t user_of(const View& view, JobId job) {
    const std::uint32_t vc = view.vc(job);
    const auto [place, added] = users_.try_emplace(std::pair(vc, view.user(job)), 0);
    if (added) place->second = shares_.add(queues_[vc].back(), 1000);
    return place->second;
  }

  // Standings are shares of the topmost queues.
  void reorder_queues() {
    for (const std::uint32_t top : shares_.take_changed()) {
      for (const std::uint32_t vc : below_[top]) waiting_.reorder_party(vc, ByPath{this});
    }
  }

  HierarchicalShares shares_;
  std::vector<std::vector<std::uint32_t>> queues_;  // [virtual cluster]: its nodes from the top down
  std::map<std::string, std::uint32_t> nodes_;      // by name of the queue
  std::vector<std::vector<std::uint32_t>> below_;   // [topmost node]: the virtual clusters below
  bool is_flat_ = true;                             // no queue is below another
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> users_;  // node of (virtual cluster, user)
  RankedClasses waiting_;
};

Result<AnyPolicy> make_hdrf(const PolicyParameters& parameters, const PolicyContext& context) {
  const JobTable& jobs = *context.jobs;
  if (!jobs.has_users() || !jobs.has_vcs()) {
    return unexpected("policy hdrf shares between virtual clusters and their users, and the trace lacks " +
                      std::string(jobs.has_vcs() ? "users" : "virtual clusters"));
  }
  for (const std::string& name : jobs.vcs().names()) {
    if (static_cast<std::size_t>(std::count(name.begin(), name.end(), '.')) < HierarchicalDrf::most_levels) continue;
    return unexpected("policy hdrf takes at most " + std::to_string(HierarchicalDrf::most_levels) +
                      " queues above each other, and the trace has '" + name + "'");
  }
  HierarchicalShares shares(*context.cluster,
                            {.rescale = parameters.flag("rescale"), .skip_empty = parameters.flag("skip_empty")});
  return AnyPolicy(HierarchicalDrf(std::move(shares), jobs.vcs(), OwnerWeights(parameters.list("weights"))));
}

}  // namespace

PolicyInfo hdrf_info() {
  return {
      .name = "hdrf",
      .summary = "hierarchical dominant resource fairness between virtual clusters, then between the users of each",
      .source =
          "Bhattacharya et al., \"Hierarchical Scheduling for Diverse Datacenter Workloads\", SoCC'13, dynamic H-DRF "
          "(rescaled to the least share, blocked nodes left out); skip_empty as Volcano's plugin drf (enableHierarchy)",
      .complexity = "O(shapes x log n), and O(queues x log n) where a resource begins or ceases to be all held",
      .parameters = {weights_parameter(),
                     {.name = "rescale",
                      .fallback = true,
                      .meaning = "false: the paper's naive form, where a queue holds the plain sum of its users"},
                     {.name = "skip_empty",
                      .fallback = true,
                      .meaning = "users who hold nothing yet do not count for the least share; false: by the letter of "
                                 "the paper"}},
      .make = make_hdrf,
      .work_conserving = true};
}

}  // namespace gpusched
