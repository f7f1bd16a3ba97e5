package restriction

import (
	"context"
	"net/http"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	requester "gardener.cloud/gardener/internal/authorizer/client"
	"gardener.cloud/gardener/internal/authorizer/graph"
	"gardener.cloud/gardener/internal/kube/bootstraptoken"
)

// forShoots are the rules for gardenlets and extensions of self-hosted shoots.
var forShoots = table[requester.Shoot]{
	{Rule{backupBuckets, creations}, typed(shootBackupBucket)},
	{Rule{backupEntries, creationsOrUpdates}, typed(shootBackupEntry)},
	{Rule{certificateRequests, creations}, typed(shootCertificateRequest)},
	{Rule{configMaps, creations}, shootPublished(constants.ShootProjectSecretSuffixCACluster, constants.ShootProjectConfigMapSuffixCAKubelet)},
	{Rule{gardenlets, creations}, typed(shootGardenlet)},
	{Rule{internalSecrets, creations}, shootPublished(constants.ShootProjectSecretSuffixCAClient)},
	{Rule{leases, creations}, typed(shootLease)},
	{Rule{managedSeeds, updates}, typed(shootManagedSeed)},
	{Rule{secrets, creations}, typed(shootSecret)},
	{Rule{serviceAccounts, creationsOrUpdates}, typed(shootServiceAccount)},
	{Rule{shootStates, creations}, func(_ context.Context, _ *Values, of requester.Shoot, r *Request) error {
		return ownShoot(of, r, types.NamespacedName{Namespace: r.Namespace, Name: r.Name})
	}},
}

// forGardenadm are the rules for gardenadm, which creates what a self-hosted shoot needs in the garden.
var forGardenadm = table[requester.Shoot]{
	{Rule{configMaps, creations}, gardenadmObject},
	{Rule{projects, creations}, typed(gardenadmProject)},
	{Rule{secrets, creations}, gardenadmObject},
	{Rule{shoots, creations}, func(_ context.Context, _ *Values, of requester.Shoot, r *Request) error {
		return ownShoot(of, r, types.NamespacedName{Namespace: r.Namespace, Name: r.Name})
	}},
	{Rule{workloadIdentities, creations}, gardenadmObject},
}

// ShootRules returns for which requests of clients of self-hosted shoots a decision is needed.
func ShootRules() []Rule {
	rules := forShoots.rules()
	for _, rule := range forGardenadm.rules() {
		if !slices.ContainsFunc(rules, func(r Rule) bool { return r.Resource == rule.Resource }) {
			rules = append(rules, rule)
		}
	}
	return rules
}

// Shoot returns a Refusal if a client of a self-hosted shoot makes a request that is not for its own shoot. Requests of all others are
// admitted.
func (v *Values) Shoot(ctx context.Context, r *Request) error {
	shoot, ok := requester.OfShoot(r.User)
	if !ok {
		return nil
	}
	rules := forGardenadm
	if shoot.Type != requester.Gardenadm {
		rules = forShoots
		if err := v.selfHosted(ctx, shoot); err != nil {
			return err
		}
	}
	decide, err := rules.find(r)
	if err != nil {
		return err
	}
	return decide(ctx, v, shoot, r)
}

// selfHosted refuses clients of a shoot whose control plane runs on a seed, or that does not exist: members of a project may create
// ServiceAccounts with any names.
func (v *Values) selfHosted(ctx context.Context, of requester.Shoot) error {
	shoot := &corev1beta1.Shoot{}
	if err := v.read(ctx, client.ObjectKey{Namespace: of.Namespace, Name: of.Name}, shoot, http.StatusForbidden); err != nil {
		return err
	}
	if !shoot.SelfHosted() {
		return forbid("shoot %s is not self-hosted, so it has no clients in the garden", of)
	}
	return nil
}

// ownShoot refuses an object of another shoot.
func ownShoot(of requester.Shoot, r *Request, shoot types.NamespacedName) error {
	if shoot == of.NamespacedName {
		return nil
	}
	return notOfShoot(of, r)
}

