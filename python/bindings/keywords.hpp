// SPDX-License-Identifier: Apache-2.0
/// Keyword arguments of the functions that stand for a command of the program.
#pragma once

#include <string>

#include "src/base/field_table.hpp"

namespace gpusched::python {

/// The flag of a field as a keyword: checkpoint_cost of --checkpoint-cost.
std::string keyword(const Field& field);

/// Sets what a JSON object of keyword arguments gives. Throws InputError: no such keyword, a value of another type.
void set_keywords(const FieldTable& fields, const std::string& json);

}  // namespace gpusched::python
