// Package core describes the kinds of the group core.gardener.cloud, one file per kind.
package core

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
	"gardener.cloud/gardener/internal/validation/core"
)

// Settings are what the kinds depend on besides their types.
type Settings struct {
	// Validation are the feature gates that validation depends on.
	Validation core.Options
	// GardenCache reads objects of the garden API.
	GardenCache client.Reader
	// KubeAPI reads ConfigMaps of the garden cluster.
	KubeAPI client.Reader
	// Authorizer distinguishes administrators of the landscape from members of projects.
	Authorizer authorizer.Authorizer
	// RotationInterval is the age of a shoot's credentials from which on updates of the shoot get a warning.
	RotationInterval time.Duration
	// Clock says when credentials begin and end.
	Clock clock.PassiveClock
	// AdminKubeconfigMaxExpiration and ViewerKubeconfigMaxExpiration are how long kubeconfigs are valid at most.
	AdminKubeconfigMaxExpiration, ViewerKubeconfigMaxExpiration time.Duration
}

var (
	gvk = corev1beta1.SchemeGroupVersion.WithKind
	all = []string{"all"}
)

// Kinds returns all kinds of the group.
func Kinds(settings Settings) []kind.Any {
	return []kind.Any{
		backupBucket(), backupEntry(), cloudProfile(settings.Validation), controllerDeployment(), controllerInstallation(),
		controllerRegistration(), exposureClass(), internalSecret(), namespacedCloudProfile(settings.Validation), plant(), project(), quota(),
		secretBinding(), seed(), shoot(settings), shootState(),
	}
}

// nameOf and namespaceOf return what a reference names. It may be nil.
func nameOf(ref *corev1.ObjectReference) string { return ptr.Deref(ref, corev1.ObjectReference{}).Name }

func namespaceOf(ref *corev1.ObjectReference) string {
	return ptr.Deref(ref, corev1.ObjectReference{}).Namespace
}
