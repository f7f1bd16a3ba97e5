package compat

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

var (
	showCorpus     = flag.Int("corpus.show", 0, "how many differences to the corpus to print")
	corpusKind     = flag.String("corpus.kind", "", "the only kind to replay")
	corpusMatching = flag.String("corpus.match", "", "print only differences that match this regular expression")
)

// maxWrong is the share of requests whose verdict may differ from the recorded one, without those that admission refuses.
const maxWrong = 0.007

// record is a recorded request with the reference server's answer.
type record struct {
	ID, Op, Base string
	Object       map[string]any
	Mutation     [][]json.RawMessage
	Answer       struct {
		Code           int
		Reason         string
		Causes, Fields [][2]string
	}
}

// readCorpus returns the records, by operation and base for those that hold a whole request.
func readCorpus(t *testing.T) (all []*record, whole map[[2]string]*record) {
	t.Helper()
	f, err := os.Open(filepath.Join(factsDir(t), "corpus", "requests.jsonl.gz"))
	if err != nil {
		t.Skipf("no corpus: %v", err)
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	whole = map[[2]string]*record{}
	for decoder := json.NewDecoder(unzipped); decoder.More(); {
		r := &record{}
		if err := decoder.Decode(r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
		if r.Mutation == nil && r.Base != "" {
			whole[[2]string{r.Op, r.Base}] = r
		}
	}
	return all, whole
}

// mutate applies recorded changes to a request: [path, value] sets, [path] removes.
func mutate(object map[string]any, changes [][]json.RawMessage) (any, error) {
	var out any = runtime.DeepCopyJSON(object)
	for _, change := range changes {
		var path []any
		if err := json.Unmarshal(change[0], &path); err != nil {
			return nil, err
		}
		var value any
		if len(change) > 1 {
			if err := unmarshalNumbers(change[1], &value); err != nil {
				return nil, err
			}
		}
		out = set(out, path, value, len(change) == 1)
	}
	return out, nil
}

func set(parent any, path []any, value any, remove bool) any {
	if len(path) == 0 {
		return value
	}
	switch parent := parent.(type) {
	case map[string]any:
		key := fmt.Sprint(path[0])
		if len(path) == 1 && remove {
			delete(parent, key)
		} else {
			parent[key] = set(parent[key], path[1:], value, remove)
		}
		return parent
	case []any:
		i := int(path[0].(float64))
		switch {
		case len(path) == 1 && remove:
			return slices.Delete(parent, i, i+1)
		case len(path) == 1 && i == len(parent):
			return append(parent, value)
		}
		parent[i] = set(parent[i], path[1:], value, remove)
		return parent
	}
	return parent
}

// unmarshalNumbers keeps integers as integers, as the API machinery does.
func unmarshalNumbers(data []byte, out *any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(out); err != nil {
		return err
	}
	*out = fixNumbers(*out)
	return nil
}

func fixNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = fixNumbers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = fixNumbers(v[i])
		}
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, _ := v.Float64()
		return f
	}
	return v
}

type tally struct {
	requests, verdict, exact           int
	byAdmission, falseRefused, missing int
	// stricter are refusals on purpose.
	stricter int
}

// stricter are the requests that the original accepts and that are refused here on purpose: configurations of admission plugins with which
// a kube-apiserver does not start, such as a PodSecurity level that does not exist.
var stricter = map[string]bool{
	"2d1e95d147ce": true, "10e0b3161412": true, // ResourceQuota with an unknown field
	"3fed9a10f1c2": true, "242559eca7ae": true, // EventRateLimit without limits
	"20754c825d16": true, // PodTolerationRestriction with an unknown field
	"edbb8650b59a": true, // PodSecurity with the level "bad"
}