func notOfShoot(of requester.Shoot, r *Request) error {
	return forbid("object %q of %s does not belong to shoot %s", shown(client.ObjectKey{Namespace: r.Namespace, Name: r.Name}), r.Resource, of)
}

// ownShootRef refuses an object that refers to another shoot, or none.
func ownShootRef(of requester.Shoot, obj client.Object, ref *corev1.ObjectReference) error {
	if ref != nil && ref.Namespace == of.Namespace && ref.Name == of.Name {
		return nil
	}
	return forbid("%s %s does not belong to shoot %s", kindOf(obj), shown(client.ObjectKeyFromObject(obj)), of)
}

func shootBackupBucket(ctx context.Context, v *Values, of requester.Shoot, r *Request, bucket *corev1beta1.BackupBucket) error {
	if err := ownShootRef(of, bucket, bucket.Spec.ShootRef); err != nil {
		return err
	}
	shoot := &corev1beta1.Shoot{}
	if err := v.read(ctx, client.ObjectKey{Namespace: of.Namespace, Name: of.Name}, shoot, http.StatusInternalServerError); err != nil {
		return err
	}
	if bucket.Name != string(shoot.UID) {
		return forbid("BackupBucket %q is not that of shoot %s, which is named by its UID, %q", bucket.Name, of, shoot.UID)
	}
	return nil
}

func shootBackupEntry(ctx context.Context, v *Values, of requester.Shoot, r *Request, entry *corev1beta1.BackupEntry) error {
	if old, ok := r.Old.(*corev1beta1.BackupEntry); ok {
		if old.Spec.BucketName == entry.Spec.BucketName {
			return nil
		}
	} else if err := ownShootRef(of, entry, entry.Spec.ShootRef); err != nil {
		return err
	}
	return v.shootBucket(ctx, of, entry.Spec.BucketName)
}

// shootBucket refuses a BackupBucket of another shoot, or one that does not exist.
func (v *Values) shootBucket(ctx context.Context, of requester.Shoot, name string) error {
	bucket := &corev1beta1.BackupBucket{}
	if err := v.read(ctx, client.ObjectKey{Name: name}, bucket, http.StatusForbidden); err != nil {
		return err
	}
	return ownShootRef(of, bucket, bucket.Spec.ShootRef)
}

// shootPublished decides on objects that are published for a Shoot: its name, a dot and a suffix are theirs.
func shootPublished(suffixes ...string) func(context.Context, *Values, requester.Shoot, *Request) error {
	return func(_ context.Context, _ *Values, of requester.Shoot, r *Request) error {
		shoot, suffix, _ := strings.Cut(r.Name, ".")
		if !slices.Contains(suffixes, suffix) {
			return notOfShoot(of, r)
		}
		return ownShoot(of, r, types.NamespacedName{Namespace: r.Namespace, Name: shoot})
	}
}

func shootSecret(ctx context.Context, v *Values, of requester.Shoot, r *Request, secret *corev1.Secret) error {
	if name, ok := strings.CutPrefix(r.Name, constants.SecretPrefixGeneratedBackupBucket); ok && r.Namespace == constants.GardenNamespace {
		return v.shootBucket(ctx, of, name)
	}
	if r.Namespace != metav1.NamespaceSystem || !strings.HasPrefix(r.Name, graph.BootstrapTokenPrefix) {
		return shootPublished(publishedSecrets...)(ctx, v, of, r)
	}
	if err := shootOnlyGardenlets(of, r); err != nil {
		return err
	}
	token, err := tokenOf(secret)
	if err != nil {
		return err
	}
	if token.Kind == bootstraptoken.KindManagedSeed {
		managedSeed := &seedmanagementv1alpha1.ManagedSeed{}
		if err := v.read(ctx, client.ObjectKey{Namespace: constants.GardenNamespace, Name: token.Seed}, managedSeed, http.StatusForbidden); err != nil {
			return err
		}
		return ownManagedSeed(of, r, managedSeed)
	}
	return ownShoot(of, r, token.Shoot)
}

