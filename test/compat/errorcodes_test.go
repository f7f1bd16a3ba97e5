package compat

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/validation/core"
	"gardener.cloud/gardener/pkg/errorcode"
)

// TestErrorCodes compares which errors are not retried, and with which ones a Shoot may be deleted by force.
func TestErrorCodes(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(factsDir(t), "constants.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var facts struct {
		ErrorCodes map[string]struct {
			Value               corev1beta1.ErrorCode `json:"value"`
			Retryable           bool                  `json:"retryable"`
			AllowsForceDeletion bool                  `json:"allowsForceDeletion"`
		} `json:"errorCodes"`
	}
	if err := yaml.Unmarshal(data, &facts); err != nil {
		t.Fatal(err)
	}
	if len(facts.ErrorCodes) == 0 {
		t.Fatal("there are no error codes")
	}
	for name, fact := range facts.ErrorCodes {
		t.Run(name, func(t *testing.T) {
			if errorcode.NeedsUser([]corev1beta1.ErrorCode{fact.Value}) == fact.Retryable {
				t.Errorf("the operation is retried: %t, want %t", !fact.Retryable, fact.Retryable)
			}
			old := &corev1beta1.Shoot{}
			old.Namespace, old.Name, old.DeletionTimestamp = "garden-dev", "a", new(metav1.NewTime(time.Now()))
			old.Status.LastErrors = []corev1beta1.LastError{{Codes: []corev1beta1.ErrorCode{fact.Value}}}
			shoot := old.DeepCopy()
			shoot.Annotations = map[string]string{constants.ConfirmationForceDeletion: "true"}
			path := field.NewPath("metadata", "annotations").Key(constants.ConfirmationForceDeletion).String()
			forbidden := slices.ContainsFunc(core.ValidateShootUpdate(shoot, old, core.Options{}), func(e *field.Error) bool { return e.Field == path })
			if forbidden == fact.AllowsForceDeletion {
				t.Errorf("deletion by force is allowed: %t, want %t", !forbidden, fact.AllowsForceDeletion)
			}
		})
	}
}
