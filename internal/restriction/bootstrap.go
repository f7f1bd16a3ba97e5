package restriction

import (
	"context"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	requester "gardener.cloud/gardener/internal/authorizer/client"
	"gardener.cloud/gardener/internal/kube/bootstraptoken"
)

// mayBootstrap refuses what the gardenlet of a ManagedSeed gets its client certificate with, unless it may get one: its Shoot runs on this
// seed, and it has no Seed yet, or its certificate is to be replaced.
func (v *Values) mayBootstrap(ctx context.Context, of requester.Seed, key client.ObjectKey) error {
	managedSeed := &seedmanagementv1alpha1.ManagedSeed{}
	if err := v.read(ctx, key, managedSeed, http.StatusForbidden); err != nil {
		return err
	}
	if managedSeed.Spec.Shoot == nil {
		return forbid("ManagedSeed %s has no Shoot", key)
	}
	shoot := &corev1beta1.Shoot{}
	if err := v.read(ctx, client.ObjectKey{Namespace: key.Namespace, Name: managedSeed.Spec.Shoot.Name}, shoot, http.StatusInternalServerError); err != nil {
		return err
	}
	if err := ownSeed(of, shoot, shoot.Spec.SeedName); err != nil {
		return err
	}
	seed := &corev1beta1.Seed{}
	switch err := v.Garden.Get(ctx, client.ObjectKey{Name: key.Name}, seed); {
	case apierrors.IsNotFound(err) || err == nil && v.renews(managedSeed, seed):
		return nil
	case err != nil:
		return refuse(http.StatusInternalServerError, "read Seed %s: %v", key.Name, err)
	}
	return refuse(http.StatusBadRequest, "the gardenlet of ManagedSeed %s has a valid client certificate already", key)
}

// mayBootstrapAgain refuses what a gardenlet gets a new client certificate with, unless its own is to be replaced.
func (v *Values) mayBootstrapAgain(ctx context.Context, of requester.Seed) error {
	gardenlet, seed := &seedmanagementv1alpha1.Gardenlet{}, &corev1beta1.Seed{}
	if err := v.read(ctx, client.ObjectKey{Namespace: constants.GardenNamespace, Name: of.Name}, gardenlet, http.StatusForbidden); err != nil {
		return err
	}
	if err := v.read(ctx, client.ObjectKey{Name: of.Name}, seed, http.StatusForbidden); err != nil {
		return err
	}
	if !v.renews(gardenlet, seed) {
		return refuse(http.StatusBadRequest, "the gardenlet of seed %q has a valid client certificate already", of.Name)
	}
	return nil
}

// renews reports whether the client certificate of a gardenlet is to be replaced: it has expired, or an operator wants it.
func (v *Values) renews(obj client.Object, seed *corev1beta1.Seed) bool {
	expiration := seed.Status.ClientCertificateExpirationTimestamp
	return obj.GetAnnotations()[constants.GardenerOperation] == constants.GardenerOperationRenewKubeconfig ||
		expiration != nil && expiration.Time.Before(v.Clock.Now())
}

// tokenExtraGroups is the key of the groups that a bootstrap token gives to its user.
const tokenExtraGroups = "auth-extra-groups"

// tokenOf returns what a Secret with a bootstrap token is for. It refuses one that does not say it, as that would be as good as one
// of an operator: for any new seed.
func tokenOf(secret *corev1.Secret) (bootstraptoken.Token, error) {
	name := shown(client.ObjectKeyFromObject(secret))
	if secret.Type != corev1.SecretTypeBootstrapToken {
		return bootstraptoken.Token{}, refuse(http.StatusUnprocessableEntity, "Secret %s: type must be %s", name, corev1.SecretTypeBootstrapToken)
	}
	for _, key := range []string{"usage-bootstrap-authentication", "usage-bootstrap-signing"} {
		if string(secret.Data[key]) != "true" {
			return bootstraptoken.Token{}, refuse(http.StatusUnprocessableEntity, "Secret %s: data.%s must be true", name, key)
		}
	}
	if _, ok := secret.Data[tokenExtraGroups]; ok {
		return bootstraptoken.Token{}, refuse(http.StatusUnprocessableEntity, "Secret %s: data.%s must not be set", name, tokenExtraGroups)
	}
	token := bootstraptoken.Of(string(secret.Data[bootstraptoken.DescriptionKey]))
	if token.Kind == "" {
		return bootstraptoken.Token{}, refuse(http.StatusBadRequest, "Secret %s: data.%s must name the ManagedSeed or Gardenlet of a seed, or the Gardenlet of a self-hosted shoot",
			name, bootstraptoken.DescriptionKey)
	}
	return token, nil
}
