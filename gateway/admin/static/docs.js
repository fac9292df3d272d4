// What the HTTP API answers, drawn from its own description; questions can be asked from here.

import { h } from "./dom.js";

const BODY_SHOWN = 20_000;

function schemaText(document, schema) {
  const name = schema?.$ref?.split("/").pop();
  return JSON.stringify(name ? document.components.schemas[name] : schema, null, 2);
}

function parameterRow(parameter) {
  const id = `${parameter.in}-${parameter.name}-${Math.random().toString(36).slice(2)}`;
  const input = h("input", { id, name: parameter.name, type: "text", required: parameter.required });
  input.dataset.place = parameter.in;
  return h("p", {}, h("label", { htmlFor: id }, `${parameter.name} (${parameter.in}) `), input);
}

function urlOf(path, form) {
  const query = new URLSearchParams();
  let filled = path;
  for (const input of form.querySelectorAll("input[data-place]")) {
    if (input.dataset.place === "path") filled = filled.replace(`{${input.name}}`, encodeURIComponent(input.value));
    else if (input.dataset.place === "query" && input.value) query.append(input.name, input.value);
  }
  return query.size ? `${filled}?${query}` : filled;
}

async function ask(event, path, output) {
  event.preventDefault();
  output.textContent = "asking";
  try {
    const answer = await fetch(urlOf(path, event.target));
    output.textContent = `${answer.status}\n${(await answer.text()).slice(0, BODY_SHOWN)}`;
  } catch (error) {
    output.textContent = String(error);
  }
}

function operation(document, path, method, about) {
  const parts = [h("p", {}, about.description ?? "")];
  const body = about.requestBody?.content?.["application/json"]?.schema;
  if (body) parts.push(h("h3", {}, "Body"), h("pre", {}, schemaText(document, body)));
  const parameters = about.parameters ?? [];
  if (method === "get") {
    const output = h("pre", { role: "status" });
    const form = h("form", {}, parameters.map(parameterRow), h("button", { type: "submit" }, "Ask"));
    form.addEventListener("submit", (event) => ask(event, path, output));
    parts.push(form, output);
  } else if (parameters.length) {
    parts.push(h("p", {}, `Takes ${parameters.map((one) => `${one.name} (${one.in})`).join(", ")}.`));
  }
  return h("details", {}, h("summary", {}, h("code", {}, `${method.toUpperCase()} ${path}`)), parts);
}

async function show() {
  const main = document.getElementById("main");
  const answer = await fetch("openapi.json");
  const described = await answer.json();
  main.append(h("p", {}, `${described.info.title} ${described.info.version}, described by `, h("a", { href: "openapi.json" }, "openapi.json")));
  for (const [path, methods] of Object.entries(described.paths)) {
    for (const [method, about] of Object.entries(methods)) main.append(operation(described, path, method, about));
  }
}

show();
