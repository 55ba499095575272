// SPDX-License-Identifier: Apache-2.0
#include "src/search/policy_search.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "src/search/nsga2.hpp"
#include "src/search/search_space.hpp"

namespace gpusched {
namespace {

// The loss of a candidate without figures, far outside the box of every hypervolume and finite, as pagmo needs it.
constexpr double failed_loss = 1e18;
// How far the reference point lies behind the worst heuristic.
constexpr double reference_margin = 1.1;

// Figures as losses in units of the reference point: the box is [0, 1] in each objective.
class LossScale {
 public:
  LossScale(std::vector<FigureObjective> objectives, std::span<const PolicyFigures> heuristics)
      : objectives_(std::move(objectives)), reference_(objectives_.size(), 0) {
    for (const PolicyFigures& figures : heuristics) {
      for (std::size_t i = 0; i < reference_.size(); ++i) {
        reference_[i] = std::max(reference_[i], reference_margin * objectives_[i].loss(figures.means[i]));
      }
    }
    for (double& length : reference_) {
      if (length <= 0) length = 1;  // all heuristics are perfect
    }
  }

  [[nodiscard]] Losses operator()(const PolicyFigures& figures) const {
    Losses losses(reference_.size(), failed_loss);
    for (std::size_t i = 0; i < figures.means.size(); ++i) {
      losses[i] = std::min(failed_loss, objectives_[i].loss(figures.means[i]) / reference_[i]);
    }
    return losses;
  }
  [[nodiscard]] const std::vector<double>& reference() const { return reference_; }
  [[nodiscard]] double volume(std::span<const Losses> points) const {
    return hypervolume(points, Losses(reference_.size(), 1.0));
  }

 private:
  std::vector<FigureObjective> objectives_;
  std::vector<double> reference_;
};

std::vector<Losses> losses_of(const LossScale& scale, std::span<const PolicyFigures> figures) {
  std::vector<Losses> losses;
  for (const PolicyFigures& one : figures) losses.push_back(scale(one));
  return losses;
}

class PolicySearch {
 public:
  PolicySearch(const Search& search, CandidateRuns& runs, const SearchContext& context, SearchOutcome& outcome)
      : search_(&search),
        runs_(&runs),
        context_(&context),
        space_(search.policies),
        trainings_(search, runs.input(), runs.scenario().conditions,
                   static_cast<std::uint32_t>(search.train_share * runs.trace_jobs()), context.ppo),
        outcome_(&outcome) {}

  Result<void> run() {
    auto heuristics = score_heuristics(runs_->windows().train);
    if (!heuristics) return Unexpected{heuristics.error()};
    heuristics_train_ = *std::move(heuristics);
    scale_.emplace(search_->objectives(), heuristics_train_);
    const auto searched = search_->method == "nsga2"    ? search_by_nsga2()
                          : search_->method == "random" ? search_at_random()
                                                        : search_by_halving();
    return searched ? compare() : searched;
  }

 private:
  Result<std::vector<PolicyFigures>> score_heuristics(std::span<const std::uint32_t> windows) {
    auto figures = runs_->score(runs_->heuristics(), windows, context_->stop);
    if (!figures) return figures;
    for (std::size_t i = 0; i < figures->size(); ++i) {
      if ((*figures)[i].failure.empty()) continue;
      return Unexpected{Error{.message = runs_->heuristics()[i] + ": " + (*figures)[i].failure,
                              .file = search_->file,
                              .field = "/compare"}};
    }
    return figures;
  }

  // The policies of candidates; where one cannot be trained, "" and why.
  Result<std::vector<TrainedCandidate>> policies_of(std::span<const Candidate> candidates, std::uint64_t budget) {
    std::vector<TrainedCandidate> all(candidates.size());
    std::vector<TrainingRequest> requests;
    std::vector<std::size_t> numbers;
    std::map<std::string, std::size_t> same;  // equal candidates are trained once
    std::vector<std::size_t> request_of(candidates.size(), 0);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const Candidate& candidate = candidates[i];
      if (!space_.policies()[candidate.space].training) {
        all[i].policy = space_.policy(candidate);
        continue;
      }
      const auto [place, is_new] = same.emplace(space_.policy(candidate), requests.size());
      if (is_new) requests.push_back({.space = candidate.space, .values = candidate.values, .budget = budget});
      request_of[i] = place->second;
      numbers.push_back(i);
    }
    if (requests.empty()) return all;
    const auto trained = trainings_.train(requests, context_->stop);
    if (!trained) return Unexpected{trained.error()};
    for (const std::size_t i : numbers) all[i] = (*trained)[request_of[i]];
    return all;
  }

