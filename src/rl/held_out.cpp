// SPDX-License-Identifier: Apache-2.0
#include "src/rl/held_out.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>
#include <variant>

#include "src/base/number_text.hpp"
#include "src/base/text_table.hpp"
#include "src/policies/backfill/backfill.hpp"
#include "src/policies/learned/agenda_policy.hpp"
#include "src/rl/training_conditions.hpp"
#include "src/sim/evaluation_report.hpp"
#include "src/sim/metric_table.hpp"
#include "src/sim/stretch_run.hpp"

namespace gpusched {
namespace {

constexpr std::size_t most_rows = 10;  // of the table; the sentence counts all
constexpr std::size_t whole_rows = 3;  // named of those that run over the whole test part, which are those of the table

bool has_parameter(const PolicyInfo& row, std::string_view name) {
  return std::any_of(row.parameters.begin(), row.parameters.end(),
                     [name](const ParameterInfo& parameter) { return parameter.name == name; });
}

// Orders that wait for a job that does not fit can also pass over it.
bool can_skip(const PolicyInfo& row) {
  return std::any_of(row.parameters.begin(), row.parameters.end(), [](const ParameterInfo& parameter) {
    return parameter.name == "skip" && parameter.fallback == ParameterValue(false);
  });
}

// "sjf{estimate=history}", "sjf{estimate=history,skip=true}", "sjf{estimate=history}+easy{estimate=history}".
std::vector<std::string> forms_of(const PolicyInfo& row, const std::string& estimator) {
  if (row.name == "las") return {"las", "las{quantum_gpu_s=20000}"};
  const bool estimates = has_parameter(row, "estimate");
  if (estimates && estimator.empty()) return {};
  const std::string estimate = "estimate=" + estimator;
  std::vector<std::string> forms{row.name + (estimates ? "{" + estimate + "}" : "")};
  if (can_skip(row)) forms.push_back(row.name + "{" + (estimates ? estimate + "," : "") + "skip=true}");
  if (row.order && !estimator.empty()) forms.push_back(forms.front() + "+easy{" + estimate + "}");
  return forms;
}

std::vector<std::string> agenda_forms(const AgendaOptions& agent) {
  std::vector<std::string> forms;
  for (const auto& [name, heuristic] : heuristic_names) {
    AgendaOptions options = agent;
    options.heuristic = heuristic;
    if (contradiction(options)) continue;
    forms.push_back("agenda{mode=" + std::string(name_of(action_mode_names, agent.mode)) + ",heuristic=" +
                    std::string(name) + ",knowledge=" + std::string(name_of(runtime_knowledge_names, agent.knowledge)) +
                    (agent.sc20_backfill ? ",sc20_backfill=true}" : "}"));
  }
  return forms;
}

// Side by side over the test part.
Result<EvaluationWindows> test_windows(const TrainConfig& config, const JobTable& jobs) {
  const auto part = jobs_of(jobs, config.windows, Split::test);
  if (!part) return Unexpected{part.error()};
  return EvaluationWindows{.jobs = config.windows.jobs,
                           .warm_up = config.windows.warm_up_jobs,
                           .stride = config.windows.jobs,
                           .first = part->begin + config.windows.warm_up_jobs,
                           .last = part->end};
}

// Means over the windows that all runs finished, and of which they know the figure.
HeldOutRow row_of(const Contestant& contestant) {
  const auto mean = [&](const char* figure) -> std::optional<double> {
    const std::vector<std::size_t> windows = contestant.windows_with(*find_metric(figure));
    if (windows.empty()) return std::nullopt;
    return interquartile_mean_of_runs(contestant.scores(*find_metric(figure), windows));
  };
  return {.policy = contestant.name,
          .jct_s = mean("avg_jct_s"),
          .p99_wait_s = mean("p99_wait_s"),
          .slowdown = mean("avg_bounded_slowdown")};
}

bool is_beaten(const HeldOutRow& row) { return row.agent.verdict == "better"; }

// That the sentence names: the best policy that is not beaten or, where all are, the best.
const HeldOutRow& decisive_row(const HeldOut& result) {
  const auto place = std::find_if_not(result.rows.begin(), result.rows.end(), is_beaten);
  return place == result.rows.end() ? result.rows.front() : *place;
}

std::string difference_of(const Comparison& pair) {
  const double mean = pair.mean.value_or(0), other = pair.other_mean.value_or(0);
  return other > 0 ? signed_percent_text((mean - other) / other) : "-";
}

std::string interval_of(const Comparison& pair) {
  if (!pair.interval) return "";
  return "[" + signed_percent_text(pair.interval->relative.low) + ", " +
         signed_percent_text(pair.interval->relative.high) + "]";
}

std::vector<std::string> cells_of(const HeldOutRow& row) {
  return {row.policy, row.jct_s ? formatted("%.2f", *row.jct_s) : "-", duration_cell(row.p99_wait_s),
          slowdown_cell(row.slowdown)};
}

std::string sentence_of(const HeldOut& result) {
  if (result.rows.empty()) return "No verdict: no plain policy ran to its end.\n";
  const HeldOutRow& other = decisive_row(result);
  const std::string than = "its mean " + result.figure + " is " + difference_of(other.agent);
  const std::string count = std::to_string(result.rows.size());
  const std::string lineup = count + " plain policies that know no more of run times than it does";
  if (!other.agent.interval) {
    return "No verdict (" + other.agent.verdict + "): " + than + " from that of the best of " + lineup + ", " +
           other.policy + ".\n";
  }
  if (is_beaten(other)) {
    return "The agent beats all " + lineup + ": " + than + " " + interval_of(other.agent) +
           " from that of the best of them, " + other.policy + ".\n";
  }
  const auto beaten = std::count_if(result.rows.begin(), result.rows.end(), is_beaten);
  return "The agent does NOT beat the plain policies (" + std::to_string(beaten) + " of " + lineup + "): " + than +
         " " + interval_of(other.agent) + " from that of " + other.policy + ", " + other.agent.verdict + ".\n";
}

// Windows end before a queue that grows shows itself: the last word is that of the whole part.
std::string whole_verdict(const HeldOut& result) {
  if (result.whole.size() < 2 || result.whole.front().policy != result.agent.policy) return "";
  const WholeRun &agent = result.whole[0], &best = result.whole[1];
  if (agent.value <= best.value) return "There no plain policy is better than the agent.\n";
  const std::string more = best.value > 0 ? signed_percent_text((agent.value - best.value) / best.value) : "more";
  return "There the agent is " + more + " from the best plain policy: take " + best.policy +
         ", guard the agent with it (policy guarded), or train on longer windows (windows/jobs above " +
         std::to_string(result.window_jobs) + ").\n";
}

std::string whole_line(const HeldOut& result) {
  if (result.whole.empty()) return "";
  std::string line = "In one run over all " + std::to_string(result.whole_jobs) +
                     " jobs of the test part (one sample), " + result.figure + ":";
  for (const WholeRun& run : result.whole) {
    line += (&run == result.whole.data() ? " " : ", ") + run.policy + formatted(" %.2f", run.value);
  }
  return line + ".\n" + whole_verdict(result);
}

// Runs policies over the windows of a trace, one after another.
class Tester {
 public:
  Tester(const TrainConfig& config, const TrainingConditions& conditions, const Cluster& cluster,
         const EvaluationWindows& windows)
      : threads_(config.threads),
        cluster_(cluster),
        trace_(conditions.jobs.slice(0, conditions.jobs.size(), config.windows.arrival_scale)),
        options_{.engine = conditions.engine,
                 .conditions = conditions.conditions,
                 .windows = windows,
                 .history = config.windows.history && config.shuffle.windows == 0} {}

