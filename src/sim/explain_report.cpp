// SPDX-License-Identifier: Apache-2.0
// What `gpusched explain` says.
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "src/base/number_text.hpp"
#include "src/base/strict_json.hpp"
#include "src/base/wrapped_text.hpp"
#include "src/sim/explain.hpp"
#include "src/world/limit_json.hpp"

namespace gpusched {
namespace {

std::string gpus_text(MilliGpu milli) {
  std::string text;
  append_decimal(text, milli, whole_gpu);
  return text;
}

std::string gpus_counted(MilliGpu milli) { return gpus_text(milli) + (milli == whole_gpu ? " GPU" : " GPUs"); }

// "3", "3 to 12".
std::string range_text(MilliGpu least, MilliGpu most) {
  return least == most ? gpus_text(least) : gpus_text(least) + " to " + gpus_text(most);
}

std::string node_text(const Cluster& cluster, NodeId node) {
  const std::string& name = cluster.nodes[index(node)].name;
  return name.empty() ? std::to_string(index(node)) : name;
}

std::string nodes_text(const Cluster& cluster, const std::vector<NodeId>& nodes) {
  constexpr std::size_t most = 4;
  std::string text = nodes.size() == 1 ? "on node " : "on nodes ";
  for (std::size_t i = 0; i < std::min(nodes.size(), most); ++i) {
    text += (i == 0 ? "" : ", ") + node_text(cluster, nodes[i]);
  }
  return nodes.size() > most ? text + " and " + std::to_string(nodes.size() - most) + " more" : text;
}

class Words {
 public:
  Words(const ExplainPlan& plan, const PolicyRun& run) : plan_(&plan), run_(&run) {}

  [[nodiscard]] std::string of(const WaitSpan& span) const {
    switch (span.kind) {
      case WaitSpan::Kind::dependencies:
        if (span.waits_for == no_job) return "waits for the time behind the jobs before it";
        return "waits for the end of job " + job_name(span.waits_for);
      case WaitSpan::Kind::waiting: return span.cause == WaitCause::limit ? cause(span) : cause(span) + ahead(span);
      case WaitSpan::Kind::running: return "runs " + nodes_text(plan_->input.cluster, span.nodes);
      case WaitSpan::Kind::done: break;
    }
    return "ended";
  }

  [[nodiscard]] std::string job_name(JobId job) const { return plan_->input.trace.jobs.external_id(job); }

 private:
  [[nodiscard]] const Shape& shape() const { return plan_->input.trace.jobs.shape(plan_->job); }

  [[nodiscard]] std::string cause(const WaitSpan& span) const {
    const std::string free = range_text(span.least_free, span.most_free);
    const std::string need = gpus_text(shape().gpu_milli());
    switch (span.cause) {
      case WaitCause::no_gpus:
        return "no free GPUs: " + free + " of " + std::to_string(plan_->input.cluster.total_gpus()) +
               " free, it needs " + need;
      case WaitCause::nodes_out:
        return "nodes are out of service: " + free + " GPUs free, it needs " + need +
               ", which there would be with them";
      case WaitCause::queue_nodes:
        return "its queue's nodes are taken: " + free + " GPUs free there, it needs " + need +
               "; others are free on nodes of other queues";
      case WaitCause::gpu_type:
        return "GPUs of its type" + type() + " are taken: " + free + " free, it needs " + need + "; others are free";
      case WaitCause::quota: return "the quota of its queue: " + free + " GPUs left of it, it needs " + need;
      case WaitCause::limit: return "the limit " + limit_text(plan_->input.cluster.limits[span.limit]);
      case WaitCause::cpu_memory:
        return "nodes with free GPUs lack CPU, memory or instances: " + free + " GPUs free, it needs " + need;
      case WaitCause::fragmentation: return "fragmented: " + free + " GPUs free, but not " + tasks() + " on nodes";
      case WaitCause::placement:
        return "placement " + plan_->scenario.conditions.placement + " takes none of the nodes with " + free +
               " free GPUs";
      case WaitCause::power_cap: return "a power cap refuses it: " + free + " GPUs free where it fits";
      case WaitCause::policy: break;
    }
    if (run_->policy == "as-recorded") return "its recorded start: " + free + " GPUs are free where it fits";
    const std::string text =
        "its turn: " + free + " GPUs free where it fits, which " + run_->policy + " keeps for others";
    return run_->policy.find('+') == std::string::npos ? text : text + " or for a reservation";
  }

