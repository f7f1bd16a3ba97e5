// Package certificatesigningrequest approves the client certificates that gardenlets request, when they start for the first time and
// before their certificate expires.
//
// It reads CertificateSigningRequests, creates SubjectAccessReviews for their authors, and writes approvals. Other requests are left to
// other approvers, such as an operator. Source: concepts.txt, CertificateSigningRequest controller.
package certificatesigningrequest

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/controllermanager/watch"
	"gardener.cloud/gardener/internal/kube"
)

// retryAfter is when the access of an author is reviewed again. A change of permissions causes no event; the gardenlet waits for its
// certificate for 15 minutes.
const retryAfter = time.Minute

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many CertificateSigningRequests are reconciled at the same time.
	ConcurrentSyncs int
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, v Values) error {
	return builder.ControllerManagedBy(mgr).Named("csr-autoapprove").WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		For(&certificatesv1.CertificateSigningRequest{}, builder.WithPredicates(watch.NoDeletes(), predicate.NewPredicateFuncs(func(obj client.Object) bool {
			return open(obj.(*certificatesv1.CertificateSigningRequest)) //nolint:forcetypeassert // the kind that is watched
		}))).
		Complete(reconcile.AsReconciler(mgr.GetClient(), &reconciler{gardenCache: mgr.GetClient()}))
}

type reconciler struct{ gardenCache client.Client }

// Reconcile approves a request for the client certificate of a gardenlet if its author is allowed to have such a certificate.
func (r *reconciler) Reconcile(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) (reconcile.Result, error) {
	log := logf.FromContext(ctx)
	if !open(csr) {
		return reconcile.Result{}, nil
	}
	if err := forSeed(csr); err != nil {
		log.V(1).Info("Ignoring request that is not for a gardenlet", "reason", err.Error())
		return reconcile.Result{}, nil
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: csr.Spec.Username, UID: csr.Spec.UID, Groups: csr.Spec.Groups, Extra: map[string]authorizationv1.ExtraValue{},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: certificatesv1.GroupName, Resource: "certificatesigningrequests", Subresource: "seedclient", Verb: "create",
		},
	}}
	for key, value := range csr.Spec.Extra {
		review.Spec.Extra[key] = authorizationv1.ExtraValue(value)
	}
	if err := r.gardenCache.Create(ctx, review); err != nil {
		return reconcile.Result{}, fmt.Errorf("review the access of user %q: %w", csr.Spec.Username, err)
	}
	if !review.Status.Allowed {
		log.Info("Not approving request because its author may not create certificatesigningrequests/seedclient", "user", csr.Spec.Username)
		return reconcile.Result{RequeueAfter: retryAfter}, nil
	}
	log.Info("Approving request", "user", csr.Spec.Username)
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "AutoApproved",
		Message: "Approved for a gardenlet after a SubjectAccessReview.",
	})
	if err := r.gardenCache.SubResource("approval").Update(ctx, csr); client.IgnoreNotFound(err) != nil {
		return kube.Result(fmt.Errorf("approve: %w", err))
	}
	return reconcile.Result{}, nil
}

// open reports whether a request is neither approved nor denied yet.
func open(csr *certificatesv1.CertificateSigningRequest) bool {
	decided := func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateApproved || c.Type == certificatesv1.CertificateDenied ||
			c.Type == certificatesv1.CertificateFailed
	}
	return len(csr.Status.Certificate) == 0 && !slices.ContainsFunc(csr.Status.Conditions, decided)
}

// forSeed returns why a request is not for the client certificate of a gardenlet, or nil if it is.
func forSeed(csr *certificatesv1.CertificateSigningRequest) error {
	if csr.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return fmt.Errorf("signer is %q", csr.Spec.SignerName)
	}
	// A key for RSA may also encipher other keys.
	usages := slices.DeleteFunc(slices.Clone(csr.Spec.Usages), func(u certificatesv1.KeyUsage) bool {
		return u == certificatesv1.UsageKeyEncipherment
	})
	slices.Sort(usages)
	if !slices.Equal(usages, []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature}) {
		return fmt.Errorf("usages are %v", csr.Spec.Usages)
	}
	block, _ := pem.Decode(csr.Spec.Request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return errors.New("spec.request is no certificate request in PEM format")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return fmt.Errorf("parse certificate request: %w", err)
	}
	subject := request.Subject
	switch {
	case !slices.Equal(subject.Organization, []string{constants.SeedsGroup}):
		return fmt.Errorf("organizations are %q", subject.Organization)
	case !strings.HasPrefix(subject.CommonName, constants.SeedUserNamePrefix) || subject.CommonName == constants.SeedUserNamePrefix:
		return fmt.Errorf("common name is %q", subject.CommonName)
	case len(request.DNSNames)+len(request.IPAddresses)+len(request.EmailAddresses)+len(request.URIs) > 0:
		return errors.New("it has alternative names, which a client does not need")
	}
	return mayRequest(csr.Spec.Username, subject.CommonName)
}

// bootstrapUserPrefix is the prefix of the user names of bootstrap tokens.
const bootstrapUserPrefix = "system:bootstrap:"

// mayRequest returns why a user may not have the certificate of a gardenlet, or nil. Roles do not say for which seed a certificate is, and
// gardenlets may bind the one for new gardenlets: so these are the gardenlet itself, and what a new one begins with.
func mayRequest(user, gardenlet string) error {
	seed := strings.TrimPrefix(gardenlet, constants.SeedUserNamePrefix)
	switch {
	case user == gardenlet, strings.HasPrefix(user, bootstrapUserPrefix),
		user == serviceaccount.MakeUsername(constants.GardenNamespace, "gardenlet-bootstrap-"+seed):
		return nil
	}
	return fmt.Errorf("user %q may not request the certificate of %q", user, gardenlet)
}
