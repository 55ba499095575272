// SPDX-License-Identifier: Apache-2.0
#include "src/policies/fair/slurm_log.hpp"

#include "src/base/csv_text.hpp"
#include "src/base/number_text.hpp"

namespace gpusched {

void SlurmLog::observe(const View& view, std::span<const Event> events) {
  for (const Event& event : events) {
    if (event.kind == EventKind::start) starts_.push_back({event.job, view.now(), policy_.terms(view, event.job)});
    policy_.account(view, event);
  }
}

std::string SlurmLog::text() const {
  std::string text = "job_id,start_s,priority,age,fair_share,size,partition,qos\n";
  for (const SlurmStart& start : starts_) {
    append_csv_field(text, jobs_->external_id(start.job));
    append_seconds(text += ',', start.time);
    const SlurmTerms& terms = start.terms;
    for (const std::int64_t term :
         {terms.priority(), terms.age, terms.fair_share, terms.size, terms.partition, terms.qos}) {
      append_integer(text += ',', term);
    }
    text += '\n';
  }
  return text;
}

}  // namespace gpusched
