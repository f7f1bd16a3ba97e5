// Package uses says which objects of the garden use which others, as indexes of the cache. A controller that needs to know who
// uses an object looks it up here; looking through all Shoots would cost the square of their number.
package uses

import (
	"context"
	"errors"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
)

// Names of indexes: kind by what it uses.
const (
	// ShootByProfile holds Shoots by the ProfileKey of the profile that they use.
	ShootByProfile = "gardener.cloud/profile"
	// ShootBySecretBinding holds Shoots by the name of their SecretBinding, which is in their namespace.
	ShootBySecretBinding = "gardener.cloud/secretBinding"
	// ShootByCredentialsBinding holds Shoots by the name of their CredentialsBinding, which is in their namespace.
	ShootByCredentialsBinding = "gardener.cloud/credentialsBinding"
	// ShootByReference holds Shoots by the Key of the Secrets and ConfigMaps that they refer to.
	ShootByReference = "gardener.cloud/reference"
	// ProfileByParent holds NamespacedCloudProfiles by the name of their CloudProfile.
	ProfileByParent = "gardener.cloud/parent"
	// BindingByReference holds SecretBindings and CredentialsBindings by the Key of the objects that they refer to.
	BindingByReference = "gardener.cloud/reference"
	// ManagedSeedByShoot holds ManagedSeeds by the name of their Shoot, which is in their namespace.
	ManagedSeedByShoot = "gardener.cloud/shoot"
	// ProjectByNamespace holds Projects by their namespace.
	ProjectByNamespace = "gardener.cloud/namespace"
	// ExtensionRoleByProject holds the ClusterRoles of extension roles by the name of the Project.
	ExtensionRoleByProject = "gardener.cloud/project"
)

// Ref names an object of a kind.
type Ref struct {
	Kind, Namespace, Name string
}

// Key is the value of an index for what it names.
func (r Ref) Key() string { return r.Kind + "/" + r.Namespace + "/" + r.Name }

// Kinds of objects that bindings and Shoots refer to.
const (
	Secret           = "Secret"
	ConfigMap        = "ConfigMap"
	InternalSecret   = "InternalSecret"
	WorkloadIdentity = "WorkloadIdentity"
	Quota            = "Quota"
)

// Add adds the indexes to a cache that has not been started.
func Add(ctx context.Context, indexer client.FieldIndexer) error {
	return errors.Join(
		add(ctx, indexer, &corev1beta1.Shoot{}, ShootByProfile, func(s *corev1beta1.Shoot) []string {
			if ref, ok := ProfileOf(s); ok {
				return []string{ref.Key()}
			}
			return nil
		}),
		add(ctx, indexer, &corev1beta1.Shoot{}, ShootBySecretBinding, func(s *corev1beta1.Shoot) []string {
			return set(s.Spec.SecretBindingName) //nolint:staticcheck // Shoots without a CredentialsBinding still have one
		}),
		add(ctx, indexer, &corev1beta1.Shoot{}, ShootByCredentialsBinding, func(s *corev1beta1.Shoot) []string {
			return set(s.Spec.CredentialsBindingName)
		}),
		add(ctx, indexer, &corev1beta1.Shoot{}, ShootByReference, func(s *corev1beta1.Shoot) []string { return keys(ShootReferences(s)) }),
		add(ctx, indexer, &corev1beta1.NamespacedCloudProfile{}, ProfileByParent, func(p *corev1beta1.NamespacedCloudProfile) []string {
			return []string{p.Spec.Parent.Name}
		}),
		add(ctx, indexer, &corev1beta1.SecretBinding{}, BindingByReference, func(b *corev1beta1.SecretBinding) []string {
			return keys(SecretBindingReferences(b))
		}),
		add(ctx, indexer, &securityv1alpha1.CredentialsBinding{}, BindingByReference, func(b *securityv1alpha1.CredentialsBinding) []string {
			return keys(CredentialsBindingReferences(b))
		}),
		add(ctx, indexer, &seedmanagementv1alpha1.ManagedSeed{}, ManagedSeedByShoot, func(m *seedmanagementv1alpha1.ManagedSeed) []string {
			if m.Spec.Shoot == nil {
				return nil
			}
			return []string{m.Spec.Shoot.Name}
		}),
		add(ctx, indexer, &corev1beta1.Project{}, ProjectByNamespace, func(p *corev1beta1.Project) []string { return set(p.Spec.Namespace) }),
		add(ctx, indexer, &rbacv1.ClusterRole{}, ExtensionRoleByProject, func(r *rbacv1.ClusterRole) []string {
			if r.Labels[constants.GardenRole] != constants.GardenRoleExtensionProjectRole {
				return nil
			}
			return []string{r.Labels[constants.ProjectName]}
		}),
	)
}

