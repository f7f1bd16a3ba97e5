package restriction

import (
	"context"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	requester "gardener.cloud/gardener/internal/authorizer/client"
	"gardener.cloud/gardener/internal/authorizer/graph"
)

// forSeeds are the rules for clients of seeds.
var forSeeds = table[requester.Seed]{
	{Rule{backupBuckets, []admissionv1.Operation{admissionv1.Create, admissionv1.Delete}}, seedBackupBucket},
	{Rule{backupEntries, creationsOrUpdates}, typed(seedBackupEntry)},
	{Rule{bastions, creations}, typed(func(_ context.Context, _ *Values, of requester.Seed, _ *Request, obj *operationsv1alpha1.Bastion) error {
		return ownSeed(of, obj, obj.Spec.SeedName)
	})},
	{Rule{certificateRequests, creations}, typed(seedCertificateRequest)},
	{Rule{clusterRoleBindings, creations}, typed(seedClusterRoleBinding)},
	{Rule{configMaps, creations}, seedPublished(constants.ShootProjectSecretSuffixCACluster, constants.ShootProjectConfigMapSuffixCAKubelet)},
	{Rule{gardenlets, creationsOrUpdates}, typed(seedGardenlet)},
	{Rule{gardenletStatuses, updates}, typed(seedGardenlet)},
	{Rule{internalSecrets, creations}, seedPublished(constants.ShootProjectSecretSuffixCAClient)},
	{Rule{leases, creations}, typed(seedLease)},
	{Rule{managedSeeds, updates}, typed(func(ctx context.Context, v *Values, _ requester.Seed, r *Request, obj *seedmanagementv1alpha1.ManagedSeed) error {
		return v.managedSeedDomains(ctx, r, obj)
	})},
	{Rule{secrets, creations}, typed(seedSecret)},
	{Rule{seeds, []admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Delete}}, seedSeed},
	{Rule{serviceAccounts, creationsOrUpdates}, typed(seedServiceAccount)},
	{Rule{shootStatuses, updates}, typed(seedShootStatus)},
	{Rule{shootStates, creations}, seedShootState},
}

// SeedRules returns for which requests of clients of seeds a decision is needed.
func SeedRules() []Rule { return forSeeds.rules() }

// Seed returns a Refusal if a client of a seed makes a request that is not for its own seed. Requests of all others are admitted.
func (v *Values) Seed(ctx context.Context, r *Request) error {
	seed, ok := requester.OfSeed(r.User)
	if !ok {
		return nil
	}
	decide, err := forSeeds.find(r)
	if err != nil {
		return err
	}
	if r.Operation == admissionv1.Create && v.Exists(ctx, r) {
		// To leave the answer to the storage would store what was not decided on, if the object is deleted meanwhile.
		return refuse(http.StatusConflict, "%s %q already exists", r.Resource, shown(client.ObjectKey{Namespace: r.Namespace, Name: r.Name}))
	}
	return decide(ctx, v, seed, r)
}

// ownSeed refuses an object that names another seed, or none.
func ownSeed(of requester.Seed, obj client.Object, seed *string) error {
	if ptr.Deref(seed, "") == of.Name {
		return nil
	}
	return forbid("%s %s does not belong to seed %q", kindOf(obj), shown(client.ObjectKeyFromObject(obj)), of.Name)
}

// seedShootStatus refuses to make another seed responsible for a Shoot than the one to which it is bound: the gardenlet in status.seedName acts on the
// control plane.
func seedShootStatus(_ context.Context, _ *Values, of requester.Seed, r *Request, shoot *corev1beta1.Shoot) error {
	old, ok := r.Old.(*corev1beta1.Shoot)
	before, after, bound := "", ptr.Deref(shoot.Status.SeedName, ""), ptr.Deref(shoot.Spec.SeedName, "")
	if ok {
		before = ptr.Deref(old.Status.SeedName, "")
	}
	takes, releases := after == of.Name && bound == of.Name, before == of.Name && after == bound
	if before == after || takes || releases {
		return nil
	}
	return forbid("Shoot %s: seed %q must not set status.seedName to %q", shown(client.ObjectKeyFromObject(shoot)), of.Name, after)
}