  // The losses of candidates in the training windows; new ones are noted.
  Result<std::vector<Losses>> evaluate(std::span<const Candidate> candidates, std::uint64_t budget = 1) {
    const auto made = policies_of(candidates, budget);
    if (!made) return Unexpected{made.error()};
    std::vector<std::string> names, fresh;
    for (std::size_t i = 0; i < made->size(); ++i) {
      const TrainedCandidate& one = (*made)[i];
      const std::string description = space_.policy(candidates[i]);
      names.push_back(one.policy.empty() ? description : one.policy);
      if (!known_.try_emplace(names.back(), known_.size()).second) continue;
      outcome_->candidates.push_back({.policy = names.back(),
                                      .description = description,
                                      .generation = generation_,
                                      .train = {.means = {}, .failure = one.failure}});
      if (!one.policy.empty()) fresh.push_back(one.policy);
    }
    auto figures = runs_->score(fresh, runs_->windows().train, context_->stop);
    if (!figures) {
      keep_scored(fresh);
      return Unexpected{figures.error()};
    }
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      outcome_->candidates[known_.at(fresh[i])].train = std::move((*figures)[i]);
    }
    while (archive_.size() < outcome_->candidates.size()) {
      archive_.push_back((*scale_)(outcome_->candidates[archive_.size()].train));
    }
    std::vector<Losses> losses;
    for (const std::string& name : names) losses.push_back(archive_[known_.at(name)]);
    return losses;
  }

