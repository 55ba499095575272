// SPDX-License-Identifier: Apache-2.0
#include "src/sim/grid_comparison.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "src/base/csv_text.hpp"
#include "src/base/field_parser.hpp"
#include "src/base/number_text.hpp"

namespace gpusched {
namespace {

constexpr std::string_view window_prefix = "window.", parameter_prefix = "parameters.";

// A run and what it is compared by.
struct Placed {
  const GridRun* run;
  std::string window, seed;
  double first_job = 0;
};

// Runs of one contestant in one setting, by window and seed.
using Repetitions = std::map<std::pair<std::string, std::string>, Placed>;

// In order of first appearance.
template <class Value>
class Ordered {
 public:
  Value& operator[](const std::string& name) {
    const auto [place, is_new] = places_.emplace(name, entries_.size());
    if (is_new) entries_.emplace_back(name, Value());
    return entries_[place->second].second;
  }
  [[nodiscard]] auto begin() const { return entries_.begin(); }
  [[nodiscard]] auto end() const { return entries_.end(); }

 private:
  std::map<std::string, std::size_t> places_;
  std::vector<std::pair<std::string, Value>> entries_;
};

Placed placed(const std::vector<std::string>& keys, const GridRun& run) {
  Placed place{.run = &run, .window = {}, .seed = {}};
  for (std::size_t k = 0; k < keys.size(); ++k) {
    if (grid_role(keys[k]) != GridRole::replicate) continue;
    if (keys[k] == "window.first_job") place.first_job = parse_number(run.values[k]).value_or(0);
    (keys[k] == "seed" ? place.seed : place.window) += run.values[k] + ";";
  }
  return place;
}

// A figure of one window or one seed on both sides.
struct Pair {
  double first_job = 0, jobs = 0;
  double ours = 0, theirs = 0;
};

using Figures = std::vector<std::optional<double>>;

// The pairs of one window: several seeds, of which those that are equal in every figure are the same run.
struct WindowPairs {
  std::vector<Pair> seeds;
  std::set<std::pair<Figures, Figures>> seen;

  [[nodiscard]] Pair mean() const {
    Pair sum = seeds.front();
    sum.ours = sum.theirs = 0;
    for (const Pair& seed : seeds) {
      sum.ours += seed.ours / static_cast<double>(seeds.size());
      sum.theirs += seed.theirs / static_cast<double>(seeds.size());
    }
    return sum;
  }
};

std::vector<Pair> pairs_of(const Repetitions& ours, const Repetitions& theirs, std::size_t figure,
                           GridComparison& result) {
  Ordered<WindowPairs> windows;
  std::size_t count = 0;
  for (const auto& [key, own] : ours) {
    const auto other = theirs.find(key);
    if (other == theirs.end()) continue;
    const auto a = own.run->figures[figure], b = other->second.run->figures[figure];
    if (!a || !b || !std::isfinite(*a) || !std::isfinite(*b)) continue;
    result.saturated += own.run->saturated || other->second.run->saturated ? 1 : 0;
    result.clairvoyant |= own.run->clairvoyant;
    result.against_clairvoyant |= other->second.run->clairvoyant;
    WindowPairs& window = windows[key.first];
    if (!window.seen.emplace(own.run->figures, other->second.run->figures).second) continue;
    count += window.seeds.empty() ? 1 : 0;
    window.seeds.push_back({own.first_job, own.run->jobs, *a, *b});
  }
  if (count == 1) {
    result.unit = "seed";
    return windows.begin()->second.seeds;
  }
  result.unit = "window";
  std::vector<Pair> pairs;
  for (const auto& [name, window] : windows) pairs.push_back(window.mean());
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.first_job < b.first_job; });
  return pairs;
}

// Windows that share jobs.
std::size_t overlap_of(const std::vector<Pair>& pairs) {
  double step = 0, jobs = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    jobs = std::max(jobs, pairs[i].jobs);
    const double gap = i == 0 ? 0 : pairs[i].first_job - pairs[i - 1].first_job;
    if (gap > 0 && (step == 0 || gap < step)) step = gap;
  }
  if (step == 0) return pairs.size();
  return static_cast<std::size_t>(std::clamp(std::ceil(jobs / step), 1.0, static_cast<double>(pairs.size())));
}

