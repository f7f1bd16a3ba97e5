package integration

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/test/builder"
	"gardener.cloud/gardener/test/env"
)

// The garden API behaves as users expect of a Kubernetes API: through the aggregator, with the clients they have.
func TestGardenAPI(t *testing.T) {
	files := writeFiles(t)
	e := env.Start(t, env.Flags(files.flags()...))
	ctx, c := t.Context(), e.Client
	for _, obj := range append(landscape(), builder.Seed("seed-a"), builder.Seed("seed-b")) {
		if err := c.Create(ctx, obj); err != nil {
			t.Fatalf("create %T %s: %v", obj, obj.GetName(), err)
		}
	}

	t.Run("spec and status are apart, and the spec is counted", func(t *testing.T) { testGenerations(t, e) })
	t.Run("server-side apply records field managers", func(t *testing.T) { testApply(t, e) })
	t.Run("a refusal names the field", func(t *testing.T) { testRefusal(t, e) })
	t.Run("lists and watches select by fields, items have no type of their own", func(t *testing.T) { testFieldSelectors(t, e) })
	t.Run("protobuf is served and accepted", func(t *testing.T) { testProtobuf(t, e) })
	t.Run("a ControllerDeployment is served in two versions", func(t *testing.T) { testVersions(t, e) })
	t.Run("patches and dry runs", func(t *testing.T) { testPatches(t, e) })
	t.Run("lists and watches", func(t *testing.T) { testListsAndWatches(t, e) })
	t.Run("what clients discover", func(t *testing.T) { testDiscovery(t, e) })
	t.Run("bad requests", func(t *testing.T) { testBadRequests(t, e) })
	t.Run("kubeconfigs of shoots", func(t *testing.T) { testKubeconfigs(t, e) })
	t.Run("bindings of shoots", func(t *testing.T) { testBinding(t, e) })
	t.Run("tokens of workload identities", func(t *testing.T) { testTokens(t, e, files) })
	t.Run("creation of shoots", func(t *testing.T) { testShootCreation(t, e) })
	t.Run("scale of a managed seed set", func(t *testing.T) { testScale(t, e) })
	t.Run("roles of the garden", func(t *testing.T) { testRoles(t, e) })
	t.Run("what operators rely on", func(t *testing.T) { testOperation(t, e, files) })
	t.Run("admission", func(t *testing.T) { testAdmission(t, e) })
	t.Run("a stop ends what is under way", func(t *testing.T) { testShutdown(t, e) }) // the last one
}

