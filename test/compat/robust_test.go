package compat

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"regexp"
	"runtime/debug"
	"sort"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// survives runs a validator and reports what it panics with. Any user who may write objects sends them to validation, so no content
// may take a server down.
func survives(t *testing.T, what string, validate func()) (ok bool) {
	t.Helper()
	ok = true
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("%s: %v\n%s", what, r, debug.Stack())
			ok = false
		}
	}()
	validate()
	return ok
}

// TestValidationSurvivesRandomObjects validates objects of random content.
func TestValidationSurvivesRandomObjects(t *testing.T) {
	const rounds = 60
	scheme, ctx := served.scheme, asUser(t.Context(), "garden-dev")
	for typ, s := range served.strategies {
		t.Run(typ.String(), func(t *testing.T) {
			fill := fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, fuzzers), rand.NewSource(1), runtimeserializer.NewCodecFactory(scheme)).
				NilChance(.3).NumElements(0, 3)
			random := func() runtime.Object {
				obj := reflect.New(typ).Interface().(runtime.Object)
				fill.Fill(obj)
				return obj
			}
			for range rounds {
				obj, old := random(), random()
				ok := survives(t, "without defaults", func() { checkAll(ctx, s, obj, old) }) &&
					survives(t, "with defaults", func() {
						scheme.Default(obj)
						scheme.Default(old)
						checkAll(ctx, s, obj, old)
					})
				// The same request gets the same errors again.
				first, second := texts(s.create(ctx, obj.DeepCopyObject())), texts(s.create(ctx, obj.DeepCopyObject()))
				if diff := cmp.Diff(first, second); diff != "" {
					t.Fatalf("errors in another order (-first +second):\n%s", diff)
				}
				if !ok {
					return
				}
			}
		})
	}
}

// TestValidationSurvivesGaps validates the corpus' valid objects with every field in turn missing or empty.
func TestValidationSurvivesGaps(t *testing.T) {
	_, whole := readCorpus(t)
	scheme, ctx := served.scheme, asUser(t.Context(), "garden-dev")
	codecs := runtimeserializer.NewCodecFactory(scheme)
	bases := make([][2]string, 0, len(whole))
	for key := range whole {
		bases = append(bases, key)
	}
	sort.Slice(bases, func(i, j int) bool { return bases[i][1]+bases[i][0] < bases[j][1]+bases[j][0] })

	var tried int
	seen := map[string]bool{}
	for _, key := range bases {
		object := whole[key].Object
		decode := func(v any) runtime.Object {
			data, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			obj, _, err := codecs.UniversalDecoder().Decode(data, nil, nil)
			if err != nil {
				return nil // of another type than the field
			}
			return obj
		}
		base := decode(object)
		if base == nil {
			continue
		}
		s, ok := served.strategies[reflect.TypeOf(base).Elem()]
		if !ok {
			continue
		}
		for _, gap := range gaps(object) {
			place := fmt.Sprint(object["kind"], indices.ReplaceAllString(gap.what, "*"))
			if seen[place] {
				continue // one object with the field does
			}
			seen[place] = true
			object := gap.apply()
			for _, defaults := range []bool{false, true} {
				obj, old := decode(object), base.DeepCopyObject()
				if obj == nil {
					continue
				}
				if defaults {
					scheme.Default(obj)
					scheme.Default(old)
				}
				tried++
				what := fmt.Sprintf("%s of %s, defaults: %t", gap.what, key[1], defaults)
				survives(t, what, func() { checkAll(ctx, s, obj.DeepCopyObject(), old.DeepCopyObject()) })
				survives(t, what+", before the update", func() { s.update(ctx, old, obj) })
			}
		}
	}
	t.Logf("%d objects with a gap", tried)
}

func texts(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs {
		out = append(out, err.Field+": "+string(err.Type))
	}
	return out
}

func checkAll(ctx context.Context, s strategy, obj, old runtime.Object) {
	s.create(ctx, obj.DeepCopyObject())
	s.update(ctx, obj.DeepCopyObject(), old.DeepCopyObject())
	s.status(ctx, obj.DeepCopyObject(), old.DeepCopyObject())
}

// gap is an object with one field missing or empty.
type gap struct {
	what  string
	apply func() any
}

// indices are the list indices in a path.
var indices = regexp.MustCompile(`\b\d+\b`)

// gaps returns every way to empty a field of the object.
func gaps(object map[string]any) []gap {
	var out []gap
	var walk func(value any, path []any)
	add := func(how string, path []any, value any, remove bool) {
		out = append(out, gap{fmt.Sprint(how, " ", path), func() any { return set(runtime.DeepCopyJSON(object), path, value, remove) }})
	}
	walk = func(value any, path []any) {
		if len(path) > 0 {
			add("removed", path, nil, true)
		}
		at := func(key any) []any { return append(append(make([]any, 0, len(path)+1), path...), key) }
		switch v := value.(type) {
		case map[string]any:
			if len(path) > 0 {
				add("empty", path, map[string]any{}, false)
			}
			for key, child := range v {
				if len(path) > 0 || key != "apiVersion" && key != "kind" && key != "metadata" {
					walk(child, at(key))
				}
			}
		case []any:
			add("empty", path, []any{}, false)
			for i, child := range v {
				walk(child, at(float64(i)))
			}
		case string:
			add("empty", path, "", false)
			add("garbage", path, "/:-%", false)
		case float64, int64:
			add("zero", path, 0, false)
			add("negative", path, -1, false)
		}
	}
	walk(object, nil)
	return out
}
