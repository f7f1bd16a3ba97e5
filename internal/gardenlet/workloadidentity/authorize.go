package workloadidentity

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
)

// errRefused says that a Secret asks for a token that is not for the owner of its namespace.
var errRefused = errors.New("the token is refused")

const (
	// identityKind is the kind of references to WorkloadIdentities.
	identityKind = "WorkloadIdentity"
	// bucketKind and entryKind are the kinds of contexts for backups.
	bucketKind, entryKind = "BackupBucket", "BackupEntry"
)

// authorize returns errRefused unless an order is one that the owner of the namespace may have: the Shoot whose control plane is in it, or the
// Seed if it belongs to none, or the backups of either. Labels and annotations of a Secret do not tell that, as they may come from someone else.
func (r *reconciler) authorize(ctx context.Context, namespace string, o order) error {
	ns := &corev1.Namespace{}
	if err := r.SeedClient.Get(ctx, client.ObjectKey{Name: namespace}, ns); err != nil {
		return fmt.Errorf("read Namespace %q: %w", namespace, err)
	}
	seed := &corev1beta1.Seed{}
	if err := r.GardenClient.Get(ctx, client.ObjectKey{Name: r.SeedName}, seed); err != nil {
		return fmt.Errorf("read Seed %q: %w", r.SeedName, err)
	}
	uid := types.UID(ns.Annotations[constants.ShootUIDAnnotation])
	if uid == "" && namespace != constants.GardenNamespace {
		return fmt.Errorf("%w: namespace %q is neither the one of a Shoot nor of Seed %q", errRefused, namespace, seed.Name)
	}
	if o.context != nil && (o.context.Kind == bucketKind || o.context.Kind == entryKind) {
		return r.authorizeBackup(ctx, namespace, uid, o)
	}
	if uid == "" {
		if !aboutSeed(o.context, seed) {
			return fmt.Errorf("%w: annotation %s does not name Seed %q, whose namespace %q is",
				errRefused, securityv1alpha1.AnnotationWorkloadIdentityContextObject, seed.Name, namespace)
		}
		if !contains(append(domainCredentials(seed), otherCredentials(seed)...), o.identity) {
			return fmt.Errorf("%w: Seed %q does not refer to WorkloadIdentity %q", errRefused, seed.Name, o.identity)
		}
		return nil
	}
	shoot, err := r.shoot(ctx, namespace, uid, o.context)
	if err != nil {
		return err
	}
	refs, err := r.shootCredentials(ctx, shoot)
	if err != nil {
		return err
	}
	// The names of a shoot may be in domains of the seed.
	if !contains(append(refs, domainCredentials(seed)...), o.identity) {
		return fmt.Errorf("%w: Shoot %q does not refer to WorkloadIdentity %q", errRefused, client.ObjectKeyFromObject(shoot), o.identity)
	}
	return nil
}

// authorizeBackup returns errRefused unless an order is for backups of the seed: a BackupBucket, with its credentials, or a BackupEntry, with
// those of its BackupBucket. In the control plane of a Shoot, with a UID, it is the BackupEntry of the Shoot, as etcd needs the token too.
func (r *reconciler) authorizeBackup(ctx context.Context, namespace string, uid types.UID, o order) error {
	refused := fmt.Errorf("%w: annotation %s does not name a BackupBucket or BackupEntry of Seed %q with WorkloadIdentity %q that namespace %q is for",
		errRefused, securityv1alpha1.AnnotationWorkloadIdentityContextObject, r.SeedName, o.identity, namespace)
	if o.context.APIVersion != corev1beta1.SchemeGroupVersion.String() {
		return refused
	}
	read := func(key client.ObjectKey, obj client.Object) error {
		err := r.GardenClient.Get(ctx, key, obj)
		if apierrors.IsNotFound(err) {
			return refused
		}
		return err
	}
	bucket, key := &corev1beta1.BackupBucket{}, client.ObjectKey{Namespace: ptr.Deref(o.context.Namespace, ""), Name: o.context.Name}
	if o.context.Kind == bucketKind {
		if err := read(key, bucket); err != nil {
			return err
		}
		if uid != "" || bucket.UID != o.context.UID || ptr.Deref(bucket.Spec.SeedName, "") != r.SeedName {
			return refused
		}
	} else {
		entry := &corev1beta1.BackupEntry{}
		if err := read(key, entry); err != nil {
			return err
		}
		if entry.UID != o.context.UID || ptr.Deref(entry.Spec.SeedName, "") != r.SeedName || uid != "" && entry.Name != namespace+"--"+string(uid) {
			return refused
		}
		if err := read(client.ObjectKey{Name: entry.Spec.BucketName}, bucket); err != nil {
			return err
		}
	}
	if ref := bucket.Spec.CredentialsRef; ref == nil || !contains([]corev1.ObjectReference{*ref}, o.identity) {
		return refused
	}
	return nil
}

