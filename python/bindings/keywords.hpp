// SPDX-License-Identifier: Apache-2.0
/// Keyword arguments, which come from Python as one JSON object, and what is wrong with them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "python/bindings/common.hpp"
#include "src/base/field_table.hpp"

namespace gpusched::python {

/// Sets what a JSON object of keyword arguments gives: the flags of `fields` as keywords (keyword_of()). Throws
/// InputError: no such keyword, a value of another type.
void set_keywords(const FieldTable& fields, const std::string& json);

/// Throws InputError where one of these is given: options of the program that would change nothing here, and why.
void refuse_keywords(const std::string& json, const std::map<std::string, std::string>& why);

/// Rows under the names of their keywords, for set_options().
FieldTable by_keyword(FieldTable fields);

/// Sets what a JSON object gives of rows whose paths are the keywords themselves; "weights.jct" is the entry jct of the
/// dict weights. `moved`: keywords of earlier versions. Throws InputError.
void set_options(const FieldTable& fields, const std::string& json, const std::vector<MovedKey>& moved = {});

/// (keyword, meaning, default, type) of each row that has a flag, or of each row where paths are keywords themselves.
/// The types are those of scripts/python_options.py.
nb::list keywords_of(const FieldTable& fields);

/// The same of rows whose paths are the keywords.
nb::list option_keywords(FieldTable fields);

/// A row whose path is the keyword of a number or a span.
Field option_row(std::string path, FieldTarget target, double least, double most);

/// An error whose field is the path of a row, by the name of its keyword.
InputError keyword_error(Error error, const FieldTable& fields);

}  // namespace gpusched::python
