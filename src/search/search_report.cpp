// SPDX-License-Identifier: Apache-2.0
#include "src/search/search_report.hpp"

#include <algorithm>

#include "src/base/csv_text.hpp"
#include "src/base/number_text.hpp"
#include "src/base/text_table.hpp"
#include "src/search/nsga2.hpp"
#include "src/sim/manifest.hpp"

namespace gpusched {
namespace {

void append_means(std::string& text, const PolicyFigures& figures, std::size_t objectives) {
  for (std::size_t i = 0; i < objectives; ++i) {
    text += ',';
    if (!figures.means.empty()) text += exact_number(figures.means[i]);
  }
}

std::string names_csv(const Search& search, const char* prefix) {
  std::string text;
  for (const std::string& name : search.objective_names) text += std::string(",") + prefix + name;
  return text;
}

std::string front_csv(const Search& search, const SearchOutcome& outcome) {
  const std::size_t count = search.objective_names.size();
  std::string text = "kind,policy,candidate,clairvoyant" + names_csv(search, "train_") +
                     names_csv(search, "held_out_") + ",on_front,dominated_by,message\n";
  for (const FrontRow& row : outcome.rows) {
    text += row.found ? "found" : "compared";
    append_csv_field(text += ',', row.policy);
    append_csv_field(text += ',', row.description);
    text += row.clairvoyant ? ",true" : ",false";
    append_means(text, row.train, count);
    append_means(text, row.held_out, count);
    text += row.on_front ? ",true" : ",false";
    append_csv_field(text += ',', row.dominated_by);
    append_csv_field(text += ',', row.held_out.failure);
    text += '\n';
  }
  return text;
}

std::string generations_csv(const SearchOutcome& outcome) {
  std::string text = "generation,candidates,failed,front,hypervolume,population_hypervolume\n";
  for (const GenerationReport& report : outcome.generations) {
    text += std::to_string(report.generation) + "," + std::to_string(report.candidates) + "," +
            std::to_string(report.failed) + "," + std::to_string(report.front) + "," +
            exact_number(report.hypervolume) + "," + exact_number(report.population_hypervolume) + "\n";
  }
  return text;
}

std::string candidates_csv(const Search& search, const SearchOutcome& outcome) {
  std::string text = "generation,policy,candidate" + names_csv(search, "train_") + ",message\n";
  for (const FoundPolicy& found : outcome.candidates) {
    text += std::to_string(found.generation);
    append_csv_field(text += ',', found.policy);
    append_csv_field(text += ',', found.description);
    append_means(text, found.train, search.objective_names.size());
    append_csv_field(text += ',', found.train.failure);
    text += '\n';
  }
  return text;
}

Json volumes_json(const Search& search, const SearchVolumes& volumes) {
  Json reference = Json::object();
  for (std::size_t i = 0; i < volumes.reference.size(); ++i) {
    reference[search.objective_names[i]] = volumes.reference[i];
  }
  return {{"reference_losses", std::move(reference)},
          {"found", volumes.found},
          {"compared", volumes.heuristics},
          {"compared_without_true_run_times", volumes.blind},
          {"both", volumes.both}};
}

std::string manifest_of_search(const Search& search, const CandidateRuns& runs, const SearchOutcome& outcome,
                               const Execution& execution, bool interrupted) {
  Json files = Json::array();
  for (const SweepInputFile& file : runs.files()) files.push_back({{"path", file.path}, {"sha256", file.sha256}});
  Search effective = search;
  Json config = search.document;
  // What flags changed is part of what was searched.
  for (const Field& field : search_fields(effective)) {
    if (!field.flag.empty() && field.changes_results && field.path != "out") config[field.path] = field_json(field);
  }
  Json manifest = build_json();
  manifest.update(
      {{"config", std::move(config)},
       {"files", std::move(files)},
       {"pagmo", pagmo_version()},
       {"repeatable", search.repeatable()},
       {"trace_jobs", runs.trace_jobs()},
       {"windows",
        {{"first_train_job_of_each", runs.windows().train}, {"first_held_out_job_of_each", runs.windows().held_out}}},
       {"candidates", outcome.candidates.size()}});
  if (interrupted) {
    manifest["interrupted"] = true;
  } else {
    manifest["hypervolume"] = {{"train", volumes_json(search, outcome.train)},
                               {"held_out", volumes_json(search, outcome.held_out)}};
  }
  manifest.update({{"runs", {{"ran", runs.ran()}, {"stored", runs.stored()}}},
                   {"execution", execution_json(execution, search.threads, search.out)}});
  return json_text(manifest);
}

std::string cell_of(const PolicyFigures& figures, std::size_t objective) {
  return figures.means.empty() ? "-" : formatted("%.6g", figures.means[objective]);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> search_files(const Search& search, const CandidateRuns& runs,
                                                              const SearchOutcome& outcome, const Execution& execution,
                                                              bool interrupted) {
  std::vector<std::pair<std::string, std::string>> files;
  if (!interrupted) files.emplace_back("front.csv", front_csv(search, outcome));
  files.emplace_back("generations.csv", generations_csv(outcome));
  files.emplace_back("candidates.csv", candidates_csv(search, outcome));
  files.emplace_back("manifest.json", manifest_of_search(search, runs, outcome, execution, interrupted));
  return files;
}

std::string generation_text(const GenerationReport& report) {
  return "generation " + std::to_string(report.generation) + ": " + counted(report.candidates, "policy", "policies") +
         ", " + human_count(report.front) + " on the front, hypervolume " + formatted("%.4f", report.hypervolume) +
         (report.failed > 0 ? ", " + human_count(report.failed) + " failed" : "");
}

std::string search_text(const Search& search, const SearchOutcome& outcome, const TextStyle& style) {
  std::vector<std::string> header{"held-out windows"};
  header.insert(header.end(), search.objective_names.begin(), search.objective_names.end());
  header.emplace_back("on the front");
  TextTable table(header);
  std::uint64_t found = 0, found_on_front = 0, compared_on_front = 0, compared_dominated = 0, found_dominated = 0;
  for (const FrontRow& row : outcome.rows) {
    std::vector<std::string> cells{(row.found ? "" : "compared: ") + row.policy + (row.clairvoyant ? " *" : "")};
    for (std::size_t i = 0; i < search.objective_names.size(); ++i) cells.push_back(cell_of(row.held_out, i));
    cells.emplace_back(row.on_front ? "yes" : "no");
    table.add(std::move(cells));
    found += row.found ? 1 : 0;
    (row.found ? found_on_front : compared_on_front) += row.on_front ? 1 : 0;
    if (!row.dominated_by.empty()) ++(row.found ? found_dominated : compared_dominated);
  }
  const std::uint64_t compared = outcome.rows.size() - found;
  std::string text = table.text(style) + "* knows true run times\n";
  text += "Of " + counted(found, "found policy", "found policies") + " " + human_count(found_on_front) +
          " are on the common front of the held-out windows, of " + human_count(compared) + " compared ones " +
          human_count(compared_on_front) + ". A found policy dominates " + human_count(compared_dominated) +
          " of those compared; " + human_count(found_dominated) + " of those found are dominated by one compared.\n";
  const auto volumes = [](const SearchVolumes& of) {
    return "found " + formatted("%.4f", of.found) + ", compared " + formatted("%.4f", of.heuristics) +
           (of.blind < of.heuristics ? " (without those of true run times " + formatted("%.4f", of.blind) + ")" : "") +
           ", both " + formatted("%.4f", of.both);
  };
  text += "Hypervolume in the training windows: " + volumes(outcome.train) +
          "; in the held-out windows: " + volumes(outcome.held_out) + ".\n";
  return text;
}

}  // namespace gpusched
