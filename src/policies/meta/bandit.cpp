// SPDX-License-Identifier: Apache-2.0
// bandit: one of several policies has the run for a period; the next is chosen by what each brought when it had it.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "src/base/csv_text.hpp"
#include "src/base/number_text.hpp"
#include "src/policies/meta/bandit_rules.hpp"
#include "src/policies/meta/believed_left.hpp"
#include "src/policies/meta/figure.hpp"
#include "src/policies/meta/members.hpp"
#include "src/policies/meta/notes_log.hpp"
#include "src/policies/seam/seed_parameter.hpp"

namespace gpusched {
namespace {

using BanditRule = std::variant<Exp3, UpperConfidence>;

// The value of a period is the figure of the jobs that ended in it; one in which none ended goes on. Its reward is
// mean / (mean + value), the mean being that of all values before it: 1/2 for what is usual, in [0, 1] whatever comes.
// A queue is no bandit: what a policy leaves waiting, the next one pays for, and no bound on regret holds here.
class Bandit {
 public:
  Bandit(Members members, WeightedFigure figure, BanditRule rule, Time every)
      : members_(std::move(members)), figure_(std::move(figure)), rule_(std::move(rule)), every_(every) {}

  [[nodiscard]] std::string_view name() const { return "bandit"; }
  [[nodiscard]] bool clairvoyant() const { return members_.clairvoyant(); }

  void decide(const OracleView& view, Decision& decision) {
    members_.observe(view);
    for (const Event& event : view.events()) note(view, event);
    std::size_t member = members_.active();
    if (members_.size() > 1 && !members_.was_over() && (periods_.empty() || is_over(view))) {
      for (const JobId job : std::exchange(cancelled_, {})) count(view, job, view.ran(job));
      if (!periods_.empty()) reward();
      member = std::visit([](auto& rule) { return rule.choose(); }, rule_);
      periods_.push_back({.begin = view.now(), .member = member, .value = {}, .reward = {}});
      ended_.clear();
    }
    members_.decide(member, view, decision);
    decision.for_each_cancel([this](JobId job) { cancelled_.push_back(job); });
  }

  [[nodiscard]] std::string notes() const {
    std::string text = "from_s,until_s,policy,value,reward\n";
    for (std::size_t i = 0; i < periods_.size(); ++i) {
      const Period& period = periods_[i];
      append_seconds(text, period.begin);
      append_seconds(text += ',', i + 1 < periods_.size() ? periods_[i + 1].begin : members_.last());
      append_csv_field(text += ',', members_.name(period.member));
      text += ',';
      if (period.value) text += exact_number(*period.value);
      text += ',';
      if (period.reward) text += exact_number(*period.reward);
      text += '\n';
    }
    return text;
  }

 private:
  struct Period {
    Time begin{};
    std::size_t member = 0;
    std::optional<double> value, reward;
  };

  // Replicas and trials are no jobs.
  void note(const OracleView& view, const Event& event) {
    const bool is_job = event.kind == EventKind::finish && index(event.job) >= view.jobs().in_front();
    if (is_job) count(view, event.job, known_work(view, event.job));
  }
  void count(const View& view, JobId job, Time length) {
    const Time age = view.now() - view.submit(job);
    ended_.push_back({.age = age, .waited = std::max(age - view.ran(job), Time{}), .length = length});
  }

  [[nodiscard]] bool is_over(const View& view) const {
    return view.now() - periods_.back().begin >= every_ && !ended_.empty();
  }

  void reward() {
    Period& period = periods_.back();
    const double value = figure_.of(ended_);
    const double mean = values_ == 0 ? value : sum_ / static_cast<double>(values_);
    const double reward = mean + value > 0 ? mean / (mean + value) : 0.5;
    period.value = value;
    period.reward = reward;
    sum_ += value;
    ++values_;
    std::visit([&](auto& rule) { rule.learn(reward); }, rule_);
  }

  Members members_;
  WeightedFigure figure_;
  BanditRule rule_;
  Time every_;
  std::vector<Period> periods_;
  std::vector<JobResult> ended_;  // in this period
  std::vector<JobId> cancelled_;  // by a member in it: they wait on until its end
  double sum_ = 0;                // of all values
  std::uint64_t values_ = 0;
};

Result<AnyPolicy> make_bandit(const PolicyParameters& parameters, const PolicyContext& context) {
  auto members = Members::make("bandit", parameters, context);
  if (!members) return Unexpected{members.error()};
  auto figure = WeightedFigure::parse(parameters.word("figure"));
  if (!figure) return Unexpected{Error{.message = figure.error().message, .field = "policy bandit, parameter figure"}};
  const std::size_t arms = members->size();
  const std::string& word = parameters.word("rule");
  const Rng rng = Rng(drawing_seed(parameters.number("seed"), context)).split("bandit");
  BanditRule rule = UpperConfidence(arms, word == "ducb" ? parameters.number("discount") : 1);
  if (word == "exp3") rule = Exp3(arms, parameters.number("gamma"), rng);
  return AnyPolicy(
      Bandit(*std::move(members), *std::move(figure), std::move(rule), from_seconds(parameters.number("every_s"))));
}

}  // namespace

PolicyInfo bandit_info() {
  return {
      .name = "bandit",
      .summary = "gives the run to one of its policies for a period, and learns from what each brought",
      .source =
          "EXP3: Auer, Cesa-Bianchi, Freund and Schapire, SIAM J. Comput. 32(1), 2002; UCB1: Auer, Cesa-Bianchi "
          "and Fischer, Machine Learning 47, 2002; discounted UCB: Garivier and Moulines, ALT 2011, xi = 0.6; "
          "rewards are mean / (mean + value) of the figure of the jobs that ended in a period",
      .complexity = "a choice: O(policies), and O(jobs) where another one takes over",
      .parameters =
          {members_parameter({"fifo", "saf", "sjf{estimate=requested}"}),
           {.name = "rule",
            .fallback = std::string("ucb1"),
            .meaning = "how it chooses: EXP3, UCB1 or discounted UCB",
            .words = {"exp3", "ucb1", "ducb"}},
           {.name = "every_s",
            .fallback = 21600.0,
            .meaning = "seconds of a period at least; it ends at the first instant after that",
            .least = 1e-3,
            .most = 1e9},
           figure_parameter(),
           {.name = "gamma", .fallback = 0.1, .meaning = "rule=exp3: how much is explored", .least = 1e-6, .most = 1},
           {.name = "discount",
            .fallback = 0.95,
            .meaning = "rule=ducb: of past rewards, for each period; 1 is UCB1",
            .least = 1e-6,
            .most = 1},
           seed_parameter("rule=exp3: of its draws")},
      .make = make_bandit,
      .preemptive = true,
      .files = files_of_members,
      .holds_policies = true,
      .asymmetries = {{Symmetry::time_scale, "run times are an hour where nothing is known of them"}},
      .log = [](const PolicyParameters&, const PolicyContext&) -> Result<std::unique_ptr<PolicyLog>> {
        return std::unique_ptr<PolicyLog>(std::make_unique<NotesLog>("bandit.csv"));
      }};
}

}  // namespace gpusched