func testGenerations(t *testing.T, e *env.Env) {
	ctx, c := t.Context(), e.Client
	project := &corev1beta1.Project{
		ObjectMeta: metav1.ObjectMeta{Name: "counted"},
		Status:     corev1beta1.ProjectStatus{Phase: corev1beta1.ProjectReady},
	}
	type state struct {
		Generation  int64
		Description string
		Phase       corev1beta1.ProjectPhase
	}
	check := func(step string, want state) {
		t.Helper()
		got := state{Generation: project.Generation, Phase: project.Status.Phase}
		if project.Spec.Description != nil {
			got.Description = *project.Spec.Description
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", step, diff)
		}
	}
	if err := c.Create(ctx, project); err != nil {
		t.Fatal(err)
	}
	check("create", state{Generation: 1})
	if project.Spec.Owner == nil || project.Spec.Owner.Name != "admin" {
		t.Errorf("owner is %v, want the creator", project.Spec.Owner)
	}
	project.Spec.Description, project.Status.Phase = new("text"), corev1beta1.ProjectReady
	if err := c.Update(ctx, project); err != nil {
		t.Fatal(err)
	}
	check("update", state{Generation: 2, Description: "text"})
	project.Spec.Description, project.Status.Phase = new("other"), corev1beta1.ProjectReady
	if err := c.Status().Update(ctx, project); err != nil {
		t.Fatal(err)
	}
	check("update of the status", state{Generation: 2, Description: "text", Phase: corev1beta1.ProjectReady})
	before := project.ResourceVersion
	if err := c.Update(ctx, project); err != nil {
		t.Fatal(err)
	}
	if project.ResourceVersion != before {
		t.Error("an update without a change wrote to the store")
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"description":"patched"}}`))
	if err := c.Patch(ctx, project, patch); err != nil {
		t.Fatal(err)
	}
	check("patch", state{Generation: 3, Description: "patched", Phase: corev1beta1.ProjectReady})
	confirm(ctx, t, c, project)
	if err := c.Delete(ctx, project); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(project), project); !apierrors.IsNotFound(err) {
		t.Errorf("get after delete: %v, want not found", err)
	}
}

func testApply(t *testing.T, e *env.Env) {
	ctx, c := t.Context(), e.Client
	apply := func(manager, description string) error {
		obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"description": description}}}
		obj.SetGroupVersionKind(corev1beta1.SchemeGroupVersion.WithKind("Project"))
		obj.SetName("applied")
		return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner(manager))
	}
	for range 2 {
		if err := apply("one", "text"); err != nil {
			t.Fatal(err)
		}
	}
	if err := apply("two", "other"); !apierrors.IsConflict(err) {
		t.Errorf("apply by another manager: %v, want a conflict", err)
	}
}

func testRefusal(t *testing.T, e *env.Env) {
	ctx, c := t.Context(), e.Client
	err := c.Create(ctx, &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "empty"}})
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != 422 || len(status.Status().Details.Causes) == 0 {
		t.Fatalf("create: %v, want 422 with causes", err)
	}
	var named []string
	for _, cause := range status.Status().Details.Causes {
		named = append(named, cause.Field)
	}
	if !slices.Contains(named, "spec.region") {
		t.Errorf("causes name %v, want spec.region among them", named)
	}
}

func testFieldSelectors(t *testing.T, e *env.Env) {
	ctx, c := t.Context(), e.Client
	buckets := map[string]string{"a": "seed-a", "b": "seed-b"}
	watching, err := client.NewWithWatch(e.Config, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	watchCtx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	events, err := watching.Watch(watchCtx, &corev1beta1.BackupBucketList{}, client.MatchingFields{"spec.seedName": "seed-b"})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	for _, name := range []string{"a", "b"} {
		err := c.Create(ctx, &corev1beta1.BackupBucket{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1beta1.BackupBucketSpec{
				Provider: corev1beta1.BackupBucketProvider{Type: "local", Region: "local"}, SeedName: new(buckets[name]),
				CredentialsRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "backup"},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	event, ok := <-events.ResultChan()
	if !ok {
		t.Fatal("the watch ended, want an event about b")
	}
	if event.Object.(client.Object).GetName() != "b" {
		t.Errorf("watch sent %v, want only b", event)
	}
	raw := get(ctx, t, e, "/apis/core.gardener.cloud/v1beta1/backupbuckets?fieldSelector=spec.seedName%3Dseed-a", "application/json")
	var got struct{ Items []map[string]any }
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Items) != 1 || got.Items[0]["kind"] != nil {
		t.Errorf("list is %s, want the bucket of seed-a without a kind", raw)
	}
	table := &metav1.Table{}
	raw = get(ctx, t, e, "/apis/core.gardener.cloud/v1beta1/backupbuckets/a", "application/json;as=Table;v=v1;g=meta.k8s.io")
	if err := json.Unmarshal(raw, table); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{"a", "local", "seed-a", "<pending>", float64(0)}, table.Rows[0].Cells[:5]); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func testProtobuf(t *testing.T, e *env.Env) {
	ctx := t.Context()
	config := rest.CopyConfig(e.Config)
	config.ContentType, config.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf"
	proto, err := client.New(config, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	class := &corev1beta1.ExposureClass{ObjectMeta: metav1.ObjectMeta{Name: "internet"}, Handler: "internet"}
	if err := proto.Create(ctx, class); err != nil {
		t.Fatal(err)
	}
	raw := get(ctx, t, e, "/apis/core.gardener.cloud/v1beta1/exposureclasses/internet", "application/vnd.kubernetes.protobuf")
	if len(raw) < 4 || string(raw[:3]) != "k8s" {
		t.Errorf("answer begins with %q, want that of protobuf", raw)
	}
}

func testVersions(t *testing.T, e *env.Env) {
	ctx, c := t.Context(), e.Client
	err := c.Create(ctx, &gardencorev1.ControllerDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "two"}, Helm: &gardencorev1.HelmControllerDeployment{RawChart: []byte("chart")},
	})
	if err != nil {
		t.Fatal(err)
	}
	old := &corev1beta1.ControllerDeployment{}
	if err := c.Get(ctx, client.ObjectKey{Name: "two"}, old); err != nil || old.Type != "helm" {
		t.Errorf("in v1beta1 its type is %q, %v; want helm", old.Type, err)
	}
}

// landscape is what other objects refer to: a project with credentials, extensions for the provider "local", and a CloudProfile.
func landscape() []client.Object {
	registration := &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "local"}}
	for _, kind := range []string{
		"BackupBucket", "BackupEntry", "ControlPlane", "DNSRecord", "Infrastructure", "Network", "OperatingSystemConfig", "Worker",
	} {
		registration.Spec.Resources = append(registration.Spec.Resources, corev1beta1.ControllerResource{Kind: kind, Type: "local"})
	}
	local := metav1.ObjectMeta{Namespace: devNamespace, Name: "local"}
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: devNamespace}}, registration,
		&corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "dev"}, Spec: corev1beta1.ProjectSpec{Namespace: new(devNamespace)}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "backup"}},
		&corev1.Secret{ObjectMeta: local},
		&securityv1alpha1.CredentialsBinding{
			ObjectMeta: local, Provider: securityv1alpha1.CredentialsBindingProvider{Type: "local"},
			CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: local.Namespace, Name: local.Name},
		},
		builder.CloudProfile(builder.Local),
	}
}

// get sends a request for one format.
func get(ctx context.Context, t *testing.T, e *env.Env, path, accept string) []byte {
	t.Helper()
	return getFrom(ctx, t, e, e.Config, path, accept)
}

// getFrom sends a request for one format to one of the servers.
func getFrom(ctx context.Context, t *testing.T, e *env.Env, server *rest.Config, path, accept string) []byte {
	t.Helper()
	config := rest.CopyConfig(server)
	config.NegotiatedSerializer = serializer.NewCodecFactory(e.Scheme).WithoutConversion()
	c, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := c.Get().RequestURI(path).SetHeader("Accept", accept).DoRaw(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
