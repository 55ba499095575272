// SPDX-License-Identifier: Apache-2.0
#include "src/policies/throughput/linear_program.hpp"

#include <memory>

#include "gpusched/core/types.hpp"

#ifdef GPUSCHED_CLP_LIBRARY
#include <Clp_C_Interface.h>
#include <dlfcn.h>
#endif

namespace gpusched {

int LinearProgram::add_row(double lower, double upper) {
  row_lower_.push_back(lower);
  row_upper_.push_back(upper);
  return static_cast<int>(row_lower_.size()) - 1;
}

int LinearProgram::add_column(double objective, double upper) {
  objective_.push_back(objective);
  column_upper_.push_back(upper);
  column_begin_.push_back(static_cast<int>(entry_row_.size()));
  return static_cast<int>(objective_.size()) - 1;
}

void LinearProgram::put(int row, double coefficient) {
  entry_row_.push_back(row);
  entry_value_.push_back(coefficient);
}

void LinearProgram::bound_row(int row, double lower, double upper) {
  row_lower_[static_cast<std::size_t>(row)] = lower;
  row_upper_[static_cast<std::size_t>(row)] = upper;
}

#ifdef GPUSCHED_CLP_LIBRARY

namespace {

// CLP's functions. It is loaded by the first policy that needs it, not linked: it brings OpenBLAS, which starts threads
// and reserves memory at load, and each start of a program would pay for that.
class Clp {
 public:
  Clp() : library_(dlopen(GPUSCHED_CLP_LIBRARY, RTLD_NOW | RTLD_LOCAL)) {
    loaded_ = library_ != nullptr && bind(make, "Clp_newModel") && bind(free, "Clp_deleteModel") &&
              bind(set_log_level, "Clp_setLogLevel") && bind(load, "Clp_loadProblem") &&
              bind(set_direction, "Clp_setOptimizationDirection") && bind(dual, "Clp_dual") &&
              bind(primal, "Clp_primal") && bind(status, "Clp_status") && bind(solution, "Clp_getColSolution");
  }
  [[nodiscard]] bool loaded() const { return loaded_; }

  decltype(&Clp_newModel) make = nullptr;
  decltype(&Clp_deleteModel) free = nullptr;
  decltype(&Clp_setLogLevel) set_log_level = nullptr;
  decltype(&Clp_loadProblem) load = nullptr;
  decltype(&Clp_setOptimizationDirection) set_direction = nullptr;
  decltype(&Clp_dual) dual = nullptr;
  decltype(&Clp_primal) primal = nullptr;
  decltype(&Clp_status) status = nullptr;
  decltype(&Clp_getColSolution) solution = nullptr;

 private:
  template <class Function>
  bool bind(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(dlsym(library_, name));
    return function != nullptr;
  }

  void* library_;  // until the program ends: OpenBLAS's threads run its code
  bool loaded_ = false;
};

const Clp& clp() {
  static const Clp loaded;
  return loaded;
}

}  // namespace

bool has_lp_solver() { return clp().loaded(); }

const char* how_to_get_lp_solver() { return "install coinor-libclp1, which has " GPUSCHED_CLP_LIBRARY; }

std::optional<std::vector<double>> LinearProgram::solve() const {
  GPUSCHED_ASSERT(has_lp_solver(), "there is no solver of linear programmes");
  const Clp& solver = clp();
  const std::unique_ptr<Clp_Simplex, decltype(&Clp_deleteModel)> model(solver.make(), solver.free);
  solver.set_log_level(model.get(), 0);
  std::vector<int> begin = column_begin_;
  begin.push_back(static_cast<int>(entry_row_.size()));
  const int columns = static_cast<int>(objective_.size()), rows = static_cast<int>(row_lower_.size());
  const std::vector<double> zeros(objective_.size(), 0.0);
  solver.load(model.get(), columns, rows, begin.data(), entry_row_.data(), entry_value_.data(), zeros.data(),
              column_upper_.data(), objective_.data(), row_lower_.data(), row_upper_.data());
  solver.set_direction(model.get(), -1);
  solver.dual(model.get(), 0);
  if (solver.status(model.get()) != 0) solver.primal(model.get(), 0);
  if (solver.status(model.get()) != 0) return std::nullopt;
  const double* const solution = solver.solution(model.get());
  return std::vector<double>(solution, solution + columns);
}

#else

bool has_lp_solver() { return false; }

const char* how_to_get_lp_solver() { return "install coinor-libclp-dev, configure and build again"; }

std::optional<std::vector<double>> LinearProgram::solve() const {
  GPUSCHED_ASSERT(false, "this build has no solver of linear programmes");
  return std::nullopt;
}

#endif

}  // namespace gpusched
