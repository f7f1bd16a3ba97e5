package lifecycle

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/pkg/flow"
)

// gardener-apiserver signs tokens of workload identities with a new key only when gardener-discovery-server publishes it.
func TestIdentityKey(t *testing.T) {
	garden := &operatorv1alpha1.Garden{ObjectMeta: metav1.ObjectMeta{Name: "local"}}
	w := newWithCredentials(t, garden)
	const name = "gardener-apiserver-workload-identity-signing-key"
	nameOf := func(s *state) string {
		t.Helper()
		all, err := s.set.All()
		if err != nil {
			t.Fatal(err)
		}
		return all.Name(name)
	}
	old := nameOf(w.state(t, garden))
	w.clock.SetTime(w.clock.Now().Add(time.Hour))
	started := new(metav1.NewTime(w.clock.Now()))
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "gardener-apiserver"}}
	if err := w.runtime.Create(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	const preparing, prepared, completing = corev1beta1.RotationPreparing, corev1beta1.RotationPrepared, corev1beta1.RotationCompleting
	for _, tc := range []struct {
		title     string
		phase     corev1beta1.CredentialsRotationPhase
		discovery bool
		// published is whether the annotation of the Service has the new key.
		published, signsWithOld, hasTask bool
	}{
		{title: "before it is published", phase: preparing, discovery: true, signsWithOld: true, hasTask: true},
		{title: "nothing publishes it", phase: preparing},
		{title: "it is published", phase: preparing, discovery: true, published: true, hasTask: true},
		{title: "prepared", phase: prepared, discovery: true},
		{title: "completing", phase: completing, discovery: true},
	} {
		t.Run(tc.title, func(t *testing.T) {
			garden := garden.DeepCopy()
			garden.Status.Credentials = &operatorv1alpha1.Credentials{Rotation: &operatorv1alpha1.CredentialsRotation{
				WorkloadIdentityKey: &operatorv1alpha1.WorkloadIdentityKeyRotation{Phase: tc.phase, LastInitiationTime: started},
			}}
			if tc.discovery {
				garden.Spec.VirtualCluster.Gardener.GardenerDiscoveryServer = &operatorv1alpha1.GardenerDiscoveryServerConfig{Domain: &operatorv1alpha1.DNSDomain{Name: "d.example.com"}}
			}
			s := w.state(t, garden)
			current := nameOf(s)
			if current == old {
				t.Fatal("the key is not new")
			}
			service.Annotations = map[string]string{"operator.gardener.cloud/published-workload-identity-key": old}
			if tc.published {
				service.Annotations["operator.gardener.cloud/published-workload-identity-key"] = current
			}
			if err := w.runtime.Update(t.Context(), service); err != nil {
				t.Fatal(err)
			}
			set, err := s.set.All()
			if err != nil {
				t.Fatal(err)
			}
			want := current
			if tc.signsWithOld {
				want = old
			}
			if got, err := s.identityKey(t.Context(), set); err != nil || got != want {
				t.Errorf("the key is %q, want %q: %v", got, want, err)
			}
			tasks := s.identityKeyTasks([]flow.Task{{ID: "gardener-encryption-key"}})
			if !tc.hasTask {
				if tasks != nil {
					t.Errorf("there are tasks: %v", tasks)
				}
				return
			}
			if len(tasks) != 1 || !slices.Equal(tasks[0].After, []string{"gardener-apiserver-ready", "gardener-discovery-server-ready", "gardener-encryption-key"}) {
				t.Errorf("the tasks are %v", tasks)
			}
			for _, task := range s.seedTasks() {
				if !slices.Contains(task.After, tasks[0].ID) {
					t.Errorf("tokens are renewed by task %q before the new key signs them", task.ID)
				}
			}
			if renewals := s.seedTasks(); len(renewals) != 1 || renewals[0].ID != "seeds-renew-workload-identity-tokens" {
				t.Errorf("the tasks for seeds are %v", renewals)
			}
		})
	}
}