func onlyGardenlets(of requester.Seed, r *Request) error {
	if of.Type == requester.Gardenlet {
		return nil
	}
	return forbid("extensions must not create %s", r.Resource)
}

func seedBackupBucket(ctx context.Context, v *Values, of requester.Seed, r *Request) error {
	if r.Operation == admissionv1.Create {
		if err := typed(func(_ context.Context, _ *Values, of requester.Seed, _ *Request, bucket *corev1beta1.BackupBucket) error {
			return ownSeed(of, bucket, bucket.Spec.SeedName)
		})(ctx, v, of, r); err != nil {
			return err
		}
	}
	seed := &corev1beta1.Seed{}
	if err := v.read(ctx, client.ObjectKey{Name: of.Name}, seed, http.StatusInternalServerError); err != nil {
		return err
	}
	// With the name of another seed's it would take the place of that one's.
	if r.Name != string(seed.UID) {
		return forbid("BackupBucket %q is not that of seed %q, which is named by its UID, %q", r.Name, of.Name, seed.UID)
	}
	return nil
}

func seedBackupEntry(ctx context.Context, v *Values, of requester.Seed, r *Request, entry *corev1beta1.BackupEntry) error {
	if r.Operation == admissionv1.Update {
		// A BackupEntry leads to the credentials of its BackupBucket. One that moves to this seed stays in the BackupBucket of the other.
		if old, ok := r.Old.(*corev1beta1.BackupEntry); ok && old.Spec.BucketName == entry.Spec.BucketName {
			return nil
		}
		return v.seedBucket(ctx, of, entry.Spec.BucketName, http.StatusForbidden)
	}
	if err := ownSeed(of, entry, entry.Spec.SeedName); err != nil {
		return err
	}
	if strings.HasPrefix(r.Name, constants.BackupSourcePrefix+"-") {
		return v.sourceEntry(ctx, entry)
	}
	return v.seedBucket(ctx, of, entry.Spec.BucketName, http.StatusInternalServerError)
}

// seedBucket refuses a BackupBucket of another seed, and with a code one that does not exist.
func (v *Values) seedBucket(ctx context.Context, of requester.Seed, name string, missing int32) error {
	bucket := &corev1beta1.BackupBucket{}
	if err := v.read(ctx, client.ObjectKey{Name: name}, bucket, missing); err != nil {
		return err
	}
	return ownSeed(of, bucket, bucket.Spec.SeedName)
}

// sourceEntry refuses a BackupEntry to restore from, unless its Shoot is being restored and it is a copy of the BackupEntry of the Shoot.
func (v *Values) sourceEntry(ctx context.Context, source *corev1beta1.BackupEntry) error {
	owner := slices.IndexFunc(source.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.Kind == "Shoot" })
	if owner < 0 {
		return forbid("BackupEntry %s has no Shoot as its owner", shown(client.ObjectKeyFromObject(source)))
	}
	shoot, key := &corev1beta1.Shoot{}, client.ObjectKey{Namespace: source.Namespace, Name: source.OwnerReferences[owner].Name}
	if err := v.read(ctx, key, shoot, http.StatusForbidden); err != nil {
		return err
	}
	if last := shoot.Status.LastOperation; last == nil || last.Type != corev1beta1.LastOperationTypeRestore || last.State != corev1beta1.LastOperationStateProcessing {
		return forbid("BackupEntry %s: Shoot %s is not being restored", shown(client.ObjectKeyFromObject(source)), key)
	}
	entry, key := &corev1beta1.BackupEntry{}, client.ObjectKey{Namespace: source.Namespace, Name: strings.TrimPrefix(source.Name, constants.BackupSourcePrefix+"-")}
	if err := v.read(ctx, key, entry, http.StatusForbidden); err != nil {
		return err
	}
	if !apiequality.Semantic.DeepEqual(entry.Spec, source.Spec) {
		return forbid("BackupEntry %s has another spec than BackupEntry %s", shown(client.ObjectKeyFromObject(source)), key)
	}
	return nil
}

