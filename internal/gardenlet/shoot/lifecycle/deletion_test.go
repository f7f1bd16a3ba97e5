package lifecycle

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/shoot/observed/observedtest"
	"gardener.cloud/gardener/internal/stage/extension"
	clusterextension "gardener.cloud/gardener/pkg/extension"
)

// A shoot that had failed is deleted: the Cluster resource is written before the resources of extensions.
func TestExtensionsKnowOfADeletion(t *testing.T) {
	l, o := newLandscape(t), observedtest.State()
	o.Shoot.Spec.Provider.Workers, o.Extensions, o.CloudProfile = nil, nil, &corev1beta1.CloudProfile{}
	o.Shoot.Status.LastOperation = &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateFailed}
	if err := l.writeCluster(t.Context(), o, o.Shoot); err != nil {
		t.Fatal(err)
	}
	o.Shoot.Status.LastOperation.State = corev1beta1.LastOperationStateProcessing
	l.run(t, (*reconciler).deletionFlow, o, 1)
	cluster, err := clusterextension.ReadCluster(t.Context(), l.seed, o.Namespace)
	if err != nil || cluster == nil {
		t.Fatal(cluster, err)
	}
	if reason := cluster.SkipReason(); reason != "" {
		t.Errorf("extensions still ignore it: %s", reason)
	}
}

// Extensions that a Shoot does not have any more are deleted as they are registered, and by default before the kube-apiserver.
func TestStaleExtensions(t *testing.T) {
	last, first := corev1beta1.AfterKubeAPIServer, corev1beta1.BeforeKubeAPIServer
	l, o := newLandscape(t), observedtest.State()
	registration := &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
	registration.Spec.Resources = []corev1beta1.ControllerResource{
		{Kind: "Extension", Type: "desired"},
		{Kind: "Extension", Type: "disabled", AutoEnable: []corev1beta1.ClusterType{corev1beta1.ClusterTypeShoot}, Lifecycle: &corev1beta1.ControllerResourceLifecycle{Delete: &last}},
		{Kind: "Worker", Type: "removed", Lifecycle: &corev1beta1.ControllerResourceLifecycle{Delete: &last}},
	}
	o.Shoot.Spec.Extensions = []corev1beta1.Extension{{Type: "desired"}, {Type: "disabled", Disabled: new(true)}}
	errs := []error{l.garden.Create(t.Context(), registration)}
	for _, name := range []string{"desired", "disabled", "removed"} {
		errs = append(errs, l.seed.Create(t.Context(), &extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: name}}))
	}
	other := &extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--other", Name: "removed"}}
	if err := errors.Join(append(errs, l.seed.Create(t.Context(), other), observer{gardenCache: l.garden, seedAPI: l.seed}.extensions(t.Context(), o))...); err != nil {
		t.Fatal(err)
	}
	got := map[string]corev1beta1.ControllerResourceLifecycleStrategy{}
	for _, e := range o.StaleExtensions {
		got[e.Type] = e.Delete
	}
	if diff := cmp.Diff(map[string]corev1beta1.ControllerResourceLifecycleStrategy{"disabled": last, "removed": first}, got); diff != "" {
		t.Errorf("stale Extensions (-want +got):\n%s", diff)
	}
	for _, hibernated := range []bool{true, false} { // the second time finds nothing to do
		in := extension.Inputs{Run: l.stages(o, kindRunning).extensions.Run, Stale: o.StaleExtensions, Hibernated: hibernated}
		for _, task := range extension.Tasks(in) {
			if err := task.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for name, want := range map[string]bool{"desired": true, "disabled": false, "removed": false} {
			err := l.seed.Get(t.Context(), client.ObjectKey{Namespace: o.Namespace, Name: name}, &extensionsv1alpha1.Extension{})
			if client.IgnoreNotFound(err) != nil || apierrors.IsNotFound(err) == want {
				t.Errorf("Extension %q, want it to exist: %t, got %v", name, want, err)
			}
		}
	}
	if err := l.seed.Get(t.Context(), client.ObjectKeyFromObject(other), other); err != nil {
		t.Errorf("another shoot's Extension: %v", err)
	}
}

// The tasks that delete users' objects know which of them have failed before.
func TestCleanupKnowsFormerErrors(t *testing.T) {
	w := complete(workers)
	w.Shoot.Status.LastErrors = []corev1beta1.LastError{{Description: "a Pod is held", TaskID: new("clean-shoot")}, {Description: "no quota"}}
	if got := newLandscape(t).stages(w, kindDeletion).cleanup.Failed; !slices.Equal(got, []string{"clean-shoot"}) {
		t.Errorf("tasks that have failed: %q, want clean-shoot", got)
	}
}
