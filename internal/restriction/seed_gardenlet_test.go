package restriction

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
)

// The gardener-operator deploys what a Gardenlet says: who could write it would be administrator of the cluster that it deploys to.
func TestSeedGardenlets(t *testing.T) {
	const operation, created = "gardener.cloud/operation", "seedmanagement.gardener.cloud/created-by-gardenlet"
	type change = func(*seedmanagementv1alpha1.Gardenlet)
	annotated := func(pairs ...string) change {
		return func(g *seedmanagementv1alpha1.Gardenlet) {
			g.Annotations = maps.Clone(g.Annotations)
			for i := 0; i < len(pairs); i += 2 {
				metav1.SetMetaDataAnnotation(&g.ObjectMeta, pairs[i], pairs[i+1])
			}
		}
	}
	gardenlet := func(namespace, name string, changes ...change) *seedmanagementv1alpha1.Gardenlet {
		g := &seedmanagementv1alpha1.Gardenlet{ObjectMeta: meta(namespace, name)}
		g.Spec.Deployment.Helm.OCIRepository.Ref = new("registry.example/gardenlet:v1")
		g.Spec.Config = &runtime.RawExtension{Raw: []byte(`{"a":1,"b":{"c":2}}`)}
		for _, change := range changes {
			change(g)
		}
		return g
	}
	own := func(changes ...change) *seedmanagementv1alpha1.Gardenlet {
		return gardenlet("garden", "foo", changes...)
	}
	chart := func(g *seedmanagementv1alpha1.Gardenlet) {
		g.Spec.Deployment.Helm.OCIRepository.Ref = new("registry.evil/gardenlet:v1")
	}
	config := func(raw string) change {
		return func(g *seedmanagementv1alpha1.Gardenlet) { g.Spec.Config = &runtime.RawExtension{Raw: []byte(raw)} }
	}
	kubeconfig := func(g *seedmanagementv1alpha1.Gardenlet) {
		g.Spec.KubeconfigSecretRef = &corev1.LocalObjectReference{Name: "stolen"}
	}
	status := func(g *seedmanagementv1alpha1.Gardenlet) {
		g.Status.Conditions = []corev1beta1.Condition{{Type: "SeedRegistered", Status: "False"}}
	}
	marked := annotated(created, "true")
	forced := annotated(operation, "force-redeploy")
	decide := (*Values).Seed
	run(t, decide, gardenlets, map[string]test{
		"own":                         {object: own(marked)},
		"own, not marked":             {object: own(), want: 403, names: created},
		"own, with a new domain":      {object: own(marked, config(`{"seedConfig":{"spec":{"ingress":{"domain":"com"}}}}`)), want: 403, names: `"com"`},
		"own, with a kubeconfig":      {object: own(marked, kubeconfig), want: 403, names: "kubeconfigSecretRef"},
		"own, with an operation":      {object: own(marked, forced), want: 403, names: operation},
		"own, with a status":          {object: own(marked, status), want: 403, names: "status"},
		"of another seed":             {object: gardenlet("garden", "bar", marked), want: 403},
		"in another namespace":        {object: gardenlet(project, "foo", marked), want: 400},
		"deleted":                     {operation: remove, old: own(), want: 400},
		"updated, of another seed":    {operation: update, object: gardenlet("garden", "bar"), old: gardenlet("garden", "bar"), want: 403},
		"updated, the stored unknown": {operation: update, object: own(), want: 400},
	}, seedGardenletUser)
	updated := map[string]test{
		"updated, the same":                 {operation: update, object: own(), old: own()},
		"updated, encoded again":            {operation: update, object: own(config(`{"b": {"c": 2}, "a": 1}`)), old: own()},
		"updated, the status":               {operation: update, object: own(status), old: own()},
		"updated, another chart":            {operation: update, object: own(chart), old: own(), want: 403, names: "spec"},
		"updated, another configuration":    {operation: update, object: own(config(`{"a":1,"b":{"c":3}}`)), old: own(), want: 403, names: "spec"},
		"updated, no configuration":         {operation: update, object: own(func(g *seedmanagementv1alpha1.Gardenlet) { g.Spec.Config = nil }), old: own(), want: 403, names: "spec"},
		"updated, a broken configuration":   {operation: update, object: own(config("{")), old: own(), want: 403, names: "spec"},
		"updated, a kubeconfig":             {operation: update, object: own(kubeconfig), old: own(), want: 403, names: "spec"},
		"updated, an operation":             {operation: update, object: own(forced), old: own(), want: 403, names: "force-redeploy"},
		"updated, an operation is done":     {operation: update, object: own(), old: own(forced)},
		"updated, the operation stays":      {operation: update, object: own(forced), old: own(forced)},
		"updated, one of two operations":    {operation: update, object: own(forced), old: own(annotated(operation, "renew-kubeconfig;force-redeploy"))},
		"updated, another operation":        {operation: update, object: own(forced), old: own(annotated(operation, "renew-kubeconfig")), want: 403, names: "force-redeploy"},
		"updated, without the mark":         {operation: update, object: own(), old: own(marked), want: 403, names: "annotations"},
		"updated, another annotation":       {operation: update, object: own(annotated("a", "b")), old: own(), want: 403, names: "annotations"},
		"updated, a label":                  {operation: update, object: own(func(g *seedmanagementv1alpha1.Gardenlet) { g.Labels = map[string]string{"a": "b"} }), old: own(), want: 403, names: "labels"},
		"updated, deleted with its owner":   {operation: update, object: own(func(g *seedmanagementv1alpha1.Gardenlet) { g.OwnerReferences = []metav1.OwnerReference{{Name: "a"}} }), old: own(), want: 403, names: "owner"},
		"updated, with the annotation kept": {operation: update, object: own(annotated("a", "b")), old: own(annotated("a", "b", operation, "renew-kubeconfig"))},
	}
	run(t, decide, gardenlets, updated, seedGardenletUser)
	run(t, decide, gardenletStatuses, updated, seedGardenletUser)
	run(t, decide, gardenlets, map[string]test{
		"own":               {object: own(marked), want: 403, names: "extensions"},
		"updated, the same": {operation: update, object: own(), old: own(), want: 403, names: "extensions"},
	}, seedExtensionUser)
	run(t, decide, gardenletStatuses, map[string]test{"of an extension": {operation: update, object: own(), old: own(), want: 403}}, seedExtensionUser)
}

func TestMark(t *testing.T) {
	for name, tc := range map[string]struct {
		user user.Info
		want string
	}{
		"a gardenlet": {seedGardenletUser, "true"}, "an extension": {seedExtensionUser, "true"}, "an operator": {someUser, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := &seedmanagementv1alpha1.Gardenlet{ObjectMeta: meta("garden", "foo")}
			r := &Request{User: tc.user, Operation: create, Resource: gardenlets.GroupResource(), Object: g}
			Mark(r)
			if got := g.Annotations[seedmanagementv1alpha1.AnnotationCreatedByGardenlet]; got != tc.want {
				t.Errorf("the annotation is %q, want %q", got, tc.want)
			}
			updated := &seedmanagementv1alpha1.Gardenlet{ObjectMeta: meta("garden", "foo")}
			r.Operation, r.Object = update, updated
			if Mark(r); updated.Annotations != nil {
				t.Errorf("an update is marked with %v", updated.Annotations)
			}
		})
	}
}
