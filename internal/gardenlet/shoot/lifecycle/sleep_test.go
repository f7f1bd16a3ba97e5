package lifecycle

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// A shoot that is to sleep again after its waking up has failed half way is stopped like one that was awake.
func TestSleepAfterFailedWakeUp(t *testing.T) {
	for name, tc := range map[string]struct {
		// replicas are those of the API server. It is not there if they are nil.
		replicas *int32
		before   bool
		want     bool
	}{
		"nothing runs":           {replicas: new(int32(0)), before: true, want: true},
		"nothing was ever there": {before: true, want: true},
		"it was half awake":      {replicas: new(int32(1)), before: true},
		"it was awake":           {replicas: new(int32(1))},
		"it was half asleep":     {replicas: new(int32(0))},
	} {
		t.Run(name, func(t *testing.T) {
			s, w := newStage(t), example()
			w.shoot.Spec.Hibernation, w.shoot.Status.Hibernated = &corev1beta1.Hibernation{Enabled: new(true)}, tc.before
			if tc.replicas != nil {
				deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "kube-apiserver"}}
				deployment.Spec.Replicas = tc.replicas
				if err := s.seed.Create(t.Context(), deployment); err != nil {
					t.Fatal(err)
				}
			}
			var err error
			if w.stopped, err = s.apiServerStopped(t.Context(), w.namespace); err != nil {
				t.Fatal(err)
			}
			f, err := s.reconcileFlow(w)
			if err != nil {
				t.Fatal(err)
			}
			tasks := map[string]bool{}
			for line := range strings.Lines(f.String()) {
				tasks[strings.Fields(line)[0]] = true
			}
			if tasks["stop-etcd"] == tc.want || tasks["worker"] == tc.want {
				t.Errorf("the flow has the tasks %v", tasks)
			}
			shoot := &corev1beta1.Shoot{}
			shoot.Status.Credentials = &corev1beta1.ShootCredentials{EncryptionAtRest: &corev1beta1.EncryptionAtRest{}}
			recordEncryption(shoot, w)
			if recorded := shoot.Status.Credentials.EncryptionAtRest.Provider.Type != ""; recorded == tc.want {
				t.Errorf("what is encrypted is recorded: %t", recorded)
			}
		})
	}
}
