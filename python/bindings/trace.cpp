// SPDX-License-Identifier: Apache-2.0
// Traces and clusters: read, made from columns, looked at as arrays.
#include "python/bindings/trace.hpp"

#include <nanobind/stl/optional.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>

#include "src/world/cluster_reader.hpp"
#include "traces/core/trace_reader.hpp"
#include "traces/tools/trace_convert.hpp"

namespace gpusched::python {
namespace {

using Numbers = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// One value of each job.
template <class Value>
auto each_job(const JobTable& jobs, Value value) {
  std::vector<decltype(value(JobId{}))> values(jobs.size());
  for (std::uint32_t i = 0; i < jobs.size(); ++i) values[i] = value(JobId{i});
  return column(std::move(values));
}

PyTrace read(const std::string& path, const std::string& format, const std::string& columns, const std::string& where,
             const std::string& qos, std::uint64_t seed, bool drop_bad_rows, bool backlog) {
  std::optional<Result<Trace>> trace;
  {
    const OpenCall open;
    const nb::gil_scoped_release unlocked;
    trace.emplace(read_trace(path, {.format = format,
                                    .columns = columns,
                                    .where = where,
                                    .qos = qos,
                                    .seed = seed,
                                    .drop_bad_rows = drop_bad_rows,
                                    .backlog = backlog}));
  }
  return {std::make_shared<const Trace>(value_or_raise(*std::move(trace)))};
}

InputError bad_cell(const char* name, std::size_t row, const std::string& expected) {
  return InputError(std::string(name) + "[" + std::to_string(row) + "]: expected " + expected);
}

Time time_at(const char* name, const Numbers& values, std::size_t row, bool negative_allowed) {
  constexpr double most = 1e12;  // seconds: some 30,000 years
  const double value = values.data()[row];
  if (!std::isfinite(value) || value > most || value < (negative_allowed ? -most : 0)) {
    throw bad_cell(name, row, negative_allowed ? "seconds between -1e12 and 1e12" : "seconds between 0 and 1e12");
  }
  return from_seconds(value);
}

// All arrays have as many entries as `submit`; optional ones may have none.
PyTrace from_columns(const Numbers& submit, const Numbers& duration, const Numbers& gpus,
                     const std::optional<Numbers>& estimate, const std::vector<std::string>& users,
                     const std::vector<std::string>& vcs, const std::vector<std::string>& ids) {
  const std::size_t rows = submit.shape(0);
  const auto same = [&](const char* name, std::size_t size) {
    if (size != rows) {
      throw InputError(std::string(name) + ": expected " + std::to_string(rows) + " entries, as submit_s has, not " +
                       std::to_string(size));
    }
  };
  same("duration_s", duration.shape(0));
  same("gpus", gpus.shape(0));
  if (estimate) same("estimate_s", estimate->shape(0));
  if (!users.empty()) same("user", users.size());
  if (!vcs.empty()) same("vc", vcs.size());
  if (!ids.empty()) same("job_id", ids.size());
  if (rows == 0) throw InputError("submit_s: expected at least one job");
  JobTableBuilder builder;
  builder.reserve(rows);
  for (std::size_t row = 0; row < rows; ++row) {
    const double count = gpus.data()[row];
    const bool share = count > 0 && count < 1 && std::floor(count * 1000) == count * 1000;
    if (!share && !(count >= 0 && count <= 1e6 && std::floor(count) == count)) {
      throw bad_cell("gpus", row, "a whole number of GPUs or thousandths of one GPU");
    }
    JobRecord job{.submit = time_at("submit_s", submit, row, true),
                  .work = time_at("duration_s", duration, row, false)};
    if (!ids.empty()) job.id = ids[row];
    if (estimate && !std::isnan(estimate->data()[row])) job.estimate = time_at("estimate_s", *estimate, row, false);
    job.shape = gang_of(share ? 1 : static_cast<std::int64_t>(count));
    if (share) job.shape.gpu_milli_per_task = static_cast<MilliGpu>(std::llround(count * 1000));
    if (!users.empty()) job.user = users[row];
    if (!vcs.empty()) job.vc = vcs[row];
    builder.add(job);
  }
  Trace trace{.jobs = value_or_raise(std::move(builder).build()), .report = {}};
  trace.report.path = trace.report.format = "columns";
  trace.report.rows = trace.report.kept = rows;
  check(check_times(trace.jobs, "columns"));
  return {std::make_shared<const Trace>(std::move(trace))};
}

nb::dict report_of(const PyTrace& trace) {
  const TraceReport& report = trace.trace->report;
  nb::dict dropped, result;
  for (const DroppedRows& entry : report.dropped) dropped[entry.reason.c_str()] = entry.rows;
  result["path"] = report.path;
  result["format"] = report.format;
  result["sha256"] = report.sha256;
  result["rows"] = report.rows;
  result["kept"] = report.kept;
  result["dropped"] = dropped;
  result["notes"] = nb::cast(report.notes);
  return result;
}

// What pickle keeps: the jobs as the native csv, which `make` reads again, and the report.
nb::object reduced(const PyTrace& trace) {
  const TraceReport& report = trace.trace->report;
  JobTable jobs = trace.trace->jobs;
  jobs.set_midnight_to_zero({});  // times stay as they are
  const std::string text = write_native(jobs).text;
  nb::list dropped;
  for (const DroppedRows& entry : report.dropped) {
    dropped.append(nb::make_tuple(entry.reason, entry.rows, entry.first_line));
  }
  const nb::object make = nb::module_::import_("gpusched_sim.runs").attr("_trace_of");
  return nb::make_tuple(make, nb::make_tuple(nb::bytes(text.data(), text.size()), report.path, report.format,
                                             report.sha256, report.rows, report.kept, nb::cast(report.notes),
                                             report.cluster, report.machine_gpus, dropped, report.clock.us));
}

// A trace that was read, with the report of another.
PyTrace reported(const PyTrace& read, const std::string& path, const std::string& format, const std::string& sha256,
                 std::uint64_t rows, std::uint64_t kept, const std::vector<std::string>& notes,
                 const std::string& cluster, std::int64_t machine_gpus, const nb::list& dropped,
                 std::int64_t clock_us) {
  TraceReport report{.path = path,
                     .format = format,
                     .sha256 = sha256,
                     .rows = rows,
                     .kept = kept,
                     .dropped = {},
                     .notes = notes,
                     .cluster = cluster,
                     .machine_gpus = machine_gpus,
                     .clock = Time{clock_us}};
  for (const nb::handle entry : dropped) {
    report.dropped.push_back(
        {nb::cast<std::string>(entry[0]), nb::cast<std::uint64_t>(entry[1]), nb::cast<std::uint64_t>(entry[2])});
  }
  JobTable jobs = read.trace->jobs;
  jobs.set_midnight_to_zero(report.clock);
  return {std::make_shared<const Trace>(Trace{.jobs = std::move(jobs), .report = std::move(report)})};
}

PyCluster cluster_of(const std::string& text) {
  return {std::make_shared<const Cluster>(value_or_raise(parse_cluster(text))), text};
}

}  // namespace

nb::dict job_columns(const JobTable& jobs, bool true_times) {
  nb::dict columns;
  const auto seconds = [&](auto time) {
    return each_job(jobs, [&](JobId job) { return seconds_or_nan((jobs.*time)(job)); });
  };
  const auto names = [&](const char* name, auto number, const NameTable& table) {
    columns[name] = each_job(jobs, [&](JobId job) { return (jobs.*number)(job); });
    columns[(std::string(name) + "_names").c_str()] = nb::cast(table.names());
  };
  columns["submit_s"] = seconds(&JobTable::submit);
  if (true_times) columns["duration_s"] = seconds(&JobTable::work);
  columns["gpus"] = each_job(jobs, [&](JobId job) {
    return static_cast<double>(jobs.shape(job).gpu_milli()) / static_cast<double>(whole_gpu);
  });
  columns["tasks"] = each_job(jobs, [&](JobId job) { return jobs.shape(job).tasks; });
  columns["estimate_s"] = seconds(&JobTable::estimate);
  columns["deadline_s"] = seconds(&JobTable::deadline);
  columns["priority"] = each_job(jobs, [&](JobId job) { return jobs.priority(job); });
  names("user", &JobTable::user, jobs.users());
  names("group", &JobTable::group, jobs.groups());
  names("vc", &JobTable::vc, jobs.vcs());
  names("family", &JobTable::family, jobs.families());
  return columns;
}

void bind_trace(nb::module_& module) {
  nb::class_<PyTrace>(module, "Trace", "Jobs that were read: immutable, shared by the runs that use them.")
      .def("__len__", [](const PyTrace& trace) { return trace.trace->jobs.size(); })
      .def("__repr__",
           [](const PyTrace& trace) {
             return "Trace('" + trace.trace->report.path + "', " + std::to_string(trace.trace->jobs.size()) + " jobs)";
           })
      .def("__reduce__", &reduced)
      .def("__copy__", [](nb::object self) { return self; })
      .def(
          "__deepcopy__", [](nb::object self, const nb::object&) { return self; }, nb::arg("memo"))
      .def(
          "columns", [](const PyTrace& trace) { return job_columns(trace.trace->jobs, true); },
          "Every column as a numpy array; names as numbers, with a list of them.")
      .def(
          "job_ids",
          [](const PyTrace& trace) {
            std::vector<std::string> ids;
            for (std::uint32_t i = 0; i < trace.trace->jobs.size(); ++i) {
              ids.push_back(trace.trace->jobs.external_id(JobId{i}));
            }
            return ids;
          },
          "The id of each job as the trace writes it.")
      .def_prop_ro("report", &report_of, "What reading did: rows read, kept, and left out by reason.");
  nb::class_<PyCluster>(module, "Cluster", "The machines of a run: immutable.")
      .def_prop_ro(
          "text", [](const PyCluster& cluster) { return cluster.text; }, "As it was given.")
      .def_prop_ro(
          "gpus", [](const PyCluster& cluster) { return cluster.cluster->total_gpus(); }, "GPUs of all nodes.")
      .def_prop_ro(
          "nodes", [](const PyCluster& cluster) { return cluster.cluster->nodes.size(); }, "Number of nodes.")
      .def_prop_ro(
          "node_gpus",
          [](const PyCluster& cluster) {
            std::vector<std::uint32_t> gpus;
            for (const Node& node : cluster.cluster->nodes) gpus.push_back(node.gpus);
            return column(std::move(gpus));
          },
          "GPUs of each node.")
      .def("__repr__", [](const PyCluster& cluster) { return "Cluster('" + cluster.text + "')"; })
      .def("__reduce__",
           [](const PyCluster& cluster) {
             return nb::make_tuple(nb::module_::import_("gpusched_sim").attr("parse_cluster"),
                                   nb::make_tuple(cluster.text));
           })
      .def("__copy__", [](nb::object self) { return self; })
      .def(
          "__deepcopy__", [](nb::object self, const nb::object&) { return self; }, nb::arg("memo"));
  module.def("reported_trace", &reported);
  module.def("read_trace", &read, nb::arg("path"), nb::arg("format"), nb::arg("columns"), nb::arg("where"),
             nb::arg("qos"), nb::arg("seed"), nb::arg("drop_bad_rows"), nb::arg("backlog"));
  module.def("trace_from_columns", &from_columns, nb::arg("submit_s"), nb::arg("duration_s"), nb::arg("gpus"),
             nb::arg("estimate_s").none(), nb::arg("user"), nb::arg("vc"), nb::arg("job_id"));
  module.def("parse_cluster", &cluster_of, nb::arg("text"));
}

}  // namespace gpusched::python
