package webhook

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"gardener.cloud/gardener/internal/resourcemanager/tokeninvalidator"
)

// invalidateToken invalidates the static token in a Secret before it is stored. A Secret that has the label no longer is selected, too, as it had
// the label before.
func invalidateToken(_ context.Context, request admission.Request) admission.Response {
	secret := &corev1.Secret{}
	return change(request, secret, func() error {
		if tokeninvalidator.Considered(secret) {
			tokeninvalidator.Invalidate(secret)
		}
		return nil
	})
}
