// SPDX-License-Identifier: Apache-2.0
#include "src/sweep/sweep_store.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>
#include <set>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>

#include "src/base/strict_json.hpp"
#include "src/sim/metric_table.hpp"

namespace gpusched {
namespace {

constexpr int wait_for_lock_ms = 10'000;

// A number of a result, with the place where it lives.
struct Figure {
  std::string name;
  std::variant<std::uint32_t*, std::uint64_t*, std::int64_t*, double*, bool*, std::optional<double>*> place;
};

// The one list of what is stored and written.
std::vector<Figure> figures_of(SweepResult& result) {
  std::vector<Figure> figures;
  for (const MetricInfo& metric : metric_table()) {
    std::visit([&](const auto member) { figures.push_back({metric.name, &(result.metrics.*member)}); }, metric.member);
  }
  Saturation& saturation = result.saturation;
  figures.push_back({"offered_load", &saturation.offered_load});
  figures.push_back({"backlog_jobs", &saturation.backlog_jobs});
  figures.push_back({"max_waiting_jobs", &saturation.max_waiting_jobs});
  figures.push_back({"saturated", &saturation.saturated});
  figures.push_back({"clairvoyant", &result.clairvoyant});
  return figures;
}

void bind_figure(sqlite3_stmt* statement, int column, const Figure& figure) {
  std::visit(
      [&](const auto* value) {
        using Value = std::remove_cvref_t<decltype(*value)>;
        if constexpr (std::is_same_v<Value, double>) {
          sqlite3_bind_double(statement, column, *value);
        } else if constexpr (std::is_same_v<Value, std::optional<double>>) {
          if (*value) sqlite3_bind_double(statement, column, **value);
        } else {
          sqlite3_bind_int64(statement, column, static_cast<std::int64_t>(*value));
        }
      },
      figure.place);
}

void read_figure(sqlite3_stmt* statement, int column, const Figure& figure) {
  if (sqlite3_column_type(statement, column) == SQLITE_NULL) return;
  std::visit(
      [&](auto* value) {
        using Value = std::remove_cvref_t<decltype(*value)>;
        if constexpr (std::is_same_v<Value, double> || std::is_same_v<Value, std::optional<double>>) {
          *value = sqlite3_column_double(statement, column);
        } else {
          *value = static_cast<Value>(sqlite3_column_int64(statement, column));
        }
      },
      figure.place);
}

// JSON has no infinity; what is not a number is stored as nothing, as SQLite does.
Json figure_json(const Figure& figure) {
  return std::visit(
      [](const auto* value) {
        using Value = std::remove_cvref_t<decltype(*value)>;
        const auto of_double = [](double number) {
          if (std::isnan(number)) return Json();
          return std::isinf(number) ? Json(number > 0 ? "inf" : "-inf") : Json(number);
        };
        if constexpr (std::is_same_v<Value, double>) {
          return of_double(*value);
        } else if constexpr (std::is_same_v<Value, std::optional<double>>) {
          return *value ? of_double(**value) : Json();
        } else {
          return Json(*value);
        }
      },
      figure.place);
}

// Throws what the JSON library throws for a value of another type.
void read_figure(const Json& json, const Figure& figure) {
  if (json.is_null()) return;
  std::visit(
      [&](auto* value) {
        using Value = std::remove_cvref_t<decltype(*value)>;
        if constexpr (std::is_same_v<Value, double> || std::is_same_v<Value, std::optional<double>>) {
          constexpr double infinite = std::numeric_limits<double>::infinity();
          *value = json.is_string() ? (json == "-inf" ? -infinite : infinite) : json.get<double>();
        } else {
          *value = json.get<Value>();
        }
      },
      figure.place);
}

std::string text_of(sqlite3_stmt* statement, int column) {
  const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
  return text == nullptr ? "" : std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(statement, column)));
}

