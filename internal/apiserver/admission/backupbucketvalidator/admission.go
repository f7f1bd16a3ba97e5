// Package backupbucketvalidator refuses BackupBuckets with an identity for another provider.
package backupbucketvalidator

import (
	"context"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
)

// Name is the name of the plugin.
const Name = "BackupBucketValidator"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(Name, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// New returns the plugin.
func New() *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// Plugin checks BackupBuckets. Reads WorkloadIdentities.
type Plugin struct {
	*admission.Handler
	initializer.Base
}

var _ admission.ValidationInterface = &Plugin{}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	bucket, ok := a.GetObject().(*corev1beta1.BackupBucket)
	if !ok || a.GetSubresource() != "" || bucket.DeletionTimestamp != nil {
		return nil
	}
	ref := bucket.Spec.CredentialsRef
	if ref == nil || ref.Kind != "WorkloadIdentity" {
		return nil
	}
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	identity := &securityv1alpha1.WorkloadIdentity{}
	if err := p.GardenCache.Get(ctx, key, identity); err != nil {
		return apierrors.NewInternalError(fmt.Errorf("read WorkloadIdentity %q: %w", key, err))
	}
	if identity.Spec.TargetSystem.Type != bucket.Spec.Provider.Type {
		return admission.NewForbidden(a, fmt.Errorf("spec.credentialsRef: WorkloadIdentity %q is for %q, not for %q",
			key, identity.Spec.TargetSystem.Type, bucket.Spec.Provider.Type))
	}
	return nil
}
