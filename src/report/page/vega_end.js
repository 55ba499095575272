  Object.assign(modules["vega-dataflow"].transforms, modules["vega-encode"], modules["vega-transforms"],
    modules["vega-view-transforms"]);
  return {View: modules["vega-view"].View, parse: modules["vega-parser"].parse,
    expressionFunction: modules["vega-functions"].expressionFunction};
})();
