package lifecycle

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/pkg/extension"
)

// A shoot that had failed is deleted: extensions have to hear of it before anything is asked of them.
func TestDeletionIsTold(t *testing.T) {
	s, w := newStage(t), example()
	w.shoot.Spec.Provider.Workers, w.extensions, w.cloudProfile = nil, nil, &corev1beta1.CloudProfile{}
	w.shoot.Status.LastOperation = &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateFailed}
	if err := s.syncCluster(t.Context(), w, w.shoot); err != nil {
		t.Fatal(err)
	}
	w.shoot.Status.LastOperation.State = corev1beta1.LastOperationStateProcessing
	s.run(t, (*reconciler).deletionFlow, w, 1)
	cluster, err := extension.ReadCluster(t.Context(), s.seed, w.namespace)
	if err != nil || cluster == nil {
		t.Fatal(cluster, err)
	}
	if reason := cluster.Resting(); reason != "" {
		t.Errorf("extensions still think that %s", reason)
	}
}

// Who deletes volumes works again before a hibernated cluster is emptied. What was never made is not made now.
func TestWakeControlPlane(t *testing.T) {
	for name, tc := range map[string]struct {
		made, deleted, want bool
	}{
		"it rests":           {made: true, want: true},
		"it was never made":  {},
		"it is deleted, too": {made: true, deleted: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			h := &hosted{reconciler: s.reconciler, world: example()}
			obj := h.controlPlaneObject()
			obj.UID, obj.Finalizers = "1", []string{"extensions.gardener.cloud/x"}
			obj.Spec.InfrastructureProviderStatus = &runtime.RawExtension{Raw: []byte(`{"network":"n"}`)}
			if tc.made {
				if err := s.seed.Create(t.Context(), obj); err != nil {
					t.Fatal(err)
				}
			}
			if tc.deleted {
				if err := s.seed.Delete(t.Context(), obj); err != nil {
					t.Fatal(err)
				}
			}
			if err := h.wakeControlPlane(t.Context()); err != nil {
				t.Fatal(err)
			}
			got := &extensionsv1alpha1.ControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: h.shoot.Name}}
			if err := s.seed.Get(t.Context(), client.ObjectKeyFromObject(got), got); apierrors.IsNotFound(err) != !tc.made {
				t.Fatalf("ControlPlane is there: %t, want %t (%v)", err == nil, tc.made, err)
			}
			if ordered := got.Annotations[constants.GardenerTimestamp] != ""; ordered != tc.want {
				t.Errorf("it is ordered: %t, want %t", ordered, tc.want)
			}
			if tc.made && got.Spec.InfrastructureProviderStatus == nil {
				t.Error("it forgets what the infrastructure is like")
			}
		})
	}
}