  [[nodiscard]] const JobTable& trace() const { return trace_; }
  [[nodiscard]] const PolicyRegistry& registry() const { return registry_; }

  /// Error: it leaves jobs waiting in the first window; to tell that of every window can take minutes.
  [[nodiscard]] Result<PolicyScores> windows(const PolicySpec& policy) const {
    EvaluationOptions first = options_;
    first.windows.last = first.windows.first + first.windows.jobs;
    if (auto tried = scores(policy, first); !tried) return tried;
    return scores(policy, options_);
  }

  /// The windows' jobs in one run, with the draws of `evaluate --mode log`; nothing where it does not end.
  [[nodiscard]] std::optional<Metrics> whole(const PolicySpec& policy) const {
    const EvaluationWindows& windows = options_.windows;
    const TraceStretch stretch{
        .first = windows.first - windows.warm_up, .warm_up = windows.warm_up, .jobs = whole_jobs()};
    const std::optional<JobEnds> ends = options_.history ? std::optional<JobEnds>(trace_) : std::nullopt;
    const auto run =
        run_stretch(trace_, cluster_, options_, policy, registry_, stretch,
                    {.seed = options_.engine.seed, .past = ends ? ends->before(JobId{stretch.first}) : PastJobs{}});
    return run ? run->metrics : std::nullopt;
  }
  [[nodiscard]] std::uint32_t whole_jobs() const { return options_.windows.last - options_.windows.first; }

