package managedseed

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/authorizer/graph"
	"gardener.cloud/gardener/internal/component/gardenlet/bootstrap"
	"gardener.cloud/gardener/internal/component/gardenlet/release"
	"gardener.cloud/gardener/internal/kube/bootstraptoken"
)

// accountTokenSeconds is how long the token of a ServiceAccount is valid: the gardenlet uses it at its start.
const accountTokenSeconds = 600

// credentials are what a gardenlet requests its client certificate with.
type credentials struct {
	// kubeconfig is nil if it has a certificate, or was given a kubeconfig before.
	kubeconfig []byte
	// replaced says that the gardenlet had a certificate, so that it has to start again.
	replaced bool
	// renews says that an operator wants it to get a new certificate, which it does not have yet.
	renews bool
}

// bootstrap returns the credentials with which a gardenlet requests its client certificate. Its kubeconfig is deleted if it is to be replaced. Bootstrapped
// is when its pods were last started for new credentials. Each pass of a renewal writes a token that is valid: the gardenlet may need longer than one is.
func (r *reconciler) bootstrap(
	ctx context.Context, object *seedmanagementv1alpha1.ManagedSeed, shootClient client.Client, garden release.Connection, seed *corev1beta1.Seed, bootstrapped string,
) (credentials, error) {
	mode := ptr.Deref(object.Spec.Gardenlet.Bootstrap, seedmanagementv1alpha1.BootstrapToken)
	if mode == seedmanagementv1alpha1.BootstrapNone {
		return credentials{}, nil
	}
	state, err := bootstrap.Read(ctx, shootClient, garden)
	if err != nil {
		return credentials{}, err
	}
	renewal := renewalOf(object, state, bootstrapped, r.Clock.Now())
	if !needsBootstrap(state, renewal.Requested, seed, r.Clock.Now()) {
		return credentials{}, nil
	}
	token, err := r.token(ctx, object, mode)
	if err != nil {
		return credentials{}, err
	}
	ca, err := bootstrap.CABundle(r.Garden.GetConfig())
	if err != nil {
		return credentials{}, err
	}
	kubeconfig, err := bootstrap.Kubeconfig(garden.Address, ca, token)
	if err != nil {
		return credentials{}, err
	}
	if renewal.Requested && !renewal.Begun {
		if err := r.beginRenewal(ctx, object, state); err != nil {
			return credentials{}, err
		}
	}
	out := credentials{kubeconfig: kubeconfig, replaced: state.Kubeconfig != nil || renewal.Restarts, renews: renewal.Requested}
	if out.replaced {
		logf.FromContext(ctx).Info("Replacing the client certificate of the gardenlet")
	}
	return out, state.DeleteKubeconfig(ctx, shootClient)
}

// beginRenewal records which kubeconfig is replaced, before it is deleted: otherwise the next pass would delete the new one, too.
func (r *reconciler) beginRenewal(ctx context.Context, object *seedmanagementv1alpha1.ManagedSeed, state bootstrap.State) error {
	value := r.Clock.Now().UTC().Format(time.RFC3339) + " "
	if state.Kubeconfig != nil {
		value += string(state.Kubeconfig.UID)
	}
	after := object.DeepCopy()
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, annotationRenewal, value)
	// What is deployed is of the version that was read. The writes below need the new one.
	if err := r.GardenAPI.Patch(ctx, after, client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("annotate ManagedSeed %q: %w", object.Name, err)
	}
	after.DeepCopyInto(object)
	return nil
}

// renewed removes the operation that requested a new client certificate, which the gardenlet has now.
func (r *reconciler) renewed(ctx context.Context, object *seedmanagementv1alpha1.ManagedSeed) error {
	if _, begun := object.Annotations[annotationRenewal]; !begun && !renews(object) {
		return nil
	}
	current := &seedmanagementv1alpha1.ManagedSeed{}
	if err := r.GardenAPI.Get(ctx, client.ObjectKeyFromObject(object), current); err != nil {
		return client.IgnoreNotFound(err)
	}
	before := current.DeepCopy()
	delete(current.Annotations, annotationRenewal)
	if renews(current) {
		delete(current.Annotations, constants.GardenerOperation)
	}
	// Another operation may be requested now.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.GardenAPI.Patch(ctx, current, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("annotate ManagedSeed %q: %w", object.Name, err)
	}
	return nil
}

// token returns a token with which a gardenlet may request its client certificate.
func (r *reconciler) token(ctx context.Context, object *seedmanagementv1alpha1.ManagedSeed, mode seedmanagementv1alpha1.Bootstrap) (string, error) {
	if mode == seedmanagementv1alpha1.BootstrapToken {
		token := bootstrap.Token{Namespace: object.Namespace, Name: object.Name, Description: bootstraptoken.ForManagedSeed(object.Name)}
		return token.Ensure(ctx, r.GardenAPI, r.GardenAPI, r.Clock.Now())
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: graph.BootstrapServiceAccountName(object.Name)}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: graph.BootstrapBindingName(object.Namespace, object.Name)},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: graph.SeedBootstrapper},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}
	for _, created := range []client.Object{account, binding} {
		if err := r.GardenAPI.Create(ctx, created); client.IgnoreAlreadyExists(err) != nil {
			return "", fmt.Errorf("create %T %q: %w", created, created.GetName(), err)
		}
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(accountTokenSeconds))}}
	if err := r.GardenAPI.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("request token of ServiceAccount %q: %w", client.ObjectKeyFromObject(account), err)
	}
	return request.Status.Token, nil
}