// ProfileOf returns the profile that a Shoot uses.
func ProfileOf(shoot *corev1beta1.Shoot) (Ref, bool) {
	if profile := shoot.Spec.CloudProfile; profile != nil {
		ref := Ref{Kind: profile.Kind, Name: profile.Name}
		if profile.Kind == constants.CloudProfileReferenceKindNamespacedCloudProfile {
			ref.Namespace = shoot.Namespace
		}
		return ref, true
	}
	if name := shoot.Spec.CloudProfileName; name != nil { //nolint:staticcheck // old Shoots still have it
		return Ref{Kind: constants.CloudProfileReferenceKindCloudProfile, Name: *name}, true
	}
	return Ref{}, false
}

// SecretBindingReferences returns what a SecretBinding refers to.
func SecretBindingReferences(binding *corev1beta1.SecretBinding) []Ref {
	refs := []Ref{{Secret, or(binding.SecretRef.Namespace, binding.Namespace), binding.SecretRef.Name}}
	for _, quota := range binding.Quotas {
		refs = append(refs, Ref{Quota, or(quota.Namespace, binding.Namespace), quota.Name})
	}
	return refs
}

// CredentialsBindingReferences returns what a CredentialsBinding refers to.
func CredentialsBindingReferences(binding *securityv1alpha1.CredentialsBinding) []Ref {
	ref := binding.CredentialsRef
	refs := []Ref{{ref.Kind, or(ref.Namespace, binding.Namespace), ref.Name}}
	for _, quota := range binding.Quotas {
		refs = append(refs, Ref{Quota, or(quota.Namespace, binding.Namespace), quota.Name})
	}
	return refs
}

// ShootReferences returns the Secrets and ConfigMaps that a Shoot refers to, each once. A Shoot that is being deleted needs them until
// the gardenlet has removed its control plane, and its finalizer with it.
func ShootReferences(shoot *corev1beta1.Shoot) []Ref {
	if shoot.DeletionTimestamp != nil && !slices.Contains(shoot.Finalizers, constants.FinalizerGardenerName) {
		return nil
	}
	var refs []Ref
	add := func(kind, name string) {
		ref := Ref{kind, shoot.Namespace, name}
		if name != "" && !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	if api := shoot.Spec.Kubernetes.KubeAPIServer; api != nil {
		for _, plugin := range api.AdmissionPlugins {
			if plugin.KubeconfigSecretName != nil {
				add(Secret, *plugin.KubeconfigSecretName)
			}
		}
		if audit := api.AuditConfig; audit != nil && audit.AuditPolicy != nil && audit.AuditPolicy.ConfigMapRef != nil {
			add(ConfigMap, audit.AuditPolicy.ConfigMapRef.Name)
		}
		if authn := api.StructuredAuthentication; authn != nil {
			add(ConfigMap, authn.ConfigMapName)
		}
		if authz := api.StructuredAuthorization; authz != nil {
			add(ConfigMap, authz.ConfigMapName)
			for _, kubeconfig := range authz.Kubeconfigs {
				add(Secret, kubeconfig.SecretName)
			}
		}
	}
	if dns := shoot.Spec.DNS; dns != nil {
		for _, provider := range dns.Providers { //nolint:staticcheck // still in use
			if provider.SecretName != nil { //nolint:staticcheck // as above
				add(Secret, *provider.SecretName) //nolint:staticcheck // as above
			}
			if ref := provider.CredentialsRef; ref != nil && ref.APIVersion == "v1" && ref.Kind == Secret {
				add(Secret, ref.Name)
			}
		}
	}
	for _, resource := range shoot.Spec.Resources {
		if ref := resource.ResourceRef; ref.APIVersion == "v1" && (ref.Kind == Secret || ref.Kind == ConfigMap) {
			add(ref.Kind, ref.Name)
		}
	}
	return refs
}

func add[T client.Object](ctx context.Context, indexer client.FieldIndexer, kind T, name string, values func(T) []string) error {
	return indexer.IndexField(ctx, kind, name, func(obj client.Object) []string {
		return values(obj.(T)) //nolint:forcetypeassert // the index is for this kind
	})
}

func keys(refs []Ref) []string {
	var keys []string
	for _, ref := range refs {
		keys = append(keys, ref.Key())
	}
	return keys
}

func set(value *string) []string {
	if value == nil {
		return nil
	}
	return []string{*value}
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
