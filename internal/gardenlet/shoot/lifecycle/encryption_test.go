package lifecycle

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/internal/shoot/observed/observedtest"
	"gardener.cloud/gardener/internal/stage/apiserver"
	"gardener.cloud/gardener/internal/stage/stagetest"
	"gardener.cloud/gardener/pkg/secrets"
)

// Of two pods of kube-apiserver during a rollout, each has to read what the other one writes.
func TestEncryptionKeyIsKnownBeforeItIsUsed(t *testing.T) {
	l, o := newLandscape(t), observedtest.State()
	o.Shoot.Spec.Provider.Workers, o.Seed.Spec.Backup = nil, nil
	o.Shoot.Spec.Kubernetes.Version = "1.36.3"
	o.Shoot.Status.Networking = &corev1beta1.NetworkingStatus{Services: []string{"10.4.0.0/16"}}
	key := func(secret *corev1.Secret) string { return string(secret.Data[secrets.DataKeyEncryptionSecret]) }
	var s stages
	// enter is the beginning of a run in a phase. It returns the keys of the API server, the one that writes first.
	enter := func(phase corev1beta1.CredentialsRotationPhase) []string {
		t.Helper()
		o.Shoot.Status.Credentials = &corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{
			ETCDEncryptionKey: &corev1beta1.ETCDEncryptionKeyRotation{Phase: phase},
		}}
		if phase != "" {
			o.Shoot.Status.Credentials.Rotation.ETCDEncryptionKey.LastInitiationTime = new(metav1.NewTime(noon))
		}
		var values kubeapiserver.Values
		s, values = begin(t, l, o)
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
	all, err := s.foundation.Credentials.All()
	if err != nil {
		t.Fatal(err)
	}
	old, current := first[0], key(all.Current(constants.SecretNameETCDEncryptionKey))
	check("when the rotation begins", got, old, current)
	check("when it is begun again", enter(corev1beta1.RotationPreparing), old, current)
	if err := stagetest.RunTask(t.Context(), t, apiserver.EncryptionTasks(s.apiserver), "encryption-key"); err != nil {
		t.Fatal(err)
	}
	check("when all pods know the new one", enter(corev1beta1.RotationPreparing), current, old)
	check("when it is prepared", enter(corev1beta1.RotationPrepared), current, old)
	check("when it is completed", enter(corev1beta1.RotationCompleting), current)
}

// Of two pods of kube-apiserver during a rollout, one encrypts resources that the other one cannot decrypt, unless that was given the key before.
func TestAddedResourcesCanBeReadBeforeTheyAreEncrypted(t *testing.T) {
	l, o := newLandscape(t), observedtest.State()
	o.Shoot.Spec.Provider.Workers, o.Seed.Spec.Backup = nil, nil
	o.Shoot.Spec.Kubernetes.Version = "1.36.3"
	o.Shoot.Status.Networking = &corev1beta1.NetworkingStatus{Services: []string{"10.4.0.0/16"}}
	encrypt := func(resources ...string) {
		o.Shoot.Generation++
		o.Shoot.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{EncryptionConfig: &corev1beta1.EncryptionConfig{Resources: resources}}
	}
	var s stages
	// run is the beginning of a run. Its resources are encrypted, or written in plain text and read either way.
	run := func(what string, encrypted, plain []string) {
		t.Helper()
		var values kubeapiserver.Values
		s, values = begin(t, l, o)
		if diff := cmp.Diff([][]string{encrypted, plain}, [][]string{values.Encryption.Resources, values.Encryption.PlainResources}, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: encrypted and plain resources (-want +got):\n%s", what, diff)
		}
	}
	use := func() {
		t.Helper()
		if err := stagetest.RunTask(t.Context(), t, apiserver.EncryptionTasks(s.apiserver), "encryption-key"); err != nil {
			t.Fatal(err)
		}
	}
	first, both, added := []string{"secrets"}, []string{"secrets", "configmaps"}, []string{"configmaps"}
	run("when the cluster is created", first, nil)
	o.RecordEncryption(o.Shoot)
	encrypt("configmaps")
	run("when one is added", first, added)
	run("when that is begun again", first, added)
	use()
	run("when all pods can read it", both, nil)
	o.RecordEncryption(o.Shoot)
	run("at the end", both, nil)
	encrypt()
	run("when it is removed", first, added)
	o.RecordEncryption(o.Shoot)
	run("when that is done", first, nil)
	encrypt("configmaps")
	run("when it is added once more", first, added)
}

// begin runs the beginning of a reconciliation, up to the kube-apiserver. It returns the stages, and the values of the kube-apiserver.
func begin(t *testing.T, l *landscape, o *observed.State) (stages, kubeapiserver.Values) {
	t.Helper()
	s := l.stages(o, kindRunning)
	stagetest.Generate(t, s.foundation.Credentials)
	if err := apiserver.Deploy(s.apiserver, 1)(t.Context()); err != nil {
		t.Fatal(err)
	}
	values, err := apiserver.CurrentValues(t.Context(), s.apiserver, 1)
	if err != nil {
		t.Fatal(err)
	}
	return s, values
}