  [[nodiscard]] std::string type() const {
    const std::string& spec = plan_->input.trace.jobs.gpu_specs()[shape().gpu_spec];
    return spec.empty() ? "" : " (" + spec + ")";
  }

  // "4 x 8 GPUs".
  [[nodiscard]] std::string tasks() const {
    return std::to_string(shape().tasks) + " x " + gpus_counted(shape().gpu_milli_per_task);
  }

  [[nodiscard]] std::string ahead(const WaitSpan& span) const {
    const JobsAhead& begin = span.ahead_at_begin;
    std::string text;
    if (begin.count > 0) {
      text = "; " + counted(begin.count, "job") + " ahead of it " + (begin.count == 1 ? "waits" : "wait") + " for " +
             gpus_counted(begin.gpu_milli) + ", the first job " + job_name(begin.first);
      if (span.ahead_at_end.count != begin.count) text += ", at the end " + std::to_string(span.ahead_at_end.count);
    } else {
      text = "; no job ahead of it waits";
    }
    if (span.started == 0) return text;
    text += "; " + counted(span.started, "other job") + " started";
    return span.overtook == 0 ? text : text + ", " + std::to_string(span.overtook) + " of them behind it";
  }

  const ExplainPlan* plan_;
  const PolicyRun* run_;
};

// Where a span ends.
Time end_of(const std::vector<WaitSpan>& spans, std::size_t place, Time end) {
  return place + 1 < spans.size() ? spans[place + 1].since : end;
}

constexpr std::array<NamedValue<WaitCause>, wait_cause_names.size()> cause_words{
    {{"no free GPUs", WaitCause::no_gpus},
     {"nodes out of service", WaitCause::nodes_out},
     {"nodes of its queue", WaitCause::queue_nodes},
     {"GPU type", WaitCause::gpu_type},
     {"quota", WaitCause::quota},
     {"limit", WaitCause::limit},
     {"CPU or memory", WaitCause::cpu_memory},
     {"fragmentation", WaitCause::fragmentation},
     {"placement rule", WaitCause::placement},
     {"power cap", WaitCause::power_cap},
     {"its turn", WaitCause::policy}}};

// "no free GPUs 62.0 %, its turn 38.0 %", the most first.
std::string shares_text(const std::vector<WaitSpan>& spans, Time end) {
  std::array<std::int64_t, wait_cause_names.size()> waited{};
  std::int64_t all = 0;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (spans[i].kind != WaitSpan::Kind::waiting) continue;
    const std::int64_t span = (end_of(spans, i, end) - spans[i].since).us;
    waited[static_cast<std::size_t>(spans[i].cause)] += span;
    all += span;
  }
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < waited.size(); ++i) {
    if (waited[i] > 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return waited[a] > waited[b]; });
  std::string text;
  for (const std::size_t i : order) {
    text += (text.empty() ? "" : ", ") + std::string(cause_words[i].name) + " " +
            percent_text(static_cast<double>(waited[i]) / static_cast<double>(all));
  }
  return text;
}

std::string seconds_text(Time t) { return exact_seconds(t) + " s"; }

std::string facts_text(const ExplainPlan& plan, const PolicyRun& run) {
  const Engine& engine = *run.engine;
  const JobTable& jobs = plan.input.trace.jobs;
  const JobId job = plan.job;
  std::string text =
      "job " + jobs.external_id(job) + " under " + run.policy + ": " + gpus_counted(jobs.shape(job).gpu_milli());
  if (!jobs.users()[jobs.user(job)].empty()) text += ", user " + jobs.users()[jobs.user(job)];
  if (!jobs.vcs()[jobs.vc(job)].empty()) text += ", queue " + jobs.vcs()[jobs.vc(job)];
  text += "\nsubmitted at " + seconds_text(jobs.submit(job));
  if (engine.submit(job) != jobs.submit(job))
    text += ", waited for other jobs until " + seconds_text(engine.submit(job));
  if (engine.first_start(job) == Time::max()) {
    text += "; never started";
  } else {
    text += "; started at " + seconds_text(engine.first_start(job)) + ", after " +
            human_duration(to_seconds(engine.first_start(job) - engine.submit(job)));
  }
  text += "; " +
          std::string(engine.is_refused(job)               ? "refused"
                      : engine.is_cancelled_by_policy(job) ? "cancelled by the policy"
                      : engine.is_cancelled(job)           ? "cancelled"
                                                           : "ended") +
          " at " + seconds_text(engine.end(job));
  if (engine.is_refused(job)) {
    text += " by the limit " + limit_text(plan.input.cluster.limits[engine.refused_by(job)]);
  }
  if (engine.preemptions(job) > 0) text += "; preempted " + counted(engine.preemptions(job), "time");
  if (engine.kills(job) > 0) text += "; stopped by failures " + counted(engine.kills(job), "time");
  return text + "\n";
}