 private:
  [[nodiscard]] Result<PolicyScores> scores(const PolicySpec& policy, const EvaluationOptions& options) const {
    EvaluationProgress progress;
    auto all = evaluate_policies(trace_, cluster_, options, {&policy, 1}, registry_, threads_, progress);
    if (!all) return Unexpected{all.error()};
    return std::move(all->front());
  }

  std::uint64_t threads_;
  const Cluster& cluster_;
  JobTable trace_;
  EvaluationOptions options_;
  PolicyRegistry registry_ = PolicyRegistry::standard();
};

PolicySpec agent_in(const std::string& folder) { return {.text = "rl:" + folder, .name = "rl:" + folder, .given = {}}; }

// The agent, by the interquartile mean of its seeds, and the best of the table over all jobs of the test part.
void run_whole(HeldOut& result, const Tester& tester, const MetricInfo& figure, std::span<const std::string> folders) {
  result.whole_jobs = tester.whole_jobs();
  const auto value_of = [&](const PolicySpec& policy) -> std::optional<double> {
    const auto metrics = tester.whole(policy);
    return metrics ? figure.value(*metrics) : std::nullopt;
  };
  std::vector<double> of_seeds;
  for (const std::string& folder : folders) {
    if (const auto value = value_of(agent_in(folder))) of_seeds.push_back(*value);
  }
  std::vector<WholeRun> plain;
  for (std::size_t i = 0; i < std::min(most_rows, result.rows.size()); ++i) {
    const std::string& policy = result.rows[i].policy;
    if (const auto value = value_of(parse_policies(tester.registry(), policy)->front())) {
      plain.push_back({policy, *value});
    }
  }
  std::stable_sort(plain.begin(), plain.end(), [](const WholeRun& a, const WholeRun& b) { return a.value < b.value; });
  if (of_seeds.size() == folders.size()) result.whole.push_back({result.agent.policy, interquartile_mean(of_seeds)});
  plain.resize(std::min(whole_rows, plain.size()));
  std::move(plain.begin(), plain.end(), std::back_inserter(result.whole));
}

}  // namespace

std::vector<double> HeldOut::seed_means() const {
  const MetricInfo& metric = *find_metric(figure);
  const RunScores scores = trained.scores(metric, trained.windows_with(metric));
  std::vector<double> means;
  for (const std::vector<double>& run : scores) {
    if (!run.empty()) means.push_back(mean_of(run));
  }
  return means;
}

std::optional<ConfidenceInterval> HeldOut::interval() const {
  const MetricInfo& metric = *find_metric(figure);
  const std::vector<std::size_t> known = trained.windows_with(metric);
  if (known.empty()) return std::nullopt;
  return own_interval(trained.scores(metric, known), comparison);
}

std::string held_out_figure(const EnvOptions& options) {
  const std::pair<RewardTerm, const char*> figures[]{
      {reward_jct, "avg_jct_s"}, {reward_wait, "avg_wait_s"}, {reward_bounded_slowdown, "avg_bounded_slowdown"}};
  const auto* const most = std::max_element(std::begin(figures), std::end(figures), [&](const auto& a, const auto& b) {
    return options.weights[a.first] < options.weights[b.first];
  });
  return most->second;
}

std::vector<PolicySpec> plain_policies(const PolicyRegistry& registry, const AgendaOptions& agent, const JobTable& jobs,
                                       const Cluster& cluster) {
  const std::string estimator = estimator_name(agent.knowledge);
  std::vector<std::string> texts;
  for (const PolicyInfo& row : registry.rows()) {
    if (row.agent || row.name.find('@') != std::string::npos || row.name == "as-recorded") continue;
    std::vector<std::string> forms = forms_of(row, estimator);
    std::move(forms.begin(), forms.end(), std::back_inserter(texts));
  }
  std::vector<std::string> forms = agenda_forms(agent);
  std::move(forms.begin(), forms.end(), std::back_inserter(texts));

  std::vector<PolicySpec> policies;
  for (const std::string& text : texts) {
    auto parsed = parse_policies(registry, text);
    GPUSCHED_ASSERT(parsed.has_value(), "a row of the registry cannot be written");
    PolicySpec& spec = parsed->front();
    const auto made = make_policy(registry, spec, {.jobs = &jobs, .cluster = &cluster});
    if (!made) continue;  // these jobs lack what it reads
    if (made->clairvoyant() && agent.knowledge != RuntimeKnowledge::oracle) continue;
    policies.push_back(std::move(spec));
  }
  return policies;
}

Result<void> check_test_part(const TrainConfig& config, const JobTable& jobs) {
  if (auto windows = test_windows(config, jobs); !windows) return Unexpected{windows.error()};
  return {};
}

Result<HeldOut> test_models(const TrainConfig& config, const JobTable& jobs, const Cluster& cluster,
                            const std::string& name, std::span<const std::string> folders) {
  const auto windows = test_windows(config, jobs);
  if (!windows) return Unexpected{windows.error()};
  const auto conditions = load_training_conditions(config, jobs, cluster);
  if (!conditions) return Unexpected{conditions.error()};
  const Tester tester(config, *conditions, cluster, *windows);
  HeldOut result{.figure = held_out_figure(config.env),
                 .agent = {},
                 .rows = {},
                 .whole = {},
                 .failures = {},
                 .trained = {.name = name, .runs = {}},
                 .comparison = {windows->overlap(), config.seed}};
  for (const std::string& folder : folders) {
    auto scores = tester.windows(agent_in(folder));
    if (!scores) return Unexpected{scores.error()};
    result.trained.runs.push_back(*std::move(scores));
  }
  result.windows = result.trained.runs.front().windows.size();
  result.window_jobs = config.windows.jobs;
  result.agent = row_of(result.trained);
  const MetricInfo& figure = *find_metric(result.figure);
  for (const PolicySpec& policy : plain_policies(tester.registry(), config.env.agenda, tester.trace(), cluster)) {
    auto scores = tester.windows(policy);
    if (!scores) {
      result.failures.push_back(scores.error().message);
      continue;
    }
    const Contestant plain{.name = policy.text, .runs = {*std::move(scores)}};
    if (plain.windows_with(figure).empty()) {
      result.failures.push_back("policy " + policy.text + ": " + why_no_job() + " of the windows");
      continue;
    }
    result.rows.push_back(row_of(plain));
    result.rows.back().agent = compare(result.trained, plain, figure, result.comparison);
  }
  std::stable_sort(result.rows.begin(), result.rows.end(), [](const HeldOutRow& a, const HeldOutRow& b) {
    constexpr double last = std::numeric_limits<double>::infinity();
    return a.agent.other_mean.value_or(last) < b.agent.other_mean.value_or(last);
  });
  run_whole(result, tester, figure, folders);
  return result;
}

std::string held_out_text(const HeldOut& result, const TextStyle& style) {
  TextTable table({"policy", "avg JCT s", "p99 wait", "slowd.", "agent against it", "95% interval", "the agent is"});
  const auto add = [&](const HeldOutRow& row, std::vector<std::string> against) {
    std::vector<std::string> cells = cells_of(row);
    std::move(against.begin(), against.end(), std::back_inserter(cells));
    table.add(std::move(cells));
  };
  add(result.agent, {"", "", ""});
  for (std::size_t i = 0; i < std::min(most_rows, result.rows.size()); ++i) {
    const Comparison& pair = result.rows[i].agent;
    add(result.rows[i], {difference_of(pair), interval_of(pair), pair.verdict});
  }
  std::string text = table.text(style);
  if (result.rows.size() > most_rows) {
    text += "and " + std::to_string(result.rows.size() - most_rows) + " more, worse in " + result.figure + "\n";
  }
  if (result.trained.runs.size() > 1) {
    text += seeds_line(result.trained, *find_metric(result.figure), result.comparison);
    if (!result.rows.empty())
      text += improvement_line(result.trained, result.rows.front().policy, result.rows.front().agent);
  }
  for (const std::string& failure : result.failures) text += "left out: " + failure + "\n";
  return text + "\n" + sentence_of(result) + whole_line(result);
}

}  // namespace gpusched
