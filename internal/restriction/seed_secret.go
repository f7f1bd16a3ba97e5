package restriction

import (
	"context"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	requester "gardener.cloud/gardener/internal/authorizer/client"
	"gardener.cloud/gardener/internal/authorizer/graph"
	"gardener.cloud/gardener/internal/kube/bootstraptoken"
)

// publishedSecrets are the suffixes of Secrets that are published for a Shoot.
var publishedSecrets = []string{
	constants.ShootProjectSecretSuffixCACluster, constants.ShootProjectSecretSuffixSSHKeypair, constants.ShootProjectSecretSuffixOldSSHKeypair,
	constants.ShootProjectSecretSuffixMonitoring,
}

func seedSecret(ctx context.Context, v *Values, of requester.Seed, r *Request, secret *corev1.Secret) error {
	if name, ok := strings.CutPrefix(r.Name, constants.SecretPrefixGeneratedBackupBucket); ok && r.Namespace == constants.GardenNamespace {
		return v.seedBucket(ctx, of, name, http.StatusForbidden)
	}
	if shoot, suffix, _ := strings.Cut(r.Name, "."); slices.Contains(publishedSecrets, suffix) {
		return v.seedShoot(ctx, of, client.ObjectKey{Namespace: r.Namespace, Name: shoot})
	}
	switch {
	case r.Namespace == constants.GardenerShootIssuerNamespace:
		return v.seedIssuer(ctx, of, secret)
	case r.Namespace == metav1.NamespaceSystem && strings.HasPrefix(r.Name, graph.BootstrapTokenPrefix):
		return v.seedBootstrapToken(ctx, of, r, secret)
	}
	return v.managedSeedBackup(ctx, of, r)
}

// seedIssuer decides on the documents of the managed issuer of a Shoot.
func (v *Values) seedIssuer(ctx context.Context, of requester.Seed, secret *corev1.Secret) error {
	labels := secret.Labels
	for _, label := range []string{constants.ShootName, constants.ShootNamespace} {
		if labels[label] == "" {
			return refuse(http.StatusUnprocessableEntity, "Secret %s needs the label %s", shown(client.ObjectKeyFromObject(secret)), label)
		}
	}
	if labels[constants.DiscoveryPublic] != constants.DiscoveryServiceAccount {
		return refuse(http.StatusUnprocessableEntity, "Secret %s needs the label %s=%s", shown(client.ObjectKeyFromObject(secret)),
			constants.DiscoveryPublic, constants.DiscoveryServiceAccount)
	}
	return v.seedShoot(ctx, of, client.ObjectKey{Namespace: labels[constants.ShootNamespace], Name: labels[constants.ShootName]})
}

func (v *Values) seedBootstrapToken(ctx context.Context, of requester.Seed, r *Request, secret *corev1.Secret) error {
	if err := onlyGardenlets(of, r); err != nil {
		return err
	}
	token, err := tokenOf(secret)
	if err != nil {
		return err
	}
	if token.Kind == bootstraptoken.KindManagedSeed {
		return v.mayBootstrap(ctx, of, client.ObjectKey{Namespace: constants.GardenNamespace, Name: token.Seed})
	}
	if token.Seed != of.Name {
		return forbid("Secret %s/%s: the Gardenlet of its description does not belong to seed %q", r.Namespace, r.Name, of.Name)
	}
	return v.mayBootstrapAgain(ctx, of)
}

// managedSeedBackup decides on a Secret that must be the credentials for backups of a seed on a shoot of this seed.
func (v *Values) managedSeedBackup(ctx context.Context, of requester.Seed, r *Request) error {
	list := &seedmanagementv1alpha1.ManagedSeedList{}
	if err := v.Garden.List(ctx, list); err != nil {
		return refuse(http.StatusInternalServerError, "list ManagedSeeds: %v", err)
	}
	for i := range list.Items {
		managedSeed := &list.Items[i]
		spec := graph.SeedTemplate(managedSeed.Spec.Gardenlet.Config)
		if managedSeed.Spec.Shoot == nil || spec == nil || spec.Backup == nil || spec.Backup.CredentialsRef == nil {
			continue
		}
		if ref := spec.Backup.CredentialsRef; ref.APIVersion != "v1" || ref.Kind != graph.Secret.String() || ref.Namespace != r.Namespace || ref.Name != r.Name {
			continue
		}
		shoot, key := &corev1beta1.Shoot{}, client.ObjectKey{Namespace: managedSeed.Namespace, Name: managedSeed.Spec.Shoot.Name}
		// Another ManagedSeed that has no Shoot any more must not be in the way.
		if err := v.Garden.Get(ctx, key, shoot); err == nil && ownSeed(of, shoot, shoot.Spec.SeedName) == nil {
			return nil
		}
	}
	return forbid("Secret %s/%s does not belong to seed %q", r.Namespace, r.Name, of.Name)
}
