// Vega from its modules, which are written for require(): each is given those before it. The file of vega-selections is
// called vega-selection.
var vega = (() => {
  const modules = {};
  const add = (name, body) => body((modules[name] = {}), {}, needed => modules[needed.replace("selections", "selection")]);