// Seeds are independent: the sign-flip test, which heavy tails do not mislead.
void compare_seeds(GridComparison& result, const std::vector<double>& ours, const std::vector<double>& theirs,
                   const std::vector<double>& differences) {
  result.verdict = std::string(too_few_seeds);
  if (ours.size() < least_test_blocks) return;
  result.test = signed_rank_test(differences);
  const SignFlips flips = sign_flip_test(ours, theirs);
  result.relative = flips.relative;
  if (result.test->nonzero > 0 && result.test->nonzero < least_test_blocks) {
    result.verdict = std::string(too_few_seeds_differ);
    return;
  }
  const double difference = result.mean - result.other;
  result.verdict =
      std::string(verdict(flips.p > 0.05 ? ConfidenceInterval{-1, 1} : ConfidenceInterval{difference, difference}));
}

void compare_windows(GridComparison& result, const std::vector<double>& ours, const std::vector<double>& theirs,
                     const std::vector<double>& differences, std::size_t overlap) {
  if (const auto found = blocked_signed_rank(differences, overlap)) result.test = found->test;
  const auto intervals = paired_intervals({ours}, {theirs}, overlap, Rng(0).split("sweep"));
  if (!intervals) {
    result.verdict = intervals.error().message;
    return;
  }
  result.verdict = std::string(verdict(result.other > 0 ? intervals->relative : intervals->difference));
  if (result.other > 0) result.relative = intervals->relative;
}

void compare_pairs(GridComparison& result, const std::vector<Pair>& pairs) {
  std::vector<double> ours, theirs, differences;
  for (const Pair& pair : pairs) {
    ours.push_back(pair.ours);
    theirs.push_back(pair.theirs);
    differences.push_back(pair.ours - pair.theirs);
  }
  result.pairs = pairs.size();
  result.mean = mean_of(ours);
  result.other = mean_of(theirs);
  if (result.unit == "seed") {
    compare_seeds(result, ours, theirs, differences);
  } else {
    compare_windows(result, ours, theirs, differences, overlap_of(pairs));
  }
}

void correct(std::vector<GridComparison>& comparisons, const char* figure) {
  std::vector<GridComparison*> tested;
  std::vector<double> p_values;
  for (GridComparison& one : comparisons) {
    if (!one.test || one.figure != figure) continue;
    tested.push_back(&one);
    p_values.push_back(one.test->p);
  }
  const std::vector<double> corrected = holm_corrected(p_values);
  for (std::size_t i = 0; i < tested.size(); ++i) {
    tested[i]->p_holm = corrected[i];
    const bool is_told = tested[i]->verdict == "better" || tested[i]->verdict == "worse";
    const bool by_seeds = tested[i]->unit == "seed";  // windows: the verdict is of the means, this test of ranks
    if (!is_told || !by_seeds || corrected[i] <= 0.05) continue;
    // All seeds may agree and be too few for so many tests.
    const double least = std::ldexp(2.0, -static_cast<int>(tested[i]->pairs)) * static_cast<double>(tested.size());
    tested[i]->verdict = least > 0.05 ? std::string(too_few_seeds) : "no difference detected";
  }
}

}  // namespace

GridRole grid_role(const std::string& key) {
  if (key == "policy" || key.starts_with(parameter_prefix)) return GridRole::contestant;
  return key == "seed" || key.starts_with(window_prefix) ? GridRole::replicate : GridRole::setting;
}

namespace {

// Where a policy's backfilling begins, or the end of its text.
std::size_t end_of_policy(const std::string& text) {
  int depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    depth += text[at] == '{' ? 1 : text[at] == '}' ? -1 : 0;
    if (text[at] == '+' && depth == 0) return at;
  }
  return text.size();
}

}  // namespace

std::string grid_contestant(const std::vector<std::string>& keys, const std::vector<std::string>& values) {
  std::string policy, parameters;
  for (std::size_t k = 0; k < keys.size(); ++k) {
    if (grid_role(keys[k]) != GridRole::contestant || values[k].empty()) continue;
    if (keys[k] == "policy") {
      policy = values[k];
    } else {
      parameters += (parameters.empty() ? "" : ",") + keys[k].substr(parameter_prefix.size()) + "=" + values[k];
    }
  }
  return parameters.empty() ? policy : policy.insert(end_of_policy(policy), "{" + parameters + "}");
}

std::string grid_text(const std::vector<std::string>& keys, const std::vector<std::string>& values, GridRole role) {
  std::string text;
  for (std::size_t k = 0; k < keys.size(); ++k) {
    if (grid_role(keys[k]) == role) text += (text.empty() ? "" : ", ") + keys[k] + " " + values[k];
  }
  return text;
}

