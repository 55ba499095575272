// SPDX-License-Identifier: Apache-2.0
#include "src/policies/meta/members.hpp"

#include <algorithm>
#include <span>

#include "src/policies/backfill/backfill.hpp"

namespace gpusched {
namespace {

// The member as written, and its row.
struct Named {
  PolicySpec spec;
  const PolicyInfo* row = nullptr;
};

Result<Named> find_member(const std::string& text, const PolicyRegistry& registry) {
  auto specs = parse_policies(registry, text);
  if (!specs) return Unexpected{specs.error()};
  const auto row = registry.find(specs->front().name);
  if (!row) return Unexpected{row.error()};
  if ((*row)->holds_policies) return unexpected("policy " + text + " holds policies itself, and cannot be held");
  if ((*row)->is_process) return unexpected("policy " + text + " is a process, which cannot join in mid-run");
  return Named{std::move(specs->front()), *row};
}

}  // namespace

Result<Members> Members::make(const std::string& owner, const std::vector<std::string>& names,
                              const PolicyContext& context, const Memory& memory) {
  const auto fail = [&](const std::string& why) {
    return Unexpected{Error{.message = why, .field = "policy " + owner + ", parameter policies"}};
  };
  GPUSCHED_ASSERT(context.registry != nullptr, "the registry makes policies that hold others");
  std::vector<Member> members;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string& text = names[i];
    const auto before = std::span(names).first(i);
    if (std::find(before.begin(), before.end(), text) != before.end()) return fail(text + " is named twice");
    auto named = find_member(text, *context.registry);
    if (!named) return fail(named.error().to_string());
    if (i < context.held.size()) named->spec = context.held[i];
    auto made = make_policy(*context.registry, named->spec, context);
    if (!made) return fail(made.error().to_string());
    members.push_back({std::move(named->spec), *std::move(made), !named->row->files || named->row->agent});
  }
  if (members.empty()) return fail("expected one policy or more");
  return Members(std::move(members), context, memory);
}

Members::Members(std::vector<Member> members, const PolicyContext& context, const Memory& memory)
    : members_(std::move(members)),
      memory_(memory),
      context_(context),
      cluster_(*context.cluster),
      has_past_(!context.past.jobs.empty()),
      jobs_(*context.jobs),
      policy_(members_.front().made) {
  context_.cluster = nullptr;
  context_.held = {};
  context_.past = {};
}

bool Members::clairvoyant() const {
  return std::any_of(members_.begin(), members_.end(), [](const Member& member) { return member.made.clairvoyant(); });
}

void Members::observe(const View& view) {
  was_over_ = is_over_;
  is_over_ = view.finished() == view.job_count();
  if (!was_over_) last_ = view.now();
  for (const Event& event : view.events()) {
    if (event.kind != EventKind::finish) continue;
    jobs_.believe(event.job, Time{view.ran(event.job).us / (view.attempt(event.job) + 1)});
    ended_.push_back(index(event.job));
  }
  const auto most = static_cast<std::ptrdiff_t>(memory_.most);
  if (ended_.size() >= 2 * memory_.most) ended_.erase(ended_.begin(), ended_.end() - most);
}

AdoptedPolicy Members::fresh(std::size_t number) const {
  const Member& member = members_[number];
  const bool knows_more = ended_.empty() || (has_past_ && ended_.size() < memory_.enough);
  if (!member.is_remade || knows_more) return AdoptedPolicy(member.made);
  PolicyContext context = context_;
  context.cluster = &cluster_;
  context.past = {
      .trace = &jobs_.table(),
      .jobs = {ended_.end() - static_cast<std::ptrdiff_t>(std::min(ended_.size(), memory_.most)), ended_.end()}};
  auto made = make_policy(*context_.registry, member.spec, context);
  return AdoptedPolicy(made ? *std::move(made) : member.made);
}

void Members::decide(std::size_t member, const OracleView& view, Decision& decision) {
  if (member == active_ || !began_) {
    if (member != active_) policy_ = AdoptedPolicy(members_[member].made);
    active_ = member;
    began_ = true;
    policy_.decide(view, decision);
    return;
  }
  active_ = member;
  policy_ = fresh(member);
  policy_.adopt(view, decision);
}

ParameterInfo members_parameter(std::vector<std::string> fallback) {
  return {.name = "policies",
          .fallback = std::move(fallback),
          .meaning = "the policies between which it chooses, with their parameters and backfilling; the first begins"};
}

std::vector<std::string> files_of_policies(const PolicySpec& spec, const std::string& parameter) {
  std::vector<std::string> files;
  const auto given = spec.given.find(parameter);
  if (given == spec.given.end()) return files;
  const auto* texts = std::get_if<std::vector<std::string>>(&given->second);
  if (texts == nullptr) return files;
  const PolicyRegistry registry = PolicyRegistry::standard();
  for (const std::string& text : *texts) {
    const auto member = find_member(text, registry);
    if (!member || !member->row->files) continue;
    const std::vector<std::string> of_member = member->row->files(member->spec);
    files.insert(files.end(), of_member.begin(), of_member.end());
  }
  return files;
}

std::vector<std::string> files_of_members(const PolicySpec& spec) { return files_of_policies(spec, "policies"); }

}  // namespace gpusched
