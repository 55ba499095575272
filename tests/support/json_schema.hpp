// SPDX-License-Identifier: Apache-2.0
/// Checks JSON texts against the schemas that the project ships.
#pragma once

#include <rapidjson/document.h>
#include <rapidjson/schema.h>
#include <rapidjson/stringbuffer.h>

#include <string>

#include "tests/support/files.hpp"

namespace gpusched::test {

/// "" when the text satisfies the schema in that file of the project, else the place that does not.
inline std::string schema_violation(const std::string& text, const std::string& schema_file) {
  rapidjson::Document schema_json, document;
  schema_json.Parse(bytes_of(source_dir() + "/" + schema_file).c_str());
  if (schema_json.HasParseError()) return "the schema itself is not JSON";
  const rapidjson::SchemaDocument schema(schema_json);
  document.Parse(text.c_str());
  if (document.HasParseError()) return "not JSON";
  rapidjson::SchemaValidator validator(schema);
  if (document.Accept(validator)) return {};
  rapidjson::StringBuffer where;
  validator.GetInvalidDocumentPointer().StringifyUriFragment(where);
  return std::string(where.GetString()) + " " + validator.GetInvalidSchemaKeyword();
}

}  // namespace gpusched::test
