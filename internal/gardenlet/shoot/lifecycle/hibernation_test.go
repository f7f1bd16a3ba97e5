package lifecycle

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/shoot/observed/observedtest"
)

// A shoot that is to be hibernated again after its wake-up has failed half way is stopped like one that ran.
func TestHibernationAfterAFailedWakeUp(t *testing.T) {
	for name, tc := range map[string]struct {
		// replicas are those of the kube-apiserver. It does not exist if they are nil.
		replicas *int32
		before   bool
		want     bool
	}{
		"nothing runs":               {replicas: new(int32(0)), before: true, want: true},
		"nothing exists":             {before: true, want: true},
		"its wake-up has failed":     {replicas: new(int32(1)), before: true},
		"it ran":                     {replicas: new(int32(1))},
		"its hibernation has failed": {replicas: new(int32(0))},
	} {
		t.Run(name, func(t *testing.T) {
			l, o := newLandscape(t), observedtest.State()
			o.Shoot.Spec.Hibernation, o.Shoot.Status.Hibernated = &corev1beta1.Hibernation{Enabled: new(true)}, tc.before
			if tc.replicas != nil {
				deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: "kube-apiserver"}}
				deployment.Spec.Replicas = tc.replicas
				if err := l.seed.Create(t.Context(), deployment); err != nil {
					t.Fatal(err)
				}
			}
			var err error
			if o.Stopped, err = (observer{seedAPI: l.seed}).apiServerStopped(t.Context(), o.Namespace); err != nil {
				t.Fatal(err)
			}
			f, err := l.reconcileFlow(o)
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
			o.RecordEncryption(shoot)
			if recorded := shoot.Status.Credentials.EncryptionAtRest.Provider.Type != ""; recorded == tc.want {
				t.Errorf("what is encrypted is recorded: %t", recorded)
			}
		})
	}
}