  // Of candidates whose scoring was stopped, those whose runs are all there.
  void keep_scored(std::span<const std::string> fresh) {
    auto figures = runs_->stored_figures(fresh, runs_->windows().train);
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      if (figures[i]) outcome_->candidates[known_.at(fresh[i])].train = *std::move(figures[i]);
    }
    std::erase_if(outcome_->candidates,
                  [](const FoundPolicy& found) { return found.train.means.empty() && found.train.failure.empty(); });
  }

  Result<std::vector<Losses>> evaluate_genomes(std::span<const Genome> genomes) {
    std::vector<Candidate> candidates;
    for (const Genome& genome : genomes) candidates.push_back(space_.decode(genome));
    return evaluate(candidates);
  }

  void note_generation(std::span<const Losses> population) {
    GenerationReport report{.generation = generation_, .candidates = archive_.size()};
    for (const FoundPolicy& found : outcome_->candidates) report.failed += found.train.failure.empty() ? 0 : 1;
    report.front = front_of_archive().size();
    report.hypervolume = scale_->volume(archive_);
    report.population_hypervolume = scale_->volume(population);
    outcome_->generations.push_back(report);
    if (context_->watch) context_->watch(report);
    ++generation_;
  }

  // Numbers of candidates with figures that no other dominates.
  [[nodiscard]] std::vector<std::size_t> front_of_archive() const {
    std::vector<std::size_t> front = non_dominated(archive_);
    std::erase_if(front, [&](std::size_t i) { return !outcome_->candidates[i].train.failure.empty(); });
    return front;
  }

  Result<void> search_by_nsga2() {
    const SearchProblem problem{
        .genes = space_.genes(),
        .objectives = search_->objective_names.size(),
        .evaluate = [this](std::span<const Genome> genomes) { return evaluate_genomes(genomes); }};
    const Nsga2Options options{.population = static_cast<std::uint32_t>(search_->population),
                               .generations = static_cast<std::uint32_t>(search_->generations),
                               .seed = search_->seed};
    return run_nsga2(problem, options, [this](std::uint32_t, const Population& population) -> Result<void> {
      note_generation(population.losses);
      return {};
    });
  }

  Result<void> search_at_random() {
    for (std::uint64_t generation = 0; generation <= search_->generations; ++generation) {
      const auto losses = evaluate_genomes(
          random_genomes(space_.genes(), static_cast<std::uint32_t>(search_->population), search_->seed, generation_));
      if (!losses) return Unexpected{losses.error()};
      note_generation(*losses);
    }
    return {};
  }

  // Successive halving (Jamieson and Talwalkar, AISTATS'16): every rung trains what is left for longer. Candidates
  // that go on are chosen by non-dominated sorting and crowding distance, as there are several objectives.
  Result<void> search_by_halving() {
    std::vector<Candidate> left;
    for (const Genome& genome :
         random_genomes(space_.genes(), static_cast<std::uint32_t>(search_->population), search_->seed, 0)) {
      left.push_back(space_.decode(genome));
    }
    std::uint64_t budget = 1;
    for (std::uint64_t rung = 0; rung < search_->rungs; ++rung) {
      const auto losses = evaluate(left, budget);
      if (!losses) return Unexpected{losses.error()};
      note_generation(*losses);
      const std::size_t count = std::max<std::size_t>(1, left.size() / search_->keep);
      std::vector<Candidate> best;
      for (const std::size_t i : select_spread(*losses, count)) best.push_back(left[i]);
      left = std::move(best);
      budget *= search_->keep;
    }
    return {};
  }

  // Runs the front and the heuristics on the held-out windows.
  Result<void> compare() {
    std::vector<std::size_t> front = front_of_archive();
    std::vector<Losses> losses;
    for (const std::size_t i : front) losses.push_back(archive_[i]);
    std::vector<std::size_t> chosen;
    for (const std::size_t i : select_spread(losses, search_->front == 0 ? search_->population : search_->front)) {
      chosen.push_back(front[i]);
    }
    std::stable_sort(chosen.begin(), chosen.end(),
                     [&](std::size_t a, std::size_t b) { return archive_[a] < archive_[b]; });
    std::vector<std::string> policies;
    for (const std::size_t i : chosen) policies.push_back(outcome_->candidates[i].policy);
    const std::vector<std::uint32_t>& windows = runs_->windows().held_out;
    auto found = runs_->score(policies, windows, context_->stop);
    if (!found) return Unexpected{found.error()};
    auto heuristics = score_heuristics(windows);
    if (!heuristics) return Unexpected{heuristics.error()};
    const LossScale scale(search_->objectives(), *heuristics);
    const std::vector<PolicyFigures> train = figures_at(chosen);
    outcome_->train = volumes_of(*scale_, train, heuristics_train_);
    outcome_->held_out = volumes_of(scale, *found, *heuristics);
    for (std::size_t i = 0; i < policies.size(); ++i) {
      add_row(true, policies[i], train[i], (*found)[i]);
      outcome_->rows.back().description = outcome_->candidates[chosen[i]].description;
    }
    for (std::size_t i = 0; i < heuristics->size(); ++i) {
      add_row(false, runs_->heuristics()[i], heuristics_train_[i], (*heuristics)[i]);
    }
    judge(scale);
    return {};
  }

  [[nodiscard]] std::vector<PolicyFigures> figures_at(std::span<const std::size_t> numbers) const {
    std::vector<PolicyFigures> figures;
    for (const std::size_t i : numbers) figures.push_back(outcome_->candidates[i].train);
    return figures;
  }

  [[nodiscard]] SearchVolumes volumes_of(const LossScale& scale, std::span<const PolicyFigures> found,
                                         std::span<const PolicyFigures> heuristics) const {
    std::vector<Losses> points = losses_of(scale, found);
    const std::vector<Losses> others = losses_of(scale, heuristics);
    std::vector<Losses> blind;
    for (std::size_t i = 0; i < others.size(); ++i) {
      if (!runs_->clairvoyant(runs_->heuristics()[i])) blind.push_back(others[i]);
    }
    SearchVolumes volumes{.reference = scale.reference(),
                          .found = scale.volume(points),
                          .heuristics = scale.volume(others),
                          .blind = scale.volume(blind)};
    points.insert(points.end(), others.begin(), others.end());
    volumes.both = scale.volume(points);
    return volumes;
  }

  void add_row(bool found, const std::string& policy, const PolicyFigures& train, const PolicyFigures& held_out) {
    outcome_->rows.push_back({.found = found,
                              .policy = policy,
                              .description = policy,
                              .clairvoyant = runs_->clairvoyant(policy),
                              .train = train,
                              .held_out = held_out,
                              .on_front = false,
                              .dominated_by = {}});
  }

  void judge(const LossScale& scale) {
    std::vector<Losses> points;
    for (const FrontRow& row : outcome_->rows) points.push_back(scale(row.held_out));
    for (std::size_t i = 0; i < points.size(); ++i) {
      FrontRow& row = outcome_->rows[i];
      bool is_dominated = false;
      for (std::size_t j = 0; j < points.size(); ++j) {
        if (!dominates(points[j], points[i])) continue;
        is_dominated = true;
        const FrontRow& other = outcome_->rows[j];
        if (other.found != row.found && row.dominated_by.empty()) row.dominated_by = other.policy;
      }
      row.on_front = !is_dominated && row.held_out.failure.empty();
    }
  }

  const Search* search_;
  CandidateRuns* runs_;
  const SearchContext* context_;
  CandidateSpace space_;
  Trainings trainings_;
  std::vector<PolicyFigures> heuristics_train_;
  std::optional<LossScale> scale_;            // of the training windows
  std::map<std::string, std::size_t> known_;  // number of a candidate by its policy
  std::vector<Losses> archive_;               // of all candidates, by number
  std::uint32_t generation_ = 0;
  SearchOutcome* outcome_;
};

