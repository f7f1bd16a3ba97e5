package care

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/secrets"
)

// rotatedAuthorities are the CAs that only operations renew.
var rotatedAuthorities = []string{
	constants.SecretNameCACluster, constants.SecretNameCAClient, constants.SecretNameCAFrontProxy, constants.SecretNameCAETCD, constants.SecretNameCAETCDPeer,
	operatorv1alpha1.SecretNameCAGardener,
}

// authorities reads the metadata of the Secrets with these CAs: two of each while they are rotated.
func authorities(ctx context.Context, runtimeAPI client.Reader) ([]metav1.PartialObjectMetadata, error) {
	named, err := labels.NewRequirement(secrets.LabelKeyName, selection.In, rotatedAuthorities)
	if err != nil {
		return nil, err
	}
	selector := labels.SelectorFromSet(labels.Set{
		secrets.LabelKeyManagedBy: secrets.LabelValueSecretsManager, secrets.LabelKeyManagerIdentity: operatorv1alpha1.SecretManagerIdentityOperator,
	}).Add(*named)
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := runtimeAPI.List(ctx, list, client.InNamespace(constants.GardenNamespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("list Secrets with CAs: %w", err)
	}
	return list.Items, nil
}

// expiry returns the condition that names the CAs that expire soon, or nil if there are none.
func expiry(authorities []metav1.PartialObjectMetadata, now time.Time) *corev1beta1.Condition {
	var expiring []string
	for _, e := range secrets.ExpiringCAs(authorities, now) {
		expiring = append(expiring, fmt.Sprintf("%q until %s", e.Name, e.Until.Format(time.DateOnly)))
	}
	if len(expiring) == 0 {
		return nil
	}
	return &corev1beta1.Condition{
		Type: operatorv1alpha1.CACertificateValiditiesAcceptable, Status: corev1beta1.ConditionFalse, Reason: "ExpiringCACertificates",
		Message: fmt.Sprintf("Rotate the CAs of the garden with the operations %s and %s. They expire within a year: %s",
			constants.OperationRotateCAStart, constants.OperationRotateCAComplete, strings.Join(expiring, ", ")),
	}
}

// withExpiry returns conditions with that of CAs that expire soon, or without one, and whether this has changed them.
func withExpiry(conditions []corev1beta1.Condition, want *corev1beta1.Condition, now time.Time) ([]corev1beta1.Condition, bool) {
	if want != nil {
		return kube.SetCondition(conditions, *want, now)
	}
	after := slices.DeleteFunc(slices.Clone(conditions), func(c corev1beta1.Condition) bool {
		return c.Type == operatorv1alpha1.CACertificateValiditiesAcceptable
	})
	return after, len(after) != len(conditions)
}
