package landscape

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

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

// shootIn is a shoot in its second generation, with the last operation in a state and the conditions True.
func shootIn(state corev1beta1.LastOperationState, change func(*corev1beta1.Shoot)) *corev1beta1.Shoot {
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-local", Name: "local", Generation: 2}}
	shoot.Status.ObservedGeneration = 2
	shoot.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeReconcile, State: state}
	shoot.Status.Conditions = []corev1beta1.Condition{{Type: corev1beta1.ShootAPIServerAvailable, Status: corev1beta1.ConditionTrue}}
	if change != nil {
		change(shoot)
	}
	return shoot
}

func operation(name string) func(*corev1beta1.Shoot) {
	return func(shoot *corev1beta1.Shoot) {
		shoot.Annotations = map[string]string{constants.GardenerOperation: name}
	}
}

func TestSampleReady(t *testing.T) {
	older := func(shoot *corev1beta1.Shoot) { shoot.Status.ObservedGeneration = 1 }
	for name, tc := range map[string]struct {
		shoot       *corev1beta1.Shoot
		ready, fail bool
	}{
		"none yet":                     {},
		"not begun":                    {shoot: &corev1beta1.Shoot{}},
		"healthy":                      {shoot: shootIn("Succeeded", nil), ready: true},
		"an operation is pending":      {shoot: shootIn("Succeeded", operation("reconcile"))},
		"healthy before its change":    {shoot: shootIn("Succeeded", older)},
		"under way":                    {shoot: shootIn("Processing", nil)},
		"to be tried again":            {shoot: shootIn("Error", nil)},
		"failed for good":              {shoot: shootIn("Failed", nil), fail: true},
		"failed before it was retried": {shoot: shootIn("Failed", operation("retry"))},
		"failed before its change":     {shoot: shootIn("Failed", older)},
	} {
		t.Run(name, func(t *testing.T) {
			if err := sampleReady(tc.shoot); (err == nil) != tc.ready {
				t.Errorf("sampleReady() = %v, want ready: %v", err, tc.ready)
			}
			err := failedForGood(tc.shoot)
			if (err != nil) != tc.fail {
				t.Fatalf("failedForGood() = %v, want an error: %v", err, tc.fail)
			}
			for _, command := range []string{"bin/gardenctl describe shoot local -n garden-local", "bin/gardenctl retry shoot local -n garden-local"} {
				if tc.fail && !strings.Contains(err.Error(), command) {
					t.Errorf("the error does not say %q: %v", command, err)
				}
			}
		})
	}
}
