// Package references finds out which objects of the garden refer to which others. Of returns what an object refers to. To and Referrers
// answer the reverse from an index of the cache, so that the work for one object does not grow with the number of all others.
package references

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
)

// Kinds of objects that others refer to.
const (
	CloudProfile           = "CloudProfile"
	ConfigMap              = "ConfigMap"
	ControllerDeployment   = "ControllerDeployment"
	ControllerRegistration = "ControllerRegistration"
	CredentialsBinding     = "CredentialsBinding"
	ExposureClass          = "ExposureClass"
	InternalSecret         = "InternalSecret"
	Namespace              = "Namespace"
	NamespacedCloudProfile = "NamespacedCloudProfile"
	Project                = "Project"
	Quota                  = "Quota"
	Secret                 = "Secret"
	SecretBinding          = "SecretBinding"
	Seed                   = "Seed"
	Shoot                  = "Shoot"
	WorkloadIdentity       = "WorkloadIdentity"
)

const (
	// index finds objects by the keys of the objects that they refer to.
	index = "references"
	// selfHosted finds the Shoots that host their own control plane; the value is "true".
	selfHosted = "selfHosted"
)

// Ref names an object of a kind. Objects of cluster-scoped kinds have no namespace.
type Ref struct {
	Kind, Namespace, Name string
}

// RefOf returns the Ref of an object of a kind.
func RefOf(kind string, obj client.Object) Ref {
	return Ref{Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// String returns kind, namespace and name, which is also the key in the index.
func (r Ref) String() string { return r.Kind + "/" + r.Namespace + "/" + r.Name }

// ObjectKey returns namespace and name.
func (r Ref) ObjectKey() client.ObjectKey {
	return client.ObjectKey{Namespace: r.Namespace, Name: r.Name}
}

// Add adds the indexes to a cache that has not been started, before the controllers that use them are added.
func Add(ctx context.Context, indexer client.FieldIndexer) error {
	for _, kind := range []client.Object{
		&corev1beta1.BackupBucket{}, &corev1beta1.BackupEntry{}, &corev1beta1.ControllerInstallation{}, &corev1beta1.ControllerRegistration{},
		&corev1beta1.NamespacedCloudProfile{}, &corev1beta1.Plant{}, &corev1beta1.Project{}, &corev1beta1.SecretBinding{}, &corev1beta1.Seed{}, &corev1beta1.Shoot{},
		&gardencorev1.ControllerDeployment{}, &operationsv1alpha1.Bastion{}, &securityv1alpha1.CredentialsBinding{},
		&seedmanagementv1alpha1.ManagedSeed{}, &rbacv1.ClusterRole{},
	} {
		if err := indexer.IndexField(ctx, kind, index, keys); err != nil {
			return fmt.Errorf("index %T by its references: %w", kind, err)
		}
	}
	err := indexer.IndexField(ctx, &corev1beta1.Shoot{}, selfHosted, func(obj client.Object) []string {
		if obj.(*corev1beta1.Shoot).SelfHosted() { //nolint:forcetypeassert // the kind that is indexed
			return []string{"true"}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("index self-hosted Shoots: %w", err)
	}
	return nil
}

// keys returns the keys of an object in the index.
func keys(obj client.Object) []string {
	var keys []string
	for _, ref := range Of(obj) {
		keys = append(keys, ref.String())
	}
	return keys
}

// Of returns the objects that an object refers to, only those of the given kinds if there are any. They are sorted by kind, namespace
// and name, and each is listed once.
func Of(obj client.Object, kinds ...string) []Ref {
	refs := all(obj)
	if len(kinds) > 0 {
		refs = slices.DeleteFunc(refs, func(r Ref) bool { return !slices.Contains(kinds, r.Kind) })
	}
	slices.SortFunc(refs, func(a, b Ref) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(refs)
}

// Requests returns a request for each object of the given kinds that an object refers to.
func Requests(obj client.Object, kinds ...string) []reconcile.Request {
	var requests []reconcile.Request
	for _, ref := range Of(obj, kinds...) {
		requests = append(requests, reconcile.Request{NamespacedName: ref.ObjectKey()})
	}
	return requests
}

// To selects, in a list from the cache, the objects that refer to one.
func To(ref Ref) client.MatchingFields { return client.MatchingFields{index: ref.String()} }

// SelfHosted selects, in a list of Shoots from the cache, those that host their own control plane.
func SelfHosted() client.MatchingFields { return client.MatchingFields{selfHosted: "true"} }

// Referrers returns the keys of the objects of a kind that refer to one, according to the cache, but not more than limit if that is
// above zero. The kind is given as an empty object.
func Referrers(ctx context.Context, gardenCache client.Client, kind client.Object, to Ref, limit int64) ([]client.ObjectKey, error) {
	gvk, err := apiutil.GVKForObject(kind, gardenCache.Scheme())
	if err != nil {
		return nil, err
	}
	obj, err := gardenCache.Scheme().New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		return nil, err
	}
	list := obj.(client.ObjectList) //nolint:forcetypeassert // every list kind is one
	if err := gardenCache.List(ctx, list, To(to), client.Limit(limit), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list every %s that refers to %s: %w", gvk.Kind, to, err)
	}
	var keys []client.ObjectKey
	err = meta.EachListItem(list, func(item runtime.Object) error {
		keys = append(keys, client.ObjectKeyFromObject(item.(client.Object))) //nolint:forcetypeassert // lists hold objects
		return nil
	})
	return keys, err
}

// ProjectsOf returns the names of the Projects whose spec names a namespace, according to the cache. There is more than one only while a
// Project waits for a namespace that belongs to another one.
func ProjectsOf(ctx context.Context, gardenCache client.Client, namespace string) ([]client.ObjectKey, error) {
	return Referrers(ctx, gardenCache, &corev1beta1.Project{}, Ref{Kind: Namespace, Name: namespace}, 0)
}