// shoot returns the Shoot with a UID, which the context of an order has to name.
func (r *reconciler) shoot(ctx context.Context, namespace string, uid types.UID, about *securityv1alpha1.ContextObject) (*corev1beta1.Shoot, error) {
	mismatch := fmt.Errorf("%w: annotation %s does not name the Shoot with UID %s, whose namespace %q is",
		errRefused, securityv1alpha1.AnnotationWorkloadIdentityContextObject, uid, namespace)
	if about == nil || about.Kind != "Shoot" || about.APIVersion != corev1beta1.SchemeGroupVersion.String() || about.Namespace == nil || about.UID != uid {
		return nil, mismatch
	}
	shoot, key := &corev1beta1.Shoot{}, client.ObjectKey{Namespace: *about.Namespace, Name: about.Name}
	switch err := r.GardenClient.Get(ctx, key, shoot); {
	case apierrors.IsNotFound(err) || err == nil && (shoot.UID != uid || shoot.Status.TechnicalID != "" && shoot.Status.TechnicalID != namespace):
		return nil, mismatch
	case err != nil:
		return nil, fmt.Errorf("read Shoot %q: %w", key, err)
	}
	return shoot, nil
}

// aboutSeed is whether the context of an order is a seed, or not given.
func aboutSeed(about *securityv1alpha1.ContextObject, seed *corev1beta1.Seed) bool {
	return about == nil ||
		about.Kind == "Seed" && about.APIVersion == corev1beta1.SchemeGroupVersion.String() && about.Name == seed.Name && about.UID == seed.UID
}

// shootCredentials are the credentials that a Shoot refers to.
func (r *reconciler) shootCredentials(ctx context.Context, shoot *corev1beta1.Shoot) ([]corev1.ObjectReference, error) {
	refs := namedResources(shoot.Spec.Resources, shoot.Namespace)
	if dns := shoot.Spec.DNS; dns != nil {
		for _, provider := range dns.Providers {
			if ref := provider.CredentialsRef; ref != nil {
				refs = append(refs, corev1.ObjectReference{Kind: ref.Kind, Namespace: shoot.Namespace, Name: ref.Name})
			}
		}
	}
	if shoot.Spec.CredentialsBindingName == nil {
		return refs, nil
	}
	binding, key := &securityv1alpha1.CredentialsBinding{}, client.ObjectKey{Namespace: shoot.Namespace, Name: *shoot.Spec.CredentialsBindingName}
	if err := r.GardenClient.Get(ctx, key, binding); err != nil {
		return nil, fmt.Errorf("read CredentialsBinding %q: %w", key, err)
	}
	return append(refs, binding.CredentialsRef), nil
}

// domainCredentials are those for the domains of a Seed, which its shoots share.
func domainCredentials(seed *corev1beta1.Seed) []corev1.ObjectReference {
	var refs []corev1.ObjectReference
	if internal := seed.Spec.DNS.Internal; internal != nil {
		refs = append(refs, internal.CredentialsRef)
	}
	for _, domain := range seed.Spec.DNS.Defaults {
		refs = append(refs, domain.CredentialsRef)
	}
	return refs
}

// otherCredentials are those that a Seed refers to for itself.
func otherCredentials(seed *corev1beta1.Seed) []corev1.ObjectReference {
	refs := namedResources(seed.Spec.Resources, constants.GardenNamespace)
	if provider := seed.Spec.DNS.Provider; provider != nil {
		refs = append(refs, ptr.Deref(provider.CredentialsRef, corev1.ObjectReference{}))
	}
	if backup := seed.Spec.Backup; backup != nil {
		refs = append(refs, ptr.Deref(backup.CredentialsRef, corev1.ObjectReference{}))
	}
	return refs
}

// namedResources are the references in spec.resources, whose objects are in one namespace.
func namedResources(resources []corev1beta1.NamedResourceReference, namespace string) []corev1.ObjectReference {
	refs := make([]corev1.ObjectReference, 0, len(resources))
	for _, resource := range resources {
		refs = append(refs, corev1.ObjectReference{Kind: resource.ResourceRef.Kind, Namespace: namespace, Name: resource.ResourceRef.Name})
	}
	return refs
}

// contains is whether one of the references is to a WorkloadIdentity.
func contains(refs []corev1.ObjectReference, identity client.ObjectKey) bool {
	for _, ref := range refs {
		if ref.Kind == identityKind && ref.Namespace == identity.Namespace && ref.Name == identity.Name {
			return true
		}
	}
	return false
}