std::string run_text(const ExplainPlan& plan, const PolicyRun& run) {
  const std::vector<WaitSpan>& spans = run.explained;
  const Time end = run.engine->end(plan.job);
  const Words words(plan, run);
  std::string text = facts_text(plan, run);
  const std::string shares = shares_text(spans, end);
  text += shares.empty() ? "it never waited\n" : "why it waited: " + shares + "\n";
  text += "\nfrom s          for       what\n" + std::string(terminal_columns, '-') + "\n";
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (spans[i].kind == WaitSpan::Kind::done) continue;
    std::string from = exact_seconds(spans[i].since);
    std::string lasts = human_duration(to_seconds(end_of(spans, i, end) - spans[i].since));
    from.resize(std::max<std::size_t>(from.size(), 14), ' ');
    lasts.resize(std::max<std::size_t>(lasts.size(), 8), ' ');
    constexpr std::size_t indent = 26;
    text += from + "  " + lasts + "  " + wrapped(words.of(spans[i]), terminal_columns - indent, indent) + "\n";
  }
  return text;
}

Json ahead_json(const JobsAhead& ahead, const Words& words) {
  return {{"jobs", ahead.count},
          {"gpus", static_cast<double>(ahead.gpu_milli) / whole_gpu},
          {"first", ahead.first == no_job ? Json(nullptr) : Json(words.job_name(ahead.first))}};
}

Json span_json(const ExplainPlan& plan, const WaitSpan& span, Time end, const Words& words) {
  Json json = {{"from_s", to_seconds(span.since)}, {"to_s", to_seconds(end)}};
  switch (span.kind) {
    case WaitSpan::Kind::dependencies:
      json["state"] = "dependencies";
      if (span.waits_for != no_job) json["waits_for"] = words.job_name(span.waits_for);
      break;
    case WaitSpan::Kind::waiting:
      json["state"] = "waiting";
      json["cause"] = std::string(name_of(wait_cause_names, span.cause));
      json["least_free_gpus"] = static_cast<double>(span.least_free) / whole_gpu;
      json["most_free_gpus"] = static_cast<double>(span.most_free) / whole_gpu;
      json["ahead_at_begin"] = ahead_json(span.ahead_at_begin, words);
      json["ahead_at_end"] = ahead_json(span.ahead_at_end, words);
      json["started"] = span.started;
      json["overtook"] = span.overtook;
      break;
    case WaitSpan::Kind::running:
      json["state"] = "running";
      json["nodes"] = Json::array();
      for (const NodeId node : span.nodes) json["nodes"].push_back(node_text(plan.input.cluster, node));
      break;
    case WaitSpan::Kind::done: json["state"] = "done"; break;
  }
  json["words"] = words.of(span);
  return json;
}

}  // namespace

std::string explanation_text(const ExplainPlan& plan, const std::vector<PolicyRun>& runs) {
  std::string text;
  for (const PolicyRun& run : runs) text += (text.empty() ? "" : "\n") + run_text(plan, run);
  return text;
}

std::string explanation_json(const ExplainPlan& plan, const std::vector<PolicyRun>& runs) {
  Json list = Json::array();
  for (const PolicyRun& run : runs) {
    const Engine& engine = *run.engine;
    const Words words(plan, run);
    const Time end = engine.end(plan.job);
    Json spans = Json::array();
    for (std::size_t i = 0; i < run.explained.size(); ++i) {
      if (run.explained[i].kind == WaitSpan::Kind::done) continue;
      spans.push_back(span_json(plan, run.explained[i], end_of(run.explained, i, end), words));
    }
    Json entry = {{"policy", run.policy},
                  {"submit_s", to_seconds(engine.jobs().submit(plan.job))},
                  {"wait_s", to_seconds(engine.end(plan.job) - engine.submit(plan.job) - engine.ran(plan.job))},
                  {"end_s", to_seconds(end)},
                  {"spans", std::move(spans)}};
    if (engine.is_refused(plan.job)) {
      entry["refused_by"] = limit_text(plan.input.cluster.limits[engine.refused_by(plan.job)]);
    }
    list.push_back(std::move(entry));
  }
  return json_text({{"job", plan.input.trace.jobs.external_id(plan.job)}, {"runs", std::move(list)}});
}

}  // namespace gpusched