void bind_text(sqlite3_stmt* statement, int column, std::string_view text) {
  sqlite3_bind_text64(statement, column, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

RunStatus status_of(const std::string& word) {
  const auto place = std::find(std::begin(run_status_names), std::end(run_status_names), word);
  return place == std::end(run_status_names)
             ? RunStatus::failed
             : static_cast<RunStatus>(std::distance(std::begin(run_status_names), place));
}

constexpr const char* own_columns[] = {"key",     "status", "message", "point",
                                       "program", "wall_s", "cpu_s",   "simulation_s"};

}  // namespace

struct SweepStore::State {
  struct DatabaseCloser {
    void operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }
  };
  struct StatementCloser {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  using Database = std::unique_ptr<sqlite3, DatabaseCloser>;
  using Statement = std::unique_ptr<sqlite3_stmt, StatementCloser>;

  std::string path;
  Database database;
  Statement put, find;

  [[nodiscard]] Unexpected failed(const std::string& what) const {
    std::string why = database ? sqlite3_errmsg(database.get()) : "not enough memory";
    if (database &&
        (sqlite3_errcode(database.get()) == SQLITE_BUSY || sqlite3_errcode(database.get()) == SQLITE_LOCKED)) {
      why += " by another program";
    }
    return Unexpected{Error{.message = "cannot " + what + ": " + why, .file = path}};
  }

  [[nodiscard]] Result<void> carry_out(const std::string& sql, const std::string& what) const {
    if (sqlite3_exec(database.get(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) return {};
    return failed(what);
  }

  Result<Statement> prepare(const std::string& sql, const std::string& what) const {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(database.get(), sql.c_str(), -1, &statement, nullptr) == SQLITE_OK)
      return Statement(statement);
    return failed(what);
  }

  static Result<std::unique_ptr<State>> open(const std::string& path, int flags) {
    auto state = std::make_unique<State>();
    state->path = path;
    sqlite3* database = nullptr;
    const int code = sqlite3_open_v2(path.c_str(), &database, flags, nullptr);
    state->database.reset(database);
    if (code != SQLITE_OK) return state->failed("open");
    sqlite3_busy_timeout(database, wait_for_lock_ms);
    return state;
  }

  // A file that was overwritten in part gives rows that nobody stored.
  Result<void> check_pages() {
    const auto checked = prepare("PRAGMA quick_check(1)", "read");
    if (!checked) return Unexpected{checked.error()};
    if (sqlite3_step(checked->get()) == SQLITE_ROW && text_of(checked->get(), 0) == "ok") return {};
    return Unexpected{
        Error{.message = "is damaged: SQLite's quick_check refuses it; move it away to run all again", .file = path}};
  }

  // A metric that a later version added is a column that an older file lacks.
  Result<void> make_table() {
    SweepResult nothing;
    std::string columns =
        "key TEXT PRIMARY KEY, status TEXT NOT NULL, message TEXT NOT NULL, point TEXT NOT NULL, program TEXT NOT "
        "NULL, "
        "wall_s REAL, cpu_s REAL, simulation_s REAL";
    const std::vector<Figure> figures = figures_of(nothing);
    for (const Figure& figure : figures) columns += ", " + figure.name;
    // One transaction: a second program sees the table whole or not at all.
    if (auto done = carry_out("BEGIN IMMEDIATE", "write"); !done) return done;
    if (auto done = carry_out("CREATE TABLE IF NOT EXISTS runs (" + columns + ") WITHOUT ROWID", "write"); !done)
      return done;
    if (auto sound = check_pages(); !sound) return sound;
    std::set<std::string> known;
    const auto listed = prepare("SELECT name FROM pragma_table_info('runs')", "read");
    if (!listed) return Unexpected{listed.error()};
    while (sqlite3_step(listed->get()) == SQLITE_ROW) known.insert(text_of(listed->get(), 0));
    for (const char* column : own_columns) {
      if (!known.contains(column)) {
        return Unexpected{Error{
            .message = std::string("is no database of a sweep: its table runs has no column ") + column, .file = path}};
      }
    }
    for (const Figure& figure : figures) {
      if (known.contains(figure.name)) continue;
      if (auto done = carry_out("ALTER TABLE runs ADD COLUMN " + figure.name, "write"); !done) return done;
    }
    return carry_out("COMMIT", "write");
  }

  Result<void> prepare_statements() {
    SweepResult nothing;
    std::string names, marks;
    for (const Figure& figure : figures_of(nothing)) {
      names += ", " + figure.name;
      marks += ", ?";
    }
    auto found =
        prepare("SELECT status, message, wall_s, cpu_s, simulation_s" + names + " FROM runs WHERE key = ?", "read");
    if (!found) return Unexpected{found.error()};
    find = *std::move(found);
    auto putting =
        prepare("INSERT OR REPLACE INTO runs (key, status, message, point, program, wall_s, cpu_s, simulation_s" +
                    names + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?" + marks + ")",
                "write");
    if (!putting) return Unexpected{putting.error()};
    put = *std::move(putting);
    return {};
  }
};

SweepStore::SweepStore(std::unique_ptr<State> state) : state_(std::move(state)) {}
SweepStore::SweepStore(SweepStore&&) noexcept = default;
SweepStore& SweepStore::operator=(SweepStore&&) noexcept = default;
SweepStore::~SweepStore() = default;

Result<SweepStore> SweepStore::open(const std::string& path) {
  auto state = State::open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  if (!state) return Unexpected{state.error()};
  // A write-ahead log takes a row in one write without waiting for the disk. NORMAL: the operating system has each row
  // when put() returns, so that the death of this process loses none; a power failure may lose the last seconds, never
  // the whole (https://www.sqlite.org/pragma.html#pragma_synchronous). Where a file system cannot do it, SQLite stays
  // with its rollback journal.
  for (const char* setting : {"PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL"}) {
    if (auto done = (*state)->carry_out(setting, "open"); !done) return Unexpected{done.error()};
  }
  if (auto made = (*state)->make_table(); !made) return Unexpected{made.error()};
  if (auto ready = (*state)->prepare_statements(); !ready) return Unexpected{ready.error()};
  return SweepStore(*std::move(state));
}

Result<std::optional<SweepStore>> SweepStore::open_existing(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::optional<SweepStore>{};
  auto state = State::open(path, SQLITE_OPEN_READONLY);
  if (!state) return Unexpected{state.error()};
  // A sweep that was killed as it began leaves an empty file.
  const auto table = (*state)->prepare("SELECT 1 FROM sqlite_master WHERE name = 'runs'", "read");
  if (!table) return Unexpected{table.error()};
  if (sqlite3_step(table->get()) == SQLITE_DONE) return std::optional<SweepStore>{};
  return std::optional<SweepStore>(SweepStore(*std::move(state)));
}

Result<std::unordered_map<std::string, RunStatus>> SweepStore::states() const {
  const auto all = state_->prepare("SELECT key, status FROM runs", "read");
  if (!all) return Unexpected{all.error()};
  std::unordered_map<std::string, RunStatus> states;
  int code = 0;
  while ((code = sqlite3_step(all->get())) == SQLITE_ROW)
    states[text_of(all->get(), 0)] = status_of(text_of(all->get(), 1));
  if (code != SQLITE_DONE) return state_->failed("read");
  return states;
}

Result<std::optional<SweepResult>> SweepStore::find(const std::string& key) const {
  sqlite3_stmt* const statement = state_->find.get();
  sqlite3_reset(statement);
  bind_text(statement, 1, key);
  const int code = sqlite3_step(statement);
  std::optional<SweepResult> result;
  if (code == SQLITE_ROW) {
    result.emplace();
    result->status = status_of(text_of(statement, 0));
    result->message = text_of(statement, 1);
    result->wall_s = sqlite3_column_double(statement, 2);
    result->cpu_s = sqlite3_column_double(statement, 3);
    result->sim_s = sqlite3_column_double(statement, 4);
    int column = 5;
    for (const Figure& figure : figures_of(*result)) read_figure(statement, column++, figure);
  }
  if (code != SQLITE_ROW && code != SQLITE_DONE) return state_->failed("read");
  sqlite3_reset(statement);
  return result;
}

Result<void> SweepStore::put(const SweepRow& row, const SweepResult& result) {
  sqlite3_stmt* const statement = state_->put.get();
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
  bind_text(statement, 1, row.key);
  bind_text(statement, 2, run_status_names[static_cast<std::size_t>(result.status)]);
  bind_text(statement, 3, result.message);
  bind_text(statement, 4, row.point);
  bind_text(statement, 5, row.program);
  sqlite3_bind_double(statement, 6, result.wall_s);
  sqlite3_bind_double(statement, 7, result.cpu_s);
  sqlite3_bind_double(statement, 8, result.sim_s);
  if (result.status == RunStatus::done) {
    SweepResult copy = result;
    int column = 9;
    for (const Figure& figure : figures_of(copy)) bind_figure(statement, column++, figure);
  }
  const bool stored = sqlite3_step(statement) == SQLITE_DONE;
  auto outcome = stored ? Result<void>{} : Result<void>{state_->failed("store a result")};
  sqlite3_reset(statement);
  return outcome;
}

std::string result_text(const SweepRow& row, const SweepResult& result) {
  SweepResult copy = result;
  Json figures = Json::object();
  if (result.status == RunStatus::done) {
    for (const Figure& figure : figures_of(copy)) figures[figure.name] = figure_json(figure);
  }
  return json_text({{"key", row.key},
                    {"status", run_status_names[static_cast<std::size_t>(result.status)]},
                    {"message", result.message},
                    {"point", row.point},
                    {"program", row.program},
                    {"wall_s", result.wall_s},
                    {"cpu_s", result.cpu_s},
                    {"simulation_s", result.sim_s},
                    {"figures", std::move(figures)}},
                   -1);
}

Result<std::pair<SweepRow, SweepResult>> read_result_text(const std::string& text, const std::string& file) {
  const auto json = parse_json_strictly(text, file);
  if (!json) return Unexpected{json.error()};
  try {
    const auto get = [&](const char* name) { return json->at(name).get<std::string>(); };
    SweepRow row{.key = get("key"), .point = get("point"), .program = get("program")};
    SweepResult result{.status = status_of(get("status")),
                       .message = get("message"),
                       .wall_s = json->at("wall_s").get<double>(),
                       .cpu_s = json->at("cpu_s").get<double>(),
                       .sim_s = json->at("simulation_s").get<double>()};
    if (result.status == RunStatus::done) {
      for (const Figure& figure : figures_of(result)) read_figure(json->at("figures").at(figure.name), figure);
    }
    return std::pair(std::move(row), std::move(result));
  } catch (const Json::exception&) {
    return Unexpected{Error{.message = "is no result of a run", .file = file}};
  }
}

std::vector<SweepFigure> sweep_figures(const SweepResult& result) {
  SweepResult copy = result;
  std::vector<SweepFigure> figures;
  for (const Figure& figure : figures_of(copy)) {
    std::visit(
        [&](const auto* value) {
          using Value = std::remove_cvref_t<decltype(*value)>;
          if constexpr (std::is_same_v<Value, double> || std::is_same_v<Value, std::optional<double>>) {
            figures.push_back({figure.name, false, *value});
          } else {
            figures.push_back({figure.name, true, static_cast<double>(*value)});
          }
        },
        figure.place);
  }
  return figures;
}

}  // namespace gpusched
