package gardenlet

import (
	"context"
	"errors"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/component/gardenlet/bootstrap"
	"gardener.cloud/gardener/internal/component/gardenlet/release"
	"gardener.cloud/gardener/internal/kube/bootstraptoken"
)

// bootstrap returns the kubeconfig with which a gardenlet requests its certificate, or nil if it has a valid one. A kubeconfig that expired or that
// is to be renewed is deleted.
func (r *reconciler) bootstrap(ctx context.Context, t *target, object *seedmanagementv1alpha1.Gardenlet, garden release.Connection) ([]byte, error) {
	state, err := bootstrap.Read(ctx, t.api, garden)
	if foreign := (*bootstrap.ForeignSecretError)(nil); errors.As(err, &foreign) {
		return nil, err // its text is the operator's own
	} else if err != nil {
		return nil, t.foreign(err)
	}
	ca, err := bootstrap.CABundle(r.Virtual.GetConfig())
	if err != nil {
		return nil, err
	}
	renew := object.Annotations[constants.GardenerOperation] == constants.GardenerOperationRenewKubeconfig
	if !renew && state.Valid(r.Clock.Now()) && !state.OtherGarden(ca) {
		return nil, nil
	}
	if err := state.DeleteKubeconfig(ctx, t.client); err != nil {
		return nil, t.foreign(err)
	}
	token, err := tokenOf(object).Ensure(ctx, r.virtualAPI, r.virtualCache, r.Clock.Now())
	if err != nil {
		return nil, err
	}
	return bootstrap.Kubeconfig(garden.Address, ca, token)
}

// tokenOf returns the bootstrap token of a gardenlet.
func tokenOf(object *seedmanagementv1alpha1.Gardenlet) bootstrap.Token {
	return bootstrap.Token{Namespace: object.Namespace, Name: object.Name, Description: bootstraptoken.ForSeed(object.Name)}
}
