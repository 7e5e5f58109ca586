// The page of a served model's interface, from its OpenAPI description.

const token = new URLSearchParams(location.search).get("token") || "";

function showOperation(path, method, one) {
  const content = one.requestBody?.content["application/json"];
  const example = content && JSON.stringify(content.example);
  const headers = "-H 'Authorization: Bearer TOKEN'" + (content ? " -H 'Content-Type: application/json'" : "");
  const call = `curl ${headers}${content ? ` \\\n  -d '${example.length > 2000 ? "…" : example}'` : ""} \\\n  ${location.origin}${path}`;
  return make("section", { class: "output" }, make("h2", null, make("span", { class: "name" }, `${method.toUpperCase()} ${path}`)), make("p", null, one.summary),
    make("h3", null, "Call"), make("pre", { class: "values", tabindex: "0" }, call),
    content ? make("details", null, make("summary", null, "What it takes"), make("pre", { class: "values", tabindex: "0" }, JSON.stringify(content.schema, null, 2))) : null,
    make("h3", null, "Answers"), makeTable(["status", "meaning"], Object.entries(one.responses).map(([code, answer]) => [code, answer.description]), { label: "Answers" }));
}

document.body.append(
  make("header", null, make("div", { class: "title" }, make("h1", null, data.info.title), make("p", { class: "muted" }, "Every call needs the token of the printed address."),
    make("p", null, make("a", { href: `/?token=${encodeURIComponent(token)}` }, "Try it"), " · ", make("a", { href: `/openapi.json?token=${encodeURIComponent(token)}` }, "openapi.json")))),
  make("main", null, Object.entries(data.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, one]) => showOperation(path, method, one)))));
