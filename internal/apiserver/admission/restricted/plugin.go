// Package restricted is what the plugins SeedRestriction and ShootRestriction have in common: they refuse what clients of seeds and
// self-hosted shoots must not write.
package restricted

import (
	"context"
	"errors"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
	"gardener.cloud/gardener/internal/restriction"
)

// Values are what differs between the plugins.
type Values struct {
	// Client reports whether a user is one of the clients that are restricted.
	Client func(user.Info) bool
	// Rules are the requests to decide on, and Decide decides.
	Rules  []restriction.Rule
	Decide func(*restriction.Values, context.Context, *restriction.Request) error
	// Mark marks objects that clients create. Nil marks none.
	Mark  func(*restriction.Request)
	Clock clock.PassiveClock
}

// New returns a plugin.
func New(v Values) *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete), values: v}
}

// Plugin refuses what clients must not write. Reads Shoots, Seeds, ManagedSeeds, Gardenlets and BackupBuckets, and the ConfigMap registered-seeds, and authorizes clients to read
// what they refer to.
type Plugin struct {
	*admission.Handler
	initializer.Base
	values Values
}

var (
	_ admission.MutationInterface   = &Plugin{}
	_ admission.ValidationInterface = &Plugin{}
)

// Admit implements admission.MutationInterface.
func (p *Plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if p.values.Mark != nil && p.values.Client(a.GetUserInfo()) {
		p.values.Mark(request(a))
	}
	return nil
}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !p.values.Client(a.GetUserInfo()) {
		return nil
	}
	r := request(a)
	decisions := &restriction.Values{Garden: p.GardenCache, KubeAPI: p.KubeAPI, Clock: p.values.Clock, Exists: p.exists}
	if p.decides(r) {
		if err := p.values.Decide(decisions, ctx, r); err != nil {
			return refusal(a, err)
		}
	}
	// Status is written as well, and has references.
	if err := decisions.References(ctx, r, p.Authorizer); err != nil {
		return refusal(a, err)
	}
	return nil
}

func request(a admission.Attributes) *restriction.Request {
	r := &restriction.Request{
		User: a.GetUserInfo(), Operation: admissionv1.Operation(a.GetOperation()),
		Resource:  restriction.WithSubresource(a.GetResource().GroupResource(), a.GetSubresource()),
		Namespace: a.GetNamespace(), Name: a.GetName(),
	}
	r.Object, _ = a.GetObject().(client.Object)
	r.Old, _ = a.GetOldObject().(client.Object)
	return r
}

// decides reports whether there is a rule for a request. Other requests are decided on by the authorizer alone.
func (p *Plugin) decides(r *restriction.Request) bool {
	return slices.ContainsFunc(p.values.Rules, func(rule restriction.Rule) bool {
		return rule.Resource.GroupResource() == r.Resource && slices.Contains(rule.Operations, r.Operation)
	})
}

// exists reports whether the object of a creation exists. The storage would answer the same, but not if the object is deleted meanwhile: then it
// would store what was not decided on.
func (p *Plugin) exists(ctx context.Context, r *restriction.Request) bool {
	if r.Operation != admissionv1.Create || r.Name == "" {
		return false
	}
	return p.GardenCache.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Name}, restriction.New(r.Resource), initializer.Fresh) == nil
}

// refusal returns the answer of an API server for a Refusal.
func refusal(a admission.Attributes, err error) error {
	var refused *restriction.Refusal
	if !errors.As(err, &refused) || refused.Code == http.StatusInternalServerError {
		return apierrors.NewInternalError(err)
	}
	switch refused.Code {
	case http.StatusForbidden:
		return admission.NewForbidden(a, err)
	case http.StatusConflict:
		return apierrors.NewAlreadyExists(a.GetResource().GroupResource(), a.GetName())
	case http.StatusBadRequest:
		return apierrors.NewBadRequest(err.Error())
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: refused.Code, Reason: metav1.StatusReasonInvalid, Message: err.Error(),
	}}
}
