// SPDX-License-Identifier: Apache-2.0
/// Every policy with its defaults and in its other forms, for tests that run all of them.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "src/policies/backfill/backfill.hpp"
#include "src/policies/seam/registry.hpp"
#include "tests/differential/check_many.hpp"
#include "tests/policies/policy_support.hpp"
#include "tests/policies/random_world.hpp"
#include "tests/support/changing_signals.hpp"

namespace gpusched::test {

/// A policy and its backfilling.
struct Contestant {
  std::string policy;
  std::string backfill = {};
};

inline std::ostream& operator<<(std::ostream& out, const Contestant& contestant) {
  return out << contestant.policy << (contestant.backfill.empty() ? "" : "+") << contestant.backfill;
}

/// All of them.
inline std::vector<Contestant> contestants() {
  std::vector<Contestant> all;
  for (const PolicyInfo& info : registry().rows()) all.push_back({info.name});
  for (const char* form : {"sjf{skip=true}",
                           "edf{skip=true}",
                           "slurm{skip=true}",
                           "slurm{requeues=false}",
                           "slurm{preempts_by=partition,preempts=[b>a,c>a,c>b],youngest_first=true}",
                           "slurm{skip=true,preempts_by=partition,preempts=[b>a,c>b],grace_s=[a=5],exempt_s=[b=3]}",
                           "slurm{preempts_by=partition,preempts=[b>a,c>a,c>b],cancels=[a,b],grace_s=[b=4]}",
                           "k8s{pods=true}",
                           "k8s{score=most-allocated}",
                           "k8s{resources=gpu}",
                           "hdrf{rescale=false}",
                           "hdrf{skip_empty=false}",
                           "gandiva{migrate=true}",
                           "gandiva{slice_s=17}",
                           "max-min{preempt=true}",
                           "themis{auction=false}",
                           "volcano{by=user,drf=false,preempt=true,reclaim=true}",
                           "volcano{preempt=true,reclaim=true}",
                           "yarn-fair{by=user,preemption=true}",
                           "yarn-capacity{by=user,preemption=true}",
                           "kueue{within=lower-or-newer,reclaim=any,borrow=lower}",
                           "kueue{by=user,within=lower,reclaim=lower,strict=true}",
                           "kai{by=user,preempt=false}",
                           "kai{reclaim=false}",
                           "priority{aging_s=1e9}",
                           "gavel{objective=makespan,round_s=90,reset_s=90}",
                           "gavel{objective=finish-time-fairness,round_s=90,reset_s=90}",
                           "gavel{objective=water-filling,by=user,round_s=70,reset_s=200}",
                           "gavel{objective=fifo,round_s=7,reset_s=0}",
                           "allox{window_jobs=2}",
                           "sjf{best_speed=true}",
                           "carbon{rule=lowest-slot,forecast=perfect,wait_h=0.01,short_h=0}",
                           "carbon{rule=wait-awhile,forecast=noisy,wait_h=0.01,short_h=0}",
                           "carbon{rule=ecovisor,figure=price,wait_h=0.01,short_h=0,skip=false}",
                           "carbon{rule=all-wait,wait_h=0.01,short_h=0,reserved_gpus=3}",
                           "carbonscaler{forecast=perfect,estimate=exact,slot_s=4,wait_h=0.01,short_h=0}",
                           "carbonscaler{forecast=noisy,figure=price,slot_s=7,wait_h=0.02,short_wait_h=0.01}",
                           "tiresias{promote_knob=2,queue_limits_gpu_s=[50,200]}",
                           "loaning{part=0.3,skip=true,order=[sjf]}",
                           "agenda{mode=preempt,heuristic=las}",
                           "guarded{policies=[fifo,saf,las],first_jobs=4,stretches=2,growth=1.1,margin=0}"}) {
    all.push_back({form});
  }
  for (const char* order : {"fifo", "sjf", "edf", "wfp3"}) {
    for (const char* backfill : {"easy", "conservative", "sc20"}) all.push_back({order, backfill});
  }
  all.push_back({"slurm{bf_interval_s=7,bf_max_job_test=20}", "easy"});
  all.push_back(
      {"slurm{bf_interval_s=0,preempts_by=partition,preempts=[b>a,c>b],grace_s=[a=4],exempt_s=[b=3]}", "easy"});
  all.push_back({"slurm{bf_interval_s=0,preempts_by=partition,preempts=[b>a,c>b],cancels=[a],grace_s=[b=3]}", "easy"});
  return all;
}

/// The worlds that a policy can be given.
inline WorldKind kind_for(const std::string& policy) {
  if (policy.starts_with("static-partition")) return WorldKind::one_pool;
  return policy.find('@') == std::string::npos || policy.find("@sc20") != std::string::npos ? WorldKind::any
                                                                                            : WorldKind::one_gpu_tasks;
}

/// An error when the policy does not take these jobs on this cluster.
inline Result<AnyPolicy> make(const Contestant& contestant, const JobTable& jobs, const Cluster& cluster) {
  const auto specs = parse_policy_list(contestant.policy);
  if (!specs) return Unexpected{specs.error()};
  const PolicyContext context{.jobs = &jobs, .cluster = &cluster, .seed = 1, .power = &signals_of_tests()};
  if (contestant.backfill.empty()) return registry().make(specs->front(), context);
  const auto backfill = parse_backfill(contestant.backfill);
  if (!backfill) return Unexpected{backfill.error()};
  return make_backfilled(registry(), specs->front(), *backfill, context);
}

/// For the name of a test.
inline std::string name_of(const Contestant& contestant) {
  return readable(contestant.policy + (contestant.backfill.empty() ? "" : " with ") + contestant.backfill);
}

}  // namespace gpusched::test
