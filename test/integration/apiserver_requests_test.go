package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/test/builder"
	"gardener.cloud/gardener/test/env"
)

const devNamespace = "garden-dev"

// newShoot is a shoot with two worker pools. Without a time window, a new one is chosen each time.
func newShoot(name string) *corev1beta1.Shoot {
	return builder.Shoot(name, builder.Workers(2), builder.Window)
}

func create[T client.Object](t *testing.T, e *env.Env, obj T) T {
	t.Helper()
	if err := e.Client.Create(t.Context(), obj); err != nil {
		t.Fatalf("create %T %s: %v", obj, obj.GetName(), err)
	}
	return obj
}

// apply applies a part of a shoot.
func apply(ctx context.Context, e *env.Env, manager, name string, spec map[string]any, opts ...client.ApplyOption) error {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	obj.SetGroupVersionKind(corev1beta1.SchemeGroupVersion.WithKind("Shoot"))
	obj.SetNamespace(devNamespace)
	obj.SetName(name)
	return e.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), append(opts, client.FieldOwner(manager))...)
}

func testPatches(t *testing.T, e *env.Env) {
	ctx, c := t.Context(), e.Client
	shoot := create(t, e, newShoot("patched"))
	patch := func(kind types.PatchType, body string, opts ...client.PatchOption) error {
		return c.Patch(ctx, shoot, client.RawPatch(kind, []byte(body)), opts...)
	}
	maxima := func() (m []int32) {
		for _, worker := range shoot.Spec.Provider.Workers {
			m = append(m, worker.Maximum)
		}
		return m
	}
	for _, step := range []struct {
		kind       types.PatchType
		body       string
		want       []int32
		generation int64
	}{
		{types.StrategicMergePatchType, `{"spec":{"provider":{"workers":[{"name":"b","maximum":5}]}}}`, []int32{3, 5}, 2},
		{types.JSONPatchType, `[{"op":"replace","path":"/spec/provider/workers/0/maximum","value":4}]`, []int32{4, 5}, 3},
		{types.MergePatchType, `{"spec":{"region":"local"}}`, []int32{4, 5}, 3},
		{types.MergePatchType, `{"metadata":{"labels":{"a":"b"}},"status":{"technicalID":"mine"}}`, []int32{4, 5}, 3},
	} {
		if err := patch(step.kind, step.body); err != nil {
			t.Fatalf("%s %s: %v", step.kind, step.body, err)
		}
		if diff := cmp.Diff(step.want, maxima()); diff != "" || shoot.Generation != step.generation || shoot.Status.TechnicalID != "" {
			t.Errorf("after %s: generation %d, want %d, technical ID %q; maxima (-want +got):\n%s",
				step.body, shoot.Generation, step.generation, shoot.Status.TechnicalID, diff)
		}
	}
	before := shoot.ResourceVersion
	if err := patch(types.MergePatchType, `{"spec":{"purpose":"testing"}}`, client.DryRunAll); err != nil || *shoot.Spec.Purpose != "testing" {
		t.Errorf("dry run: %v, purpose %q", err, *shoot.Spec.Purpose)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(shoot), shoot); err != nil || shoot.ResourceVersion != before {
		t.Errorf("a dry run changed the shoot: %v", err)
	}
	stale := shoot.DeepCopy()
	stale.ResourceVersion = "1"
	if err := c.Update(ctx, stale); !apierrors.IsConflict(err) {
		t.Errorf("update of an old version: %v, want a conflict", err)
	}
	if err := patch(types.MergePatchType, `{"metadata":{"annotations":{"gardener.cloud/operation":"reconcile"}}}`); err != nil || shoot.Generation != 3 {
		t.Errorf("reconcile before anything was done: %v, generation %d, want 3", err, shoot.Generation)
	}

	worker := func(maximum int64) map[string]any {
		return map[string]any{"provider": map[string]any{"workers": []any{map[string]any{"name": "b", "maximum": maximum}}}}
	}
	// Twice the same is no change, another owner a conflict that can be forced, and a field that the manager removes stays: it has other managers.
	for i := range 2 {
		if err := apply(ctx, e, "one", shoot.Name, worker(7), client.ForceOwnership); err != nil {
			t.Fatal(err)
		}
		version := shoot.ResourceVersion
		if err := c.Get(ctx, client.ObjectKeyFromObject(shoot), shoot); err != nil {
			t.Fatal(err)
		}
		if i > 0 && version != shoot.ResourceVersion {
			t.Error("applying the same again wrote to the store")
		}
	}
	if diff := cmp.Diff([]int32{4, 7}, maxima()); diff != "" {
		t.Errorf("maxima after apply (-want +got):\n%s", diff)
	}
	if err := apply(ctx, e, "two", shoot.Name, worker(8)); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `name="b"`) {
		t.Errorf("apply by another manager: %v, want a conflict that names the worker", err)
	}
	if err := apply(ctx, e, "two", shoot.Name, worker(8), client.ForceOwnership); err != nil {
		t.Error(err)
	}
	managers := map[string]string{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(shoot), shoot); err != nil {
		t.Fatal(err)
	}
	for _, entry := range shoot.ManagedFields {
		managers[entry.Manager] += string(entry.Operation)
		if entry.APIVersion != corev1beta1.SchemeGroupVersion.String() {
			t.Errorf("fields are managed in %s", entry.APIVersion)
		}
	}
	if managers["two"] != "Apply" || managers["one"] != "Apply" {
		t.Errorf("managers are %v, want one and two to apply", managers)
	}
}