namespace {

// Backfilling as a part of the policy's name, where it is no setting that policies share.
bool join_backfill(std::vector<std::string>& keys, std::vector<GridRun>& runs) {
  const auto policy = std::find(keys.begin(), keys.end(), "policy") - keys.begin();
  const auto backfill = std::find(keys.begin(), keys.end(), "backfill") - keys.begin();
  const auto size = static_cast<std::ptrdiff_t>(keys.size());
  if (policy == size || backfill == size) return false;
  keys.erase(keys.begin() + backfill);
  for (GridRun& run : runs) {
    std::string& name = run.values[static_cast<std::size_t>(policy)];
    const std::string& method = run.values[static_cast<std::size_t>(backfill)];
    if (end_of_policy(name) == name.size() && !method.empty()) name += "+" + method;
    run.values.erase(run.values.begin() + backfill);
  }
  return true;
}

std::vector<GridComparison> compare_by_setting(const std::vector<std::string>& keys, const std::vector<GridRun>& runs) {
  Ordered<Ordered<Repetitions>> settings;
  std::string reference;
  for (const GridRun& run : runs) {
    const std::string contestant = grid_contestant(keys, run.values);
    if (contestant.empty()) return {};
    if (reference.empty()) reference = contestant;
    const Placed place = placed(keys, run);
    settings[grid_text(keys, run.values, GridRole::setting)][contestant].emplace(std::pair(place.window, place.seed),
                                                                                 place);
  }
  std::vector<GridComparison> comparisons;
  for (const auto& [setting, contestants] : settings) {
    const auto other = std::find_if(contestants.begin(), contestants.end(),
                                    [&](const auto& entry) { return entry.first == reference; });
    if (other == contestants.end()) continue;
    for (const auto& [contestant, repetitions] : contestants) {
      if (contestant == reference) continue;
      for (std::size_t f = 0; f < std::size(grid_figures); ++f) {
        GridComparison one{.setting = setting,
                           .contestant = contestant,
                           .against = reference,
                           .figure = grid_figures[f],
                           .unit = {},
                           .relative = {},
                           .verdict = {},
                           .test = {}};
        const std::vector<Pair> pairs = pairs_of(repetitions, other->second, f, one);
        if (pairs.empty()) continue;
        compare_pairs(one, pairs);
        comparisons.push_back(std::move(one));
      }
    }
  }
  for (const char* figure : grid_figures) correct(comparisons, figure);
  return comparisons;
}

}  // namespace

std::vector<GridComparison> compare_grid(const std::vector<std::string>& keys, const std::vector<GridRun>& runs) {
  std::vector<GridComparison> comparisons = compare_by_setting(keys, runs);
  if (!comparisons.empty()) return comparisons;
  std::vector<std::string> joined_keys = keys;
  std::vector<GridRun> joined_runs = runs;
  return join_backfill(joined_keys, joined_runs) ? compare_by_setting(joined_keys, joined_runs) : comparisons;
}

std::string grid_comparison_csv(const std::vector<GridComparison>& comparisons) {
  std::string text =
      "setting,policy,clairvoyant,against,against_clairvoyant,figure,unit,pairs,saturated,mean,against_mean,relative_"
      "difference,relative_low_95,"
      "relative_high_95,p_wilcoxon,p_holm,rank_biserial,verdict\n";
  const auto add = [&](std::optional<double> value) {
    text += ',';
    if (value) text += exact_number(*value);
  };
  for (const GridComparison& one : comparisons) {
    append_csv_field(text, one.setting);
    append_csv_field(text += ',', one.contestant);
    text += one.clairvoyant ? ",true" : ",false";
    append_csv_field(text += ',', one.against);
    text += one.against_clairvoyant ? ",true" : ",false";
    append_csv_field(text += ',', one.figure);
    append_csv_field(text += ',', one.unit);
    text += "," + std::to_string(one.pairs) + "," + std::to_string(one.saturated);
    add(one.mean);
    add(one.other);
    add(one.relative_difference());
    add(one.relative ? std::optional(one.relative->low) : std::nullopt);
    add(one.relative ? std::optional(one.relative->high) : std::nullopt);
    add(one.test ? std::optional(one.test->p) : std::nullopt);
    add(one.test ? std::optional(one.p_holm) : std::nullopt);
    add(one.test ? std::optional(one.test->rank_biserial) : std::nullopt);
    append_csv_field(text += ',', one.verdict);
    text += '\n';
  }
  return text;
}

}  // namespace gpusched
