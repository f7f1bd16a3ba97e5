package lifecycle

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/pkg/secrets"
)

// Of two API servers during a rollout, each has to read what the other one writes.
func TestEncryptionKeyIsKnownBeforeItIsUsed(t *testing.T) {
	s, w := newStage(t), example()
	w.shoot.Spec.Provider.Workers, w.seed.Spec.Backup = nil, nil
	w.shoot.Spec.Kubernetes.Version = "1.36.3"
	w.shoot.Status.Networking = &corev1beta1.NetworkingStatus{Services: []string{"10.4.0.0/16"}}
	key := func(secret *corev1.Secret) string { return string(secret.Data[secrets.DataKeyEncryptionSecret]) }
	var h *hosted
	// enter is the beginning of a run in a phase. It returns the keys of the API server, the one that writes first.
	enter := func(phase corev1beta1.CredentialsRotationPhase) []string {
		t.Helper()
		w.shoot.Status.Credentials = &corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{
			ETCDEncryptionKey: &corev1beta1.ETCDEncryptionKeyRotation{Phase: phase},
		}}
		if phase != "" {
			w.shoot.Status.Credentials.Rotation.ETCDEncryptionKey.LastInitiationTime = new(metav1.NewTime(noon))
		}
		var values kubeapiserver.Values
		h, values = begun(t, s, w)
		var keys []string
		for _, k := range values.Encryption.Keys {
			keys = append(keys, string(k.Secret))
		}
		return keys
	}
	check := func(what string, got []string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("keys %s (-want +got):\n%s", what, diff)
		}
	}
	first := enter("")
	got := enter(corev1beta1.RotationPreparing)
	old, current := first[0], key(h.set.Current(constants.SecretNameETCDEncryptionKey))
	check("when the rotation begins", got, old, current)
	check("when it is begun again", enter(corev1beta1.RotationPreparing), old, current)
	if err := h.useEncryptionKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("when all API servers know the new one", enter(corev1beta1.RotationPreparing), current, old)
	check("when it is prepared", enter(corev1beta1.RotationPrepared), current, old)
	check("when it is completed", enter(corev1beta1.RotationCompleting), current)
}

// Of two API servers during a rollout, one encrypts what the other one has never seen encrypted, unless that was told of the key before.
func TestAddedResourcesCanBeReadBeforeTheyAreEncrypted(t *testing.T) {
	s, w := newStage(t), example()
	w.shoot.Spec.Provider.Workers, w.seed.Spec.Backup = nil, nil
	w.shoot.Spec.Kubernetes.Version = "1.36.3"
	w.shoot.Status.Networking = &corev1beta1.NetworkingStatus{Services: []string{"10.4.0.0/16"}}
	encrypt := func(resources ...string) {
		w.shoot.Generation++
		w.shoot.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{EncryptionConfig: &corev1beta1.EncryptionConfig{Resources: resources}}
	}
	var h *hosted
	// run is the beginning of a run. Its resources are encrypted, or written in plain text and read either way.
	run := func(what string, encrypted, plain []string) {
		t.Helper()
		var values kubeapiserver.Values
		h, values = begun(t, s, w)
		if diff := cmp.Diff([][]string{encrypted, plain}, [][]string{values.Encryption.Resources, values.Encryption.PlainResources}, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: encrypted and plain resources (-want +got):\n%s", what, diff)
		}
	}
	use := func() {
		t.Helper()
		if err := h.useEncryptionKey(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	first, both, added := []string{"secrets"}, []string{"secrets", "configmaps"}, []string{"configmaps"}
	run("when it is made", first, nil)
	recordEncryption(w.shoot, w)
	encrypt("configmaps")
	run("when one is added", first, added)
	run("when that is begun again", first, added)
	use()
	run("when all API servers can read it", both, nil)
	recordEncryption(w.shoot, w)
	run("at the end", both, nil)
	encrypt()
	run("when it is removed", first, added)
	recordEncryption(w.shoot, w)
	run("when that is done", first, nil)
	encrypt("configmaps")
	run("when it is added once more", first, added)
}

// A pod that was replaced goes on writing for a while.
func TestOldAPIServers(t *testing.T) {
	s, w := newStage(t), example()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.namespace, Name: "kube-apiserver-old", Labels: kubeapiserver.Labels(), Finalizers: []string{"example.com/running"},
	}}
	if err := s.seed.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	h := &hosted{reconciler: s.reconciler, world: w}
	if err := h.oldAPIServersGone(t.Context()); err != nil {
		t.Errorf("a pod that is not replaced is waited for: %v", err)
	}
	if err := s.seed.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := h.oldAPIServersGone(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a pod that still ends is not waited for: %v", err)
	}
	if err := s.seed.Patch(t.Context(), pod, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	if err := h.oldAPIServersGone(t.Context()); err != nil {
		t.Error(err)
	}
}

// As long as a restore would bring back what only the old key can read, it is needed.
func TestOldKeyIsKeptUntilThereIsABackup(t *testing.T) {
	for name, tc := range map[string]struct {
		component string
		renewed   *time.Time
		want      bool
	}{
		"nothing was saved yet":         {component: "etcd-snapshot-lease"},
		"saved before":                  {component: "etcd-snapshot-lease", renewed: new(noon.Add(-time.Second))},
		"saved":                         {component: "etcd-snapshot-lease", renewed: new(noon.Add(time.Second)), want: true},
		"only a sign of life of etcd's": {component: "etcd-member-lease", renewed: new(noon.Add(time.Second))},
	} {
		t.Run(name, func(t *testing.T) {
			s, w := newStage(t), example()
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
				Namespace: w.namespace, Name: "some",
				Labels: map[string]string{"app.kubernetes.io/part-of": "etcd-main", "app.kubernetes.io/component": tc.component},
			}}
			if tc.renewed != nil {
				lease.Spec.RenewTime = &metav1.MicroTime{Time: *tc.renewed}
			}
			if err := s.seed.Create(t.Context(), lease); err != nil {
				t.Fatal(err)
			}
			w.shoot.Status.Credentials = &corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{
				ETCDEncryptionKey: &corev1beta1.ETCDEncryptionKeyRotation{LastInitiationFinishedTime: new(metav1.NewTime(noon))},
			}}
			patience := 200 * time.Millisecond // long enough to see that it does not end at once
			if tc.want {
				patience = time.Minute
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := (&hosted{reconciler: s.reconciler, world: w}).awaitBackup(ctx); (err == nil) != tc.want {
				t.Errorf("awaitBackup() is %v", err)
			}
		})
	}
}

// begun is the beginning of a run, up to the API server, and what that one works with.
func begun(t *testing.T, s *stage, w *world) (*hosted, kubeapiserver.Values) {
	t.Helper()
	h := &hosted{reconciler: s.reconciler, world: w}
	for _, step := range []func(context.Context) error{
		h.makeEtcdCredentials, h.makeCredentials, func(ctx context.Context) error { return h.deployAPIServer(ctx, 1) },
	} {
		if err := step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	values, err := h.apiServerValues(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return h, values
}