// ownManagedSeed refuses a ManagedSeed of another shoot.
func ownManagedSeed(of requester.Shoot, r *Request, managedSeed *seedmanagementv1alpha1.ManagedSeed) error {
	if managedSeed.Spec.Shoot == nil {
		return notOfShoot(of, r)
	}
	return ownShoot(of, r, types.NamespacedName{Namespace: managedSeed.Namespace, Name: managedSeed.Spec.Shoot.Name})
}

func shootManagedSeed(ctx context.Context, v *Values, of requester.Shoot, r *Request, managedSeed *seedmanagementv1alpha1.ManagedSeed) error {
	stored, ok := r.Old.(*seedmanagementv1alpha1.ManagedSeed)
	if !ok {
		return refuse(http.StatusBadRequest, "unexpected object %T for %s", r.Old, r.Resource)
	}
	if err := ownManagedSeed(of, r, stored); err != nil {
		return err
	}
	return v.managedSeedDomains(ctx, r, managedSeed)
}

func shootOnlyGardenlets(of requester.Shoot, r *Request) error {
	if of.Type == requester.Gardenlet {
		return nil
	}
	return forbid("extensions must not create %s", r.Resource)
}

func shootCertificateRequest(_ context.Context, _ *Values, of requester.Shoot, r *Request, csr *certificatesv1.CertificateSigningRequest) error {
	if err := shootOnlyGardenlets(of, r); err != nil {
		return err
	}
	return ownCertificate(csr, graph.Key{Kind: graph.Shoot, Namespace: of.Namespace, Name: of.Name})
}

func shootGardenlet(_ context.Context, _ *Values, of requester.Shoot, r *Request, _ *seedmanagementv1alpha1.Gardenlet) error {
	shoot, ok := strings.CutPrefix(r.Name, graph.SelfHostedPrefix)
	if !ok {
		return refuse(http.StatusBadRequest, "the name of a Gardenlet of a self-hosted shoot must begin with %s", graph.SelfHostedPrefix)
	}
	return ownShoot(of, r, types.NamespacedName{Namespace: r.Namespace, Name: shoot})
}

func shootLease(_ context.Context, _ *Values, of requester.Shoot, r *Request, _ *coordinationv1.Lease) error {
	if of.Type == requester.Extension {
		if r.Namespace != of.Namespace || !strings.HasPrefix(r.Name, of.Name+"--") {
			return notOfShoot(of, r)
		}
		return nil
	}
	shoot, ok := strings.CutPrefix(r.Name, graph.SelfHostedPrefix)
	if !ok {
		return refuse(http.StatusBadRequest, "the name of a Lease of a self-hosted shoot must begin with %s", graph.SelfHostedPrefix)
	}
	return ownShoot(of, r, types.NamespacedName{Namespace: r.Namespace, Name: shoot})
}

func shootServiceAccount(_ context.Context, _ *Values, of requester.Shoot, r *Request, account *corev1.ServiceAccount) error {
	if err := noNewSecrets(account, r.Old); err != nil || r.Old != nil {
		return err
	}
	if err := shootOnlyGardenlets(of, r); err != nil {
		return err
	}
	// The shoot is in front of the second pair of dashes.
	if shoot, ok := requester.ShootOfServiceAccount(r.Name); !ok || r.Namespace != of.Namespace || shoot != of.Name {
		return notOfShoot(of, r)
	}
	return nil
}

func gardenadmObject(_ context.Context, _ *Values, of requester.Shoot, r *Request) error {
	if r.Namespace != of.Namespace {
		return notOfShoot(of, r)
	}
	return nil
}

func gardenadmProject(_ context.Context, _ *Values, of requester.Shoot, r *Request, project *corev1beta1.Project) error {
	if project.Spec.Namespace == nil || *project.Spec.Namespace != of.Namespace {
		return notOfShoot(of, r)
	}
	return nil
}