func seedCertificateRequest(_ context.Context, _ *Values, of requester.Seed, r *Request, csr *certificatesv1.CertificateSigningRequest) error {
	if err := onlyGardenlets(of, r); err != nil {
		return err
	}
	return ownCertificate(csr, graph.Key{Kind: graph.Seed, Name: of.Name})
}

// ownCertificate refuses a request for a certificate that is not the client certificate of the gardenlet of a seed or self-hosted shoot.
func ownCertificate(csr *certificatesv1.CertificateSigningRequest, of graph.Key) error {
	// The graph says for whom a request is.
	edges := graph.Of(csr).Edges
	switch {
	case len(edges) > 0 && edges[0].To == of:
		return nil
	case len(edges) > 0:
		return forbid("the client certificate that is requested is for %s, not for %s", edges[0].To, of)
	}
	return forbid("a request must be for the client certificate of the gardenlet of %s: with the group and the name of its user, without alternative names, "+
		"for digital signature, key encipherment and client auth", of)
}

func seedClusterRoleBinding(ctx context.Context, v *Values, of requester.Seed, r *Request, binding *rbacv1.ClusterRoleBinding) error {
	if err := onlyGardenlets(of, r); err != nil {
		return err
	}
	managedSeed, ok := graph.Bootstrapped(graph.Key{Kind: graph.ClusterRoleBinding, Name: r.Name})
	switch {
	case !ok:
		return forbid("ClusterRoleBinding %q is not for the gardenlet of a ManagedSeed", r.Name)
	case binding.RoleRef.APIGroup != rbacv1.GroupName || binding.RoleRef.Kind != "ClusterRole" || binding.RoleRef.Name != graph.SeedBootstrapper:
		return forbid("ClusterRoleBinding %q must be for ClusterRole %q", r.Name, graph.SeedBootstrapper)
	case !slices.Equal(binding.Subjects, []rbacv1.Subject{{
		Kind: rbacv1.ServiceAccountKind, Namespace: managedSeed.Namespace, Name: graph.BootstrapServiceAccountName(managedSeed.Name),
	}}):
		return forbid("ClusterRoleBinding %q must be for ServiceAccount %s/%s alone", r.Name, managedSeed.Namespace, graph.BootstrapServiceAccountName(managedSeed.Name))
	}
	return v.mayBootstrap(ctx, of, client.ObjectKey{Namespace: managedSeed.Namespace, Name: managedSeed.Name})
}

// seedPublished decides on objects that are published for a Shoot: its name, a dot and a suffix are theirs. Names of Shoots have no dots.
func seedPublished(suffixes ...string) func(context.Context, *Values, requester.Seed, *Request) error {
	return func(ctx context.Context, v *Values, of requester.Seed, r *Request) error {
		shoot, suffix, _ := strings.Cut(r.Name, ".")
		if !slices.Contains(suffixes, suffix) {
			return forbid("object %q of %s does not belong to seed %q", r.Name, r.Resource, of.Name)
		}
		return v.seedShoot(ctx, of, client.ObjectKey{Namespace: r.Namespace, Name: shoot})
	}
}

// seedShoot refuses a Shoot on another seed, or one that does not exist.
func (v *Values) seedShoot(ctx context.Context, of requester.Seed, key client.ObjectKey) error {
	shoot := &corev1beta1.Shoot{}
	if err := v.read(ctx, key, shoot, http.StatusForbidden); err != nil {
		return err
	}
	return ownSeed(of, shoot, shoot.Spec.SeedName)
}

