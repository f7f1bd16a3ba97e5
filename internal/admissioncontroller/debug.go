package admissioncontroller

import (
	"bytes"
	"html/template"
	"net/http"
	"net/url"

	"gardener.cloud/gardener/internal/authorizer/graph"
)

// Paths of the pages with the graph, for seeds and for self-hosted shoots.
const (
	pathSeedGraph  = "/debug/resource-dependency-graph"
	pathShootGraph = "/debug/resource-dependency-graph-shoot"
)

// maxUnfiltered is how many objects a page without a filter shows; of more it shows Seeds only.
const maxUnfiltered = 2000

// debugPage shows objects and their neighbours in the graph.
type debugPage struct {
	graph *graph.Graph
	path  string
	scope graph.Scope
}

// ServeHTTP answers with the page. The query selects objects by kind, namespace and name.
func (d *debugPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	filter := debugFilter{query.Get("kind"), query.Get("namespace"), query.Get("name")}
	if vertices, _ := d.graph.Size(); filter == (debugFilter{}) && vertices > maxUnfiltered {
		filter.Kind = graph.Seed.String()
	}
	var page bytes.Buffer
	if err := debugTemplate.Execute(&page, map[string]any{
		"Path": d.path, "Filter": filter, "Kinds": graph.Kinds(), "Objects": d.graph.Describe(d.scope, filter.includes),
	}); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; form-action 'self'")
	_, _ = page.WriteTo(w) // an error means that the client has closed the connection
}

// debugFilter selects objects. Empty fields match all.
type debugFilter struct{ Kind, Namespace, Name string }

func (f debugFilter) includes(key graph.Key) bool {
	return (f.Kind == "" || f.Kind == key.Kind.String()) && (f.Namespace == "" || f.Namespace == key.Namespace) && (f.Name == "" || f.Name == key.Name)
}

var debugTemplate = template.Must(template.New("").Funcs(template.FuncMap{
	"query": func(key graph.Key) string {
		return "?" + url.Values{"kind": {key.Kind.String()}, "namespace": {key.Namespace}, "name": {key.Name}}.Encode()
	},
}).Parse(`<!DOCTYPE html>
<title>Graph of the authorizers</title>
<form action="{{ .Path }}">
<select name="kind"><option value="">all kinds</option>{{ range .Kinds }}<option{{ if eq .String $.Filter.Kind }} selected{{ end }}>{{ . }}</option>{{ end }}</select>
<input name="namespace" placeholder="namespace" value="{{ .Filter.Namespace }}">
<input name="name" placeholder="name" value="{{ .Filter.Name }}">
<button>Show</button>
</form>
<p>A client that may reach what an object leads to may reach the object. What belongs to a Shoot or a Seed by its name is not shown.</p>
{{ range .Objects }}<h4>{{ .Key }}</h4>
{{ if .In }}<p>reached from</p><ul>{{ range .In }}<li><a href="{{ $.Path }}{{ query . }}">{{ . }}</a></li>{{ end }}</ul>{{ end }}
{{ if .Out }}<p>leads to</p><ul>{{ range .Out }}<li><a href="{{ $.Path }}{{ query . }}">{{ . }}</a></li>{{ end }}</ul>{{ end }}
{{ else }}<p>There is no such object.</p>
{{ end }}`))
