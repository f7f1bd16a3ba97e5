package landscape

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestShootHealthy(t *testing.T) {
	operation := func(state corev1beta1.LastOperationState, progress int32, description string) *corev1beta1.LastOperation {
		return &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeCreate, State: state, Progress: progress, Description: description}
	}
	done := operation(corev1beta1.LastOperationStateSucceeded, 100, "Done.")
	for name, tc := range map[string]struct {
		status corev1beta1.ShootStatus
		want   string
	}{
		"nobody has begun": {corev1beta1.ShootStatus{}, "nobody has begun yet"},
		"under way": {
			corev1beta1.ShootStatus{LastOperation: operation(corev1beta1.LastOperationStateProcessing, 40, "Waiting for etcd")}, "Create Processing 40%, Waiting for etcd",
		},
		"in error, with codes in order": {
			corev1beta1.ShootStatus{
				LastOperation: operation(corev1beta1.LastOperationStateError, 40, ""),
				LastErrors: []corev1beta1.LastError{
					{Description: "no room\nleft", Codes: []corev1beta1.ErrorCode{"ERR_INFRA_QUOTA_EXCEEDED", "ERR_CONFIGURATION_PROBLEM"}}, {Description: "odd"},
				},
			},
			"Create Error 40%; error ERR_CONFIGURATION_PROBLEM, ERR_INFRA_QUOTA_EXCEEDED: no room left; error: odd",
		},
		"a change is not seen yet": {corev1beta1.ShootStatus{LastOperation: done, ObservedGeneration: 1}, "its last change has not been seen yet"},
		"not looked at":            {corev1beta1.ShootStatus{LastOperation: done, ObservedGeneration: 2}, "nobody has looked at its health yet"},
		"ill": {
			corev1beta1.ShootStatus{LastOperation: done, ObservedGeneration: 2, Conditions: []corev1beta1.Condition{{Type: "A", Status: "True"}, {Type: "B", Status: "False", Message: "ouch"}}},
			"its condition B is False: ouch",
		},
		"healthy": {corev1beta1.ShootStatus{LastOperation: done, ObservedGeneration: 2, Conditions: []corev1beta1.Condition{{Type: "A", Status: "True"}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := ShootHealthy(&corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: tc.status}); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("it is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	for image, want := range map[string]string{
		"a.b:5000/c/d:v1@sha256:00": "v1", "a.b:5000/c/d@sha256:00": "sha256:00", "d:v1": "v1", "a.b:5000/d": "",
	} {
		if got := version(image); got != want {
			t.Errorf("version of %q is %q, want %q", image, got, want)
		}
	}
}

func TestSampleShoot(t *testing.T) {
	shoot, err := sampleShoot()
	if err != nil {
		t.Fatal(err)
	}
	if shoot.Namespace != SampleShoot.Namespace || shoot.Name != SampleShoot.Name {
		t.Errorf("the example is %s/%s, want %s", shoot.Namespace, shoot.Name, SampleShoot)
	}
}