func testListsAndWatches(t *testing.T, e *env.Env) {
	ctx, c := t.Context(), e.Client
	for i := range 5 {
		create(t, e, &corev1beta1.Quota{
			ObjectMeta: metav1.ObjectMeta{Namespace: devNamespace, Name: fmt.Sprintf("q%d", i), Labels: map[string]string{"odd": fmt.Sprint(i%2 == 1)}},
			Spec:       corev1beta1.QuotaSpec{Scope: corev1.ObjectReference{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Project"}},
		})
	}
	names := func(list *corev1beta1.QuotaList) (names []string) {
		for _, q := range list.Items {
			names = append(names, q.Name)
		}
		return names
	}
	var all []string
	pages := 0
	for next := ""; ; pages++ {
		list := &corev1beta1.QuotaList{}
		if err := c.List(ctx, list, client.InNamespace(devNamespace), client.Limit(2), client.Continue(next)); err != nil {
			t.Fatal(err)
		}
		all = append(all, names(list)...)
		if next = list.Continue; next == "" {
			break
		}
	}
	if diff := cmp.Diff([]string{"q0", "q1", "q2", "q3", "q4"}, all); diff != "" || pages != 2 {
		t.Errorf("in %d pages (-want +got):\n%s", pages+1, diff)
	}
	list := &corev1beta1.QuotaList{}
	if err := c.List(ctx, list, client.MatchingLabels{"odd": "true"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"q1", "q3"}, names(list)); diff != "" {
		t.Errorf("by label (-want +got):\n%s", diff)
	}
	if err := c.List(ctx, list, client.MatchingFields{"metadata.name": "q4"}); err != nil || !slices.Equal(names(list), []string{"q4"}) {
		t.Errorf("by name: %v, %v", names(list), err)
	}
	if err := c.List(ctx, list, client.MatchingFields{"spec.scope.kind": "Project"}); !apierrors.IsBadRequest(err) {
		t.Errorf("by a field that cannot be selected: %v, want a bad request", err)
	}

	watching, err := client.NewWithWatch(e.Config, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	watchCtx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	events, err := watching.Watch(watchCtx, &corev1beta1.QuotaList{}, &client.ListOptions{
		Namespace: devNamespace, Raw: &metav1.ListOptions{
			AllowWatchBookmarks: true, SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	added := 0
	for event := range events.ResultChan() {
		if event.Type == watch.Bookmark {
			if event.Object.(client.Object).GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
				t.Errorf("bookmark %v does not end the initial events", event.Object)
			}
			break
		}
		if added++; event.Type != watch.Added {
			t.Fatalf("watch sent %v before the first bookmark", event)
		}
	}
	if added != 5 {
		t.Errorf("%d initial events, want 5", added)
	}
	if err := c.DeleteAllOf(ctx, &corev1beta1.Quota{}, client.InNamespace(devNamespace), client.MatchingLabels{"odd": "true"}); err != nil {
		t.Fatal(err)
	}
	for deleted := 0; deleted < 2; {
		switch event := <-events.ResultChan(); event.Type {
		case watch.Deleted:
			deleted++
		case watch.Bookmark: // comes whenever the server likes
		default: // also the end of the watch
			t.Fatalf("watch sent %v, want the deletions", event)
		}
	}
	if err := c.List(ctx, list, client.InNamespace(devNamespace)); err != nil || len(list.Items) != 3 {
		t.Errorf("%d quotas are left, want 3: %v", len(list.Items), err)
	}
}

func testDiscovery(t *testing.T, e *env.Env) {
	ctx := t.Context()
	resources := &metav1.APIResourceList{}
	if err := json.Unmarshal(get(ctx, t, e, "/apis/core.gardener.cloud/v1beta1", "application/json"), resources); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{}
	for _, r := range resources.APIResources {
		kinds[r.Name] = strings.TrimPrefix(r.Group+"/"+r.Version+"/"+r.Kind, "//")
	}
	for name, want := range map[string]string{
		"shoots/binding": "Shoot", "plants/status": "Plant", "namespacedcloudprofiles/status": "NamespacedCloudProfile",
		"shoots/adminkubeconfig":  "authentication.gardener.cloud/v1alpha1/AdminKubeconfigRequest",
		"shoots/viewerkubeconfig": "authentication.gardener.cloud/v1alpha1/ViewerKubeconfigRequest",
	} {
		if kinds[name] != want {
			t.Errorf("%s is served as %q, want %q", name, kinds[name], want)
		}
	}
	// What kubectl explain reads.
	var openapi struct {
		Components struct{ Schemas map[string]map[string]any }
		Paths      map[string]any
	}
	if err := json.Unmarshal(getFrom(ctx, t, e, e.Direct, "/openapi/v3/apis/core.gardener.cloud/v1beta1", "application/json"), &openapi); err != nil {
		t.Fatal(err)
	}
	kind := openapi.Components.Schemas["com.github.gardener.gardener.pkg.apis.core.v1beta1.Shoot"]["x-kubernetes-group-version-kind"]
	if diff := cmp.Diff([]any{map[string]any{"group": "core.gardener.cloud", "kind": "Shoot", "version": "v1beta1"}}, kind); diff != "" {
		t.Errorf("kind of the schema of Shoot (-want +got):\n%s", diff)
	}
	if path := "/apis/core.gardener.cloud/v1beta1/namespaces/{namespace}/shoots/{name}/adminkubeconfig"; openapi.Paths[path] == nil {
		t.Errorf("OpenAPI has no path %s", path)
	}

	table := &metav1.Table{}
	create(t, e, newShoot("printed"))
	raw := get(ctx, t, e, "/apis/core.gardener.cloud/v1beta1/namespaces/garden-dev/shoots/printed", "application/json;as=Table;v=v1;g=meta.k8s.io")
	if err := json.Unmarshal(raw, table); err != nil {
		t.Fatal(err)
	}
	want := []any{
		"printed", "local", "local", "local", "<none>", builder.Version, "Awake", "<pending>", "<pending>", "evaluation", "<unknown>", "<unknown>",
		"<unknown>", "<unknown>", "<unknown>", "<unknown>",
	}
	if diff := cmp.Diff(want, table.Rows[0].Cells[:len(want)]); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
	var wide []string
	for _, column := range table.ColumnDefinitions {
		if column.Priority > 0 {
			wide = append(wide, column.Name)
		}
	}
	if diff := cmp.Diff([]string{"Seed", "Purpose", "Gardener Version", "APIServer", "Control", "Observability", "Nodes", "System"}, wide); diff != "" {
		t.Errorf("columns of wide tables (-want +got):\n%s", diff)
	}
}

// A request that cannot be served is refused as the client's mistake, and does not take the server down.
func testBadRequests(t *testing.T, e *env.Env) {
	const shoots = "/apis/core.gardener.cloud/v1beta1/namespaces/garden-dev/shoots"
	head := `{"apiVersion":"core.gardener.cloud/v1beta1","kind":"Shoot","metadata":{"name":"x"},`
	deep := strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20000)
	for name, tc := range map[string]struct {
		query, body string
		want        int
		says        string
	}{
		"unknown field":   {"?fieldValidation=Strict", head + `"spec":{"bogus":1}}`, http.StatusBadRequest, `unknown field \"spec.bogus\"`},
		"duplicate field": {"?fieldValidation=Strict", head + `"spec":{"region":"a","region":"b"}}`, http.StatusBadRequest, `duplicate field \"spec.region\"`},
		"wrong type":      {"", head + `"spec":{"region":5}}`, http.StatusBadRequest, "region"},
		"no JSON":         {"", "{", http.StatusBadRequest, ""},
		"empty":           {"", "", http.StatusBadRequest, ""},
		"another kind":    {"", `{"apiVersion":"core.gardener.cloud/v1beta1","kind":"Seed"}`, http.StatusBadRequest, "Seed"},
		"too large":       {"", head + `"spec":{"region":"` + strings.Repeat("x", 4<<20) + `"}}`, http.StatusRequestEntityTooLarge, ""},
		"too deep":        {"", head + `"spec":{"provider":{"infrastructureConfig":` + deep + `}}}`, http.StatusBadRequest, ""},
		"deep, unknown":   {"?fieldValidation=Strict", head + `"bogus":` + deep + `}`, http.StatusBadRequest, ""},
	} {
		t.Run(name, func(t *testing.T) {
			code, body := send(t, e, http.MethodPost, shoots+tc.query, "application/json", []byte(tc.body))
			if code != tc.want || !strings.Contains(body, tc.says) {
				t.Errorf("answer is %d %.300s; want %d and %q", code, body, tc.want, tc.says)
			}
		})
	}
}

// send sends a request as it is, and returns the answer.
func send(t *testing.T, e *env.Env, method, path, contentType string, body []byte) (code int, answer string) {
	t.Helper()
	httpClient, err := rest.HTTPClientFor(e.Config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, e.Config.Host+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", contentType)
	response, err := httpClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(data)
}
