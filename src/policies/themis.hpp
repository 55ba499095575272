// SPDX-License-Identifier: Apache-2.0
/// Finish-time fairness (Mahajan et al., "Themis: Fair and Efficient GPU Cluster Scheduling", NSDI'20).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "gpusched/decision.hpp"
#include "gpusched/view.hpp"
#include "src/policies/registry.hpp"

namespace gpusched {

/// Serves the jobs that sharing hurts most. A job's finish-time fairness is rho = T_shared / T_ideal: T_shared is its
/// time in the system if it ran from now on without a stop, T_ideal the time that it would take alone on 1/N of the
/// GPUs, N being the jobs in the system when it came (it runs at full speed if its GPUs are within that share, else
/// slowed in proportion). GPUs are leased: at each multiple of the lease while any job waits, all jobs in falling order
/// of rho get the cluster greedily; between, free GPUs go to waiting jobs in that order. Clairvoyant: it uses the true
/// run times, which the paper estimates. The paper's partial auction (which hides bids behind truthful payments) plays
/// no part when jobs cannot bid. O(n log n) a lease, O(waiting) an event.
class Themis {
 public:
  explicit Themis(Time lease) : lease_(lease) {}

  [[nodiscard]] std::string_view name() const { return "themis"; }
  void decide(const OracleView& view, Decision& decision);

 private:
  struct Candidate {
    double rho = 0;
    JobId job = no_job;
    bool running = false;
  };

  void note_arrivals(const OracleView& view);
  [[nodiscard]] double rho(const OracleView& view, JobId job) const;
  void collect(const OracleView& view, bool with_running);
  void lease_all(const OracleView& view, Decision& decision);
  void start_in_order(const OracleView& view, Decision& decision);

  Time lease_;
  Time next_wake_ = Time::max();
  bool cpu_only_jobs_ = false;   // jobs that want no GPU may start when none is free
  std::vector<double> ideal_s_;  // by job
  std::vector<Candidate> candidates_;
  std::vector<std::uint8_t> blocked_;  // by shape
};

PolicyInfo themis_info();

}  // namespace gpusched
