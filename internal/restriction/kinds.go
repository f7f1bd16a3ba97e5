package restriction

import (
	"reflect"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
)

// Resources that rules are for.
var (
	backupBuckets       = corev1beta1.SchemeGroupVersion.WithResource("backupbuckets")
	backupEntries       = corev1beta1.SchemeGroupVersion.WithResource("backupentries")
	bastions            = operationsv1alpha1.SchemeGroupVersion.WithResource("bastions")
	certificateRequests = certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests")
	clusterRoleBindings = rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings")
	configMaps          = corev1.SchemeGroupVersion.WithResource("configmaps")
	gardenlets          = seedmanagementv1alpha1.SchemeGroupVersion.WithResource("gardenlets")
	gardenletStatuses   = seedmanagementv1alpha1.SchemeGroupVersion.WithResource("gardenlets/status")
	internalSecrets     = corev1beta1.SchemeGroupVersion.WithResource("internalsecrets")
	leases              = coordinationv1.SchemeGroupVersion.WithResource("leases")
	managedSeeds        = seedmanagementv1alpha1.SchemeGroupVersion.WithResource("managedseeds")
	projects            = corev1beta1.SchemeGroupVersion.WithResource("projects")
	secrets             = corev1.SchemeGroupVersion.WithResource("secrets")
	seeds               = corev1beta1.SchemeGroupVersion.WithResource("seeds")
	serviceAccounts     = corev1.SchemeGroupVersion.WithResource("serviceaccounts")
	shoots              = corev1beta1.SchemeGroupVersion.WithResource("shoots")
	shootStatuses       = corev1beta1.SchemeGroupVersion.WithResource("shoots/status")
	shootStates         = corev1beta1.SchemeGroupVersion.WithResource("shootstates")
	workloadIdentities  = securityv1alpha1.SchemeGroupVersion.WithResource("workloadidentities")
)

// objects are empty objects by their resource.
var objects = map[schema.GroupResource]client.Object{
	backupBuckets.GroupResource():       &corev1beta1.BackupBucket{},
	backupEntries.GroupResource():       &corev1beta1.BackupEntry{},
	bastions.GroupResource():            &operationsv1alpha1.Bastion{},
	certificateRequests.GroupResource(): &certificatesv1.CertificateSigningRequest{},
	clusterRoleBindings.GroupResource(): &rbacv1.ClusterRoleBinding{},
	configMaps.GroupResource():          &corev1.ConfigMap{},
	gardenlets.GroupResource():          &seedmanagementv1alpha1.Gardenlet{},
	gardenletStatuses.GroupResource():   &seedmanagementv1alpha1.Gardenlet{},
	internalSecrets.GroupResource():     &corev1beta1.InternalSecret{},
	leases.GroupResource():              &coordinationv1.Lease{},
	managedSeeds.GroupResource():        &seedmanagementv1alpha1.ManagedSeed{},
	projects.GroupResource():            &corev1beta1.Project{},
	secrets.GroupResource():             &corev1.Secret{},
	seeds.GroupResource():               &corev1beta1.Seed{},
	serviceAccounts.GroupResource():     &corev1.ServiceAccount{},
	shoots.GroupResource():              &corev1beta1.Shoot{},
	shootStatuses.GroupResource():       &corev1beta1.Shoot{},
	shootStates.GroupResource():         &corev1beta1.ShootState{},
	workloadIdentities.GroupResource():  &securityv1alpha1.WorkloadIdentity{},
}

// New returns an empty object of a resource that rules are for, nil for another one.
func New(resource schema.GroupResource) client.Object {
	obj, ok := objects[resource]
	if !ok {
		return nil
	}
	return obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has its original's type
}

// kindOf is the kind of an object by its type.
func kindOf(obj client.Object) string { return reflect.TypeOf(obj).Elem().Name() }

// shown returns a key without the slash in front of a name without a namespace.
func shown(key client.ObjectKey) string { return strings.TrimPrefix(key.String(), "/") }