// The condition of a candidate whose value a message names, as the end of a path in the file; "" where none is.
std::string condition_in(const std::string& message, const Candidate& candidate) {
  for (const auto& [name, value] : candidate.values) {
    // Files are named at the beginning, or in quotes.
    const std::string text = value.is_string() ? value.get<std::string>() : "";
    const bool is_named =
        !text.empty() && (message.starts_with(text + ":") || message.find("'" + text + "'") != std::string::npos);
    if (is_named && name.starts_with(condition_prefix)) return "/parameters/" + name;
  }
  return "";
}

}  // namespace

Result<void> check_space(const Search& search, const CandidateRuns& runs) {
  const bool trains = std::any_of(search.policies.begin(), search.policies.end(),
                                  [](const SearchedPolicy& policy) { return policy.training.has_value(); });
  if (trains && search.out.find_first_of(",{}+ \t\n") != std::string::npos) {
    return unexpected("--out: models lie there, whose names are policies: expected none of , { } + or blanks in '" +
                      search.out + "'");
  }
  const CandidateSpace space(search.policies);
  const auto jobs = static_cast<std::uint32_t>(search.train_share * runs.trace_jobs());
  for (const Candidate& corner : space.corners()) {
    const std::string place = search.policies[corner.space].place();
    const bool trained = search.policies[corner.space].training.has_value();
    if (!trained && search.method == "halving") {
      return Unexpected{
          Error{.message = "method halving is for trainings, whose budget grows", .file = search.file, .field = place}};
    }
    const auto done = trained ? Trainings(search, runs.input(), runs.scenario().conditions, jobs, nullptr)
                                    .check({.space = corner.space, .values = corner.values})
                              : runs.check(space.policy(corner));
    if (done) continue;
    if (trained) return done;
    const std::string message = done.error().to_string();
    return Unexpected{Error{.message = message, .file = search.file, .field = place + condition_in(message, corner)}};
  }
  return {};
}

Result<void> search_policies(const Search& search, CandidateRuns& runs, const SearchContext& context,
                             SearchOutcome& outcome) {
  return PolicySearch(search, runs, context, outcome).run();
}

std::string why_all_failed(const SearchOutcome& outcome) {
  const auto has_failed = [](const FoundPolicy& found) { return !found.train.failure.empty(); };
  const std::vector<FoundPolicy>& all = outcome.candidates;
  if (all.empty() || !std::all_of(all.begin(), all.end(), has_failed)) return "";
  return "every candidate failed; " + all.front().description + ": " + all.front().train.failure;
}

}  // namespace gpusched
