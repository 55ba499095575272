// SPDX-License-Identifier: Apache-2.0
#include "src/world/site_jobs.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "src/base/name_text.hpp"
#include "src/base/nearest_name.hpp"
#include "src/base/number_text.hpp"
#include "src/calibration/profile/measured_csv.hpp"

namespace gpusched {
namespace {

constexpr std::array<MeasuredColumn, 6> place_columns{
    {{"job_id"}, {"site", ""}, {"data_gb", ""}, {"output_gb", ""}, {"data_set", ""}, {"checkpoint_gb", ""}}};
constexpr double most_job_gb = 1e9;

std::string_view name_of_column(const JobTable& jobs, HomeColumn column, JobId job) {
  switch (column) {
    case HomeColumn::vc: return jobs.vcs()[jobs.vc(job)];
    case HomeColumn::user: return jobs.users()[jobs.user(job)];
    case HomeColumn::group: return jobs.groups()[jobs.group(job)];
    case HomeColumn::none: break;
  }
  return {};
}

// Reads the rows of one csv into the places of the jobs that are run.
class PlaceReader {
 public:
  PlaceReader(const JobTable& jobs, const SiteWorld& world, std::vector<JobPlace>& places)
      : sites_(site_names(world)), places_(places) {
    for (SiteId site = 0; site < sites_.size(); ++site) site_of_.emplace(sites_[site], site);
    for (std::uint32_t set = 0; set < world.data_sets.size(); ++set) {
      sets_.push_back(world.data_sets[set].name);
      set_of_.emplace(sets_.back(), set);
    }
    for (std::uint32_t i = 0; i < jobs.size(); ++i) job_of_.emplace(jobs.external_id(JobId{i}), i);
  }

  void read(MeasuredCells& cells) {
    const auto job = job_of_.find(name_text(cells.text(0)));
    JobPlace ignored;  // of a job that is not run
    JobPlace& place = job == job_of_.end() ? ignored : places_[job->second];
    if (!cells.text(1).empty()) place.home = found(cells, 1, site_of_, sites_, "site", place.home);
    place.bytes = bytes(cells, 2);
    place.output_bytes = bytes(cells, 3);
    place.checkpoint_bytes = bytes(cells, 5);
    if (!cells.text(4).empty()) place.data_set = found(cells, 4, set_of_, sets_, "data set", place.data_set);
    if (job == job_of_.end()) {
      ++others_;
      return;
    }
    if (!is_told_.insert(job->second).second) cells.fail(0, "each job once");
  }
  [[nodiscard]] std::uint32_t others() const { return others_; }
  [[nodiscard]] std::uint32_t told() const { return static_cast<std::uint32_t>(is_told_.size()); }

 private:
  using Numbers = std::unordered_map<std::string, std::uint32_t>;  // looked up, never gone through

  static std::uint32_t found(MeasuredCells& cells, std::size_t column, const Numbers& numbers,
                             const std::vector<std::string>& known, const std::string& what, std::uint32_t otherwise) {
    const std::string name = name_text(cells.text(column));
    const auto at = numbers.find(name);
    if (at != numbers.end()) return at->second;
    cells.fail(column, "the name of a " + what + suggest_nearest(name, known));
    return otherwise;
  }
  static std::int64_t bytes(MeasuredCells& cells, std::size_t column) {
    if (cells.text(column).empty()) return 0;
    const double gb = cells.number(column, 0);
    if (gb > most_job_gb) cells.fail(column, "at most 1e9 GB");
    return std::llround(std::min(gb, most_job_gb) * bytes_per_gb);
  }

  std::vector<std::string> sites_, sets_;
  std::vector<JobPlace>& places_;
  Numbers site_of_, set_of_, job_of_;
  std::unordered_set<std::uint32_t> is_told_;  // jobs
  std::uint32_t others_ = 0;                   // rows of jobs that are not run
};

}  // namespace

bool has_site_columns(const std::string& path) {
  if (!path.ends_with(".csv")) return false;
  std::ifstream file(path);
  std::string header;
  if (!std::getline(file, header) || header.size() > 100'000) return false;
  const std::string cells = "," + header.substr(0, header.find_last_not_of("\r ") + 1) + ",";
  const auto has = [&](const char* name) { return cells.find("," + std::string(name) + ",") != std::string::npos; };
  return has("job_id") &&
         (has("site") || has("data_gb") || has("output_gb") || has("checkpoint_gb") || has("data_set"));
}

std::vector<std::string> site_names(const SiteWorld& world) {
  std::vector<std::string> names;
  for (const Site& site : world.sites) names.push_back(site.name);
  return names;
}

Result<std::vector<JobPlace>> places_of_jobs(const SiteJobs& told, const std::string& trace, const JobTable& jobs,
                                             const SiteWorld& world, std::vector<std::string>& files,
                                             std::vector<std::string>& notes) {
  std::vector<JobPlace> places(jobs.size());
  std::uint32_t unnamed = 0;
  for (std::uint32_t i = jobs.replicas(); i < jobs.size(); ++i) {
    const auto home = told.of.find(std::string(name_of_column(jobs, told.column, JobId{i})));
    places[i].home = home == told.of.end() ? told.otherwise : home->second;
    if (home == told.of.end()) ++unnamed;
  }
  const std::string file = !told.file.empty() ? told.file : has_site_columns(trace) ? trace : "";
  if (!file.empty()) {
    PlaceReader reader(jobs, world, places);
    const auto read = for_each_measured_cells(file, place_columns, [&](MeasuredCells& cells) { reader.read(cells); });
    if (!read) return Unexpected{read.error()};
    if (file != trace) files.push_back(file);
    if (file != trace && reader.others() > 0)
      notes.push_back(file + ": " + counted(reader.others(), "row names a job", "rows name jobs") + " of no run");
    const std::uint32_t all = jobs.size() - jobs.replicas();
    if (reader.told() < all)
      notes.push_back(file + " says nothing of " + std::to_string(all - reader.told()) + " jobs");
  } else if (told.column != HomeColumn::none && unnamed > 0) {
    notes.push_back(std::to_string(unnamed) + " jobs are named nowhere in home/of; their home is " +
                    world.sites[told.otherwise].name);
  }
  return places;
}

}  // namespace gpusched
