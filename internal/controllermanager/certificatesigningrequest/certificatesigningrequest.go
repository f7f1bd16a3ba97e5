// Package certificatesigningrequest approves the client certificates that gardenlets request, when they start for the first time and
// before their certificate expires.
//
// It reads CertificateSigningRequests, the bootstrap tokens that they are made with and Seeds, creates SubjectAccessReviews for the authors,
// and writes approvals. Before, it removes a Seed that does not exist from those that have been registered: who gave the gardenlet its bootstrap
// credentials wants it to be registered again. Other requests are left to other approvers, such as an operator. Source: concepts.txt, CertificateSigningRequest
// controller.
package certificatesigningrequest

import (
	"context"
	"fmt"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/controllermanager/watch"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/kube/bootstraptoken"
	"gardener.cloud/gardener/internal/kube/registeredseeds"
)

// retryAfter is when the author of a request is checked again. A change of permissions or of the bootstrap token causes no event; the
// gardenlet waits for its certificate for 15 minutes.
const retryAfter = time.Minute

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many CertificateSigningRequests are reconciled at the same time.
	ConcurrentSyncs int
	// Clock tells which certificates have expired.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	return builder.ControllerManagedBy(mgr).Named("csr-autoapprove").WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		For(&certificatesv1.CertificateSigningRequest{}, builder.WithPredicates(watch.NoDeletes(), predicate.NewPredicateFuncs(func(obj client.Object) bool {
			return open(obj.(*certificatesv1.CertificateSigningRequest)) //nolint:forcetypeassert // the kind that is watched
		}))).
		Complete(reconcile.AsReconciler(mgr.GetClient(), &reconciler{gardenCache: mgr.GetClient(), gardenAPI: mgr.GetAPIReader(), clock: v.Clock}))
}

type reconciler struct {
	gardenCache client.Client
	gardenAPI   client.Reader
	clock       clock.PassiveClock
}

// Reconcile approves a request for the client certificate of a gardenlet if its author is allowed to have such a certificate.
func (r *reconciler) Reconcile(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) (reconcile.Result, error) {
	log := logf.FromContext(ctx)
	if !open(csr) {
		return reconcile.Result{}, nil
	}
	requested, err := gardenletOf(&csr.Spec)
	if err != nil {
		log.V(1).Info("Ignoring request that is not for a gardenlet", "reason", err.Error())
		return reconcile.Result{}, nil
	}
	facts, err := r.read(ctx, csr.Spec.Username, requested)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := mayRequest(csr.Spec.Username, requested, facts, r.clock.Now()); err != nil {
		log.Info("Not approving request because of its author", "reason", err.Error())
		return reconcile.Result{RequeueAfter: retryAfter}, nil
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: csr.Spec.Username, UID: csr.Spec.UID, Groups: csr.Spec.Groups, Extra: map[string]authorizationv1.ExtraValue{},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: certificatesv1.GroupName, Resource: "certificatesigningrequests", Subresource: requested.subresource(), Verb: "create",
		},
	}}
	for key, value := range csr.Spec.Extra {
		review.Spec.Extra[key] = authorizationv1.ExtraValue(value)
	}
	if err := r.gardenCache.Create(ctx, review); err != nil {
		return reconcile.Result{}, fmt.Errorf("review the access of user %q: %w", csr.Spec.Username, err)
	}
	if !review.Status.Allowed {
		log.Info("Not approving request because its author may not create the subresource of certificatesigningrequests",
			"subresource", requested.subresource(), "user", csr.Spec.Username)
		return reconcile.Result{RequeueAfter: retryAfter}, nil
	}
	if newRegistration(csr.Spec.Username, requested, facts) {
		if err := registeredseeds.Remove(ctx, r.gardenCache, requested.Seed); err != nil {
			return reconcile.Result{}, err
		}
	}
	log.Info("Approving request", "user", csr.Spec.Username, "for", requested.user)
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "AutoApproved",
		Message: "Approved for a gardenlet after a SubjectAccessReview.",
	})
	if err := r.gardenCache.SubResource("approval").Update(ctx, csr); client.IgnoreNotFound(err) != nil {
		return kube.Result(fmt.Errorf("approve: %w", err))
	}
	return reconcile.Result{}, nil
}

// read reads what it depends on whether a user may request the certificate of a gardenlet. It reads from the API, as a cache may not have
// a Seed yet that has just been registered.
func (r *reconciler) read(ctx context.Context, user string, requested gardenlet) (facts, error) {
	var f facts
	if id, isToken := bootstraptoken.ID(user); isToken {
		token, err := bootstraptoken.Read(ctx, r.gardenAPI, id)
		switch {
		case apierrors.IsNotFound(err):
			return f, nil
		case err != nil:
			return f, fmt.Errorf("read the bootstrap token of user %q: %w", user, err)
		}
		f.token = &token
	}
	if requested.Seed == "" {
		return f, nil
	}
	seed := &corev1beta1.Seed{}
	switch err := r.gardenAPI.Get(ctx, client.ObjectKey{Name: requested.Seed}, seed); {
	case err == nil:
		f.seed = seed
	case !apierrors.IsNotFound(err):
		return f, fmt.Errorf("read Seed %q: %w", requested.Seed, err)
	}
	return f, nil
}

// open reports whether a request is neither approved nor denied yet.
func open(csr *certificatesv1.CertificateSigningRequest) bool {
	decided := func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateApproved || c.Type == certificatesv1.CertificateDenied ||
			c.Type == certificatesv1.CertificateFailed
	}
	return len(csr.Status.Certificate) == 0 && !slices.ContainsFunc(csr.Status.Conditions, decided)
}