func seedLease(_ context.Context, _ *Values, of requester.Seed, r *Request, _ *coordinationv1.Lease) error {
	var own bool
	switch {
	case of.Type == requester.Extension:
		own = r.Namespace == constants.SeedNamespaceNamePrefix+of.Name
	case r.Namespace == constants.GardenerSeedLeaseNamespace:
		own = r.Name == of.Name || r.Name == gardenletconfigv1alpha1.DefaultLeaderElectionName
	default:
		own = r.Name == gardenletconfigv1alpha1.DefaultLeaderElectionName
	}
	if !own {
		return forbid("Lease %s/%s does not belong to seed %q", r.Namespace, r.Name, of.Name)
	}
	return nil
}

func seedSeed(ctx context.Context, v *Values, of requester.Seed, r *Request) error {
	switch {
	case r.Name != of.Name:
	case r.Operation == admissionv1.Delete:
		// A gardenlet that registers its Seed for the first time chooses its references, so there must be no other first time.
		return forbid("Seed %q must not be deleted by its own gardenlet: only an operator, or the gardenlet of the seed that it runs on, may delete it", r.Name)
	default:
		return v.seedDomains(ctx, of, r)
	}
	notOwn := forbid("Seed %q does not belong to seed %q", r.Name, of.Name)
	if r.Operation != admissionv1.Delete {
		return notOwn
	}
	// A seed on a shoot of this seed is deleted with its ManagedSeed.
	managedSeed, key := &seedmanagementv1alpha1.ManagedSeed{}, client.ObjectKey{Namespace: constants.GardenNamespace, Name: r.Name}
	if err := v.read(ctx, key, managedSeed, http.StatusForbidden); err != nil {
		return err
	}
	if managedSeed.DeletionTimestamp == nil || managedSeed.Spec.Shoot == nil {
		return notOwn
	}
	return v.seedShoot(ctx, of, client.ObjectKey{Namespace: managedSeed.Namespace, Name: managedSeed.Spec.Shoot.Name})
}

func seedServiceAccount(ctx context.Context, v *Values, of requester.Seed, r *Request, account *corev1.ServiceAccount) error {
	if r.Operation == admissionv1.Update {
		return noNewSecrets(account, r.Old)
	}
	if err := onlyGardenlets(of, r); err != nil {
		return err
	}
	if err := noNewSecrets(account, nil); err != nil {
		return err
	}
	managedSeed, ok := graph.Bootstrapped(graph.Key{Kind: graph.ServiceAccount, Namespace: r.Namespace, Name: r.Name})
	switch {
	case ok:
		return v.mayBootstrap(ctx, of, client.ObjectKey{Namespace: managedSeed.Namespace, Name: managedSeed.Name})
	case r.Namespace != constants.SeedNamespaceNamePrefix+of.Name:
		return forbid("ServiceAccount %s/%s does not belong to seed %q", r.Namespace, r.Name, of.Name)
	}
	return nil
}

// noNewSecrets refuses Secrets in the list of a ServiceAccount, which its clients may read. A controller writes it.
func noNewSecrets(account *corev1.ServiceAccount, before client.Object) error {
	var known []corev1.ObjectReference
	if old, ok := before.(*corev1.ServiceAccount); ok {
		known = old.Secrets
	}
	for _, ref := range account.Secrets {
		if !slices.ContainsFunc(known, func(k corev1.ObjectReference) bool { return k.Name == ref.Name }) {
			return forbid("ServiceAccount %s must not name Secret %q", client.ObjectKeyFromObject(account), ref.Name)
		}
	}
	return nil
}

func seedShootState(ctx context.Context, v *Values, of requester.Seed, r *Request) error {
	shoot, key := &corev1beta1.Shoot{}, client.ObjectKey{Namespace: r.Namespace, Name: r.Name}
	if err := v.read(ctx, key, shoot, http.StatusInternalServerError); err != nil {
		return err
	}
	// During a migration the old seed saves the state.
	if ptr.Deref(shoot.Status.SeedName, "") == of.Name {
		return nil
	}
	return ownSeed(of, shoot, shoot.Spec.SeedName)
}