// TestCorpus replays the recorded requests without a server: decode strictly, default, and hand to the strategy. Refusals that the
// reference server answered with another code than 400 and 422 come from admission plugins and from storage; they are
// counted apart.
func TestCorpus(t *testing.T) {
	all, whole := readCorpus(t)
	codecs := serializer.NewCodecFactory(served.scheme, serializer.EnableStrict)
	match := regexp.MustCompile(*corpusMatching)

	// The request's path says which kind is meant, so the body may leave it out.
	decode := func(object any, like map[string]any) (runtime.Object, error) {
		if m, ok := object.(map[string]any); ok {
			for _, key := range []string{"apiVersion", "kind"} {
				if m[key] == nil || m[key] == "" {
					m[key] = like[key]
				}
			}
		}
		data, err := json.Marshal(object)
		if err != nil {
			return nil, err
		}
		return runtime.Decode(codecs.UniversalDecoder(), data)
	}

	tallies := map[string]*tally{}
	stored := map[*record]runtime.Object{}
	shown := 0
	for _, r := range all {
		if r.Op != "create" && r.Op != "update" && r.Op != "status" {
			continue
		}
		kind, _, _ := strings.Cut(r.Base, " ")
		if *corpusKind != "" && kind != *corpusKind {
			continue
		}
		if text := mutationText(r.Mutation); strings.Contains(text, `"metadata","resourceVersion"`) || strings.Contains(text, `"metadata","uid"`) {
			continue // decided by the storage
		}
		base := whole[[2]string{r.Op, r.Base}]
		if tallies[kind] == nil {
			tallies[kind] = &tally{}
		}
		count := tallies[kind]
		count.requests++

		request, err := mutate(base.Object, r.Mutation)
		if err != nil {
			t.Fatal(err)
		}
		code, got := 400, [][2]string{}
		obj, err := decode(request, base.Object)
		if err == nil {
			old, ok := stored[base]
			if !ok {
				var err error
				if old, err = decode(base.Object, base.Object); err != nil {
					t.Fatalf("%s: stored object: %v", r.ID, err)
				}
				stored[base] = old
			}
			code, got = answer(t.Context(), r.Op, obj, old.DeepCopyObject())
		}

		wantRefused, refused := r.Answer.Code >= 400, code >= 400
		admission := r.Answer.Code != 400 && r.Answer.Code != 422 && wantRefused
		if wantRefused == refused {
			count.verdict++
		}
		switch {
		case admission && !refused:
			count.byAdmission++
		case wantRefused && !refused:
			count.missing++
		case !wantRefused && stricter[r.ID]:
			if !refused {
				t.Errorf("request %s is accepted, although it is listed as one that is refused on purpose", r.ID)
			}
			count.stricter++
		case !wantRefused && refused:
			count.falseRefused++
		}
		want := r.Answer.Causes
		exact := wantRefused == refused && (!refused || code == r.Answer.Code && (code == 400 || reflect.DeepEqual(got, want)))
		if exact {
			count.exact++
		} else if shown < *showCorpus && !(admission && !refused) {
			line := fmt.Sprintf("%s %s %s %s want %d %v got %d %v", r.ID, r.Op, r.Base, mutationText(r.Mutation), r.Answer.Code, want, code, got)
			if err != nil {
				line += " " + err.Error()
			}
			if match.MatchString(line) {
				shown++
				fmt.Println(line)
			}
		}
	}

	total := &tally{}
	kinds := make([]string, 0, len(tallies))
	for kind := range tallies {
		kinds = append(kinds, kind)
	}
	sort.Strings(kinds)
	row := func(kind string, c *tally) {
		n := float64(max(c.requests, 1))
		t.Logf("%-24s %6d requests  verdict %6.2f%%  exact %6.2f%%  accepted what admission refuses %4d  accepted wrongly %4d  refused wrongly %4d  refused on purpose %4d",
			kind, c.requests, 100*float64(c.verdict)/n, 100*float64(c.exact)/n, c.byAdmission, c.missing, c.falseRefused, c.stricter)
	}
	for _, kind := range kinds {
		c := tallies[kind]
		row(kind, c)
		total.requests += c.requests
		total.verdict += c.verdict
		total.exact += c.exact
		total.byAdmission += c.byAdmission
		total.missing += c.missing
		total.falseRefused += c.falseRefused
		total.stricter += c.stricter
	}
	row("total", total)

	// What is left are checks that need other objects or the DNS domains of a landscape: admission has them.
	if wrong := total.missing + total.falseRefused; *corpusKind == "" && float64(wrong) > maxWrong*float64(total.requests) {
		t.Errorf("%d of %d requests are answered wrongly, that is above %g %%", wrong, total.requests, 100*maxWrong)
	}
}

func mutationText(mutation [][]json.RawMessage) string {
	data, _ := json.Marshal(mutation)
	if len(data) > 300 {
		data = data[:300]
	}
	return string(data)
}
