package authentication_test

import (
	"testing"

	authenticationv1alpha1 "gardener.cloud/gardener/api/authentication/v1alpha1"
	"gardener.cloud/gardener/internal/validation/authentication"
	"gardener.cloud/gardener/internal/validation/validationtest"
)

func TestValidateKubeconfigRequests(t *testing.T) {
	const invalid = "FieldValueInvalid spec.expirationSeconds"
	for name, tc := range map[string]struct {
		seconds *int64
		want    []string
	}{
		"an hour":           {seconds: new(int64(3600))},
		"the shortest":      {seconds: new(int64(600))},
		"too short":         {seconds: new(int64(599)), want: []string{invalid}},
		"before now":        {seconds: new(int64(-1)), want: []string{invalid}},
		"the longest":       {seconds: new(int64(1 << 32))},
		"too long":          {seconds: new(int64(1<<32 + 1)), want: []string{invalid}},
		"without a default": {want: []string{"FieldValueRequired spec.expirationSeconds"}},
	} {
		t.Run(name, func(t *testing.T) {
			admin := &authenticationv1alpha1.AdminKubeconfigRequest{}
			admin.Spec.ExpirationSeconds = tc.seconds
			validationtest.Expect(t, authentication.ValidateAdminKubeconfigRequest(admin), tc.want...)

			viewer := &authenticationv1alpha1.ViewerKubeconfigRequest{}
			viewer.Spec.ExpirationSeconds = tc.seconds
			validationtest.Expect(t, authentication.ValidateViewerKubeconfigRequest(viewer), tc.want...)
		})
	}
}
