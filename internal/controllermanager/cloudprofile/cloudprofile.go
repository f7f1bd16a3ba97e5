// Package cloudprofile keeps CloudProfiles while Shoots or NamespacedCloudProfiles use them.
//
// Reads CloudProfiles, Shoots and NamespacedCloudProfiles; writes the finalizer of CloudProfiles. Source: concepts.txt, "CloudProfile
// Controller".
package cloudprofile

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/controllermanager/guard"
	"gardener.cloud/gardener/internal/controllermanager/uses"
)

// Add adds the controller.
func Add(mgr manager.Manager, concurrentSyncs int) error {
	return guard.Add(mgr, "cloudprofile", concurrentSyncs, &corev1beta1.CloudProfile{},
		guard.Use{
			User: &corev1beta1.Shoot{}, Users: &corev1beta1.ShootList{},
			Of: func(user client.Object) []reconcile.Request {
				shoot := user.(*corev1beta1.Shoot) //nolint:forcetypeassert // only Shoots are watched for this use
				ref, ok := uses.ProfileOf(shoot)
				if !ok || ref.Kind != constants.CloudProfileReferenceKindCloudProfile {
					return nil
				}
				return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: ref.Name}}}
			},
			By: func(profile client.Object) []client.ListOption {
				ref := uses.Ref{Kind: constants.CloudProfileReferenceKindCloudProfile, Name: profile.GetName()}
				return []client.ListOption{client.MatchingFields{uses.ShootByProfile: ref.Key()}}
			},
		},
		guard.Use{
			User: &corev1beta1.NamespacedCloudProfile{}, Users: &corev1beta1.NamespacedCloudProfileList{},
			Of: func(user client.Object) []reconcile.Request {
				child := user.(*corev1beta1.NamespacedCloudProfile) //nolint:forcetypeassert // only these are watched for this use
				return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: child.Spec.Parent.Name}}}
			},
			By: func(profile client.Object) []client.ListOption {
				return []client.ListOption{client.MatchingFields{uses.ProfileByParent: profile.GetName()}}
			},
		},
	)
}
